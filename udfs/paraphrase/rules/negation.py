"""Negation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.connectives import subject_only
from gaixie.udfs.paraphrase.rules.view import Edit, Words, rule, view


# 20 of 20 right
@rule
def nobody(text: str, words: Words) -> Iterator[Edit]:
    """没有人知道 → 谁也不知道"""
    for m in re.finditer(
        (
            "(?:^|(?<=[，。！？；：但却]))没有?人(?=知道|喜欢|"
            "愿意|想|会|能|敢|可以|相信|关心|在乎|记得|认识|理解|懂)"
        ),
        text,
    ):
        yield m.start(), m.end(), "谁也不"
    for m in re.finditer("(?:^|(?<=[，。！？；：但却]))没有人(?=[一-龥]{2})", text):
        yield m.start(), m.end(), "无人"


# 14 of 14 right
@rule
def no_any(text: str, words: Words) -> Iterator[Edit]:
    """没有任何问题 → 任何问题都没有"""
    for m in re.finditer("(?<![再就还，])没有任何([^，。！？；：的]{1,6})(?=[，。；！])", text):
        v = view(text, words)
        if v.at(m.start(1), m.end(1)) and subject_only(v, v.starts[m.start(1)], m.end(1)):
            yield m.start(), m.end(), f"任何{m[1]}都没有"


# 26 of 27 right
@rule
def cannot(text: str, words: Words) -> Iterator[Edit]:
    """找不到钥匙 → 无法找到钥匙; 无法看清 → 看不清"""
    for m in re.finditer("(找|看|听|买|做|达|感受|得)不到(?=[一-龥])", text):
        if (
            not re.match("[了的]", text[m.end() :])
            and text[m.start() - 1 : m.start()] not in "意想办都快就再"
        ):
            yield m.start(), m.end(), f"无法{m[1]}到"
    for m in re.finditer("(?:无法|不能)(找|看|听|买|做|感受|得)到(?=[一-龥，。])", text):
        yield m.start(), m.end(), f"{m[1]}不到"
    for m in re.finditer("(看|听|分|认|说|弄)不(清|懂)(?!楚)", text):
        yield m.start(), m.end(), f"无法{m[1]}{m[2]}"
