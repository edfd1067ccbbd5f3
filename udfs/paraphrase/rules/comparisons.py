"""Verbs with 于, and comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.connectives import subject_only
from gaixie.udfs.paraphrase.rules.view import NOUN, NUMERAL, QUESTION, TIME, Edit, Words, rule, view


# 13 of 13 right
@rule
def yu_first(text: str, words: Words) -> Iterator[Edit]:
    """成立于1990年 → 于1990年成立"""
    verbs = (
        "成立|出生|始建|建成|创立|创建|创办|发表|去世|逝世"
        "|出版|举行|发行|完成|开业|竣工|上映|发布|开通|落成"
    )
    for m in re.finditer(
        f"({verbs})于({NUMERAL}{{2,4}}年(?:{NUMERAL}+月)?(?:{NUMERAL}+[日号])?)(?=[，。；]|$)", text
    ):
        yield m.start(), m.end(), f"于{m[2]}{m[1]}"


# 6 of 6 right
@rule
def yu_last(text: str, words: Words) -> Iterator[Edit]:
    """于1990年成立 → 成立于1990年"""
    verbs = "成立|出生|建成|创立|创建|发表|去世|逝世|出版|完成|竣工|落成"
    for m in re.finditer(
        f"[于在]({NUMERAL}{{2,4}}年(?:{NUMERAL}+月)?(?:{NUMERAL}+[日号])?)({verbs})(?=[，。；]|$)",
        text,
    ):
        yield m.start(), m.end(), f"{m[2]}于{m[1]}"


# 21 of 22 right
@rule
def graduate(text: str, words: Words) -> Iterator[Edit]:
    """毕业于北京大学 → 从北京大学毕业"""
    for m in re.finditer("毕业于([^，。！？；：]{2,14})(?=[，。；]|$)", text):
        yield m.start(), m.end(), f"从{m[1]}毕业"
    for m in re.finditer(
        "(就读|任职|任教|出生|工作)于([^，。！？；：0-9年的并后和]{2,14})(?=[，。；]|$)", text
    ):
        yield m.start(), m.end(), f"在{m[2]}{m[1]}"


# 15 of 16 right
@rule
def differ(text: str, words: Words) -> Iterator[Edit]:
    """不同于以往 → 与以往不同"""
    for m in re.finditer(
        "(?<!不)(不同|类似|等同|有别)于([^，。！？；：的]{2,12})(?=[，。；]|$)", text
    ):
        yield m.start(), m.end(), f"与{m[2]}{m[1]}"
    for m in re.finditer("[与和跟]([^，。！？；：的与和跟]{2,12})(不同|类似)(?=[，。；])", text):
        v = view(text, words)
        if v.at(m.start(), m.end(1)) and v.tag(v.starts[m.start()] - 1) not in NOUN | {
            "r",
            "d",
            "uj",
        }:
            yield m.start(), m.end(), f"{m[2]}于{m[1]}"


# 16 of 16 right
@rule
def higher_than(text: str, words: Words) -> Iterator[Edit]:
    """高于平均水平 → 比平均水平高"""
    for m in re.finditer(
        "(高|低|大|小|多|少|早|晚)于([^，。！？；：的]{2,12})(?=[，。；]|$)", text
    ):
        v = view(text, words)
        if not v.at(m.start(2), m.end(2)) or not subject_only(v, v.starts[m.start(2)], m.end(2)):
            continue
        before = text[: m.start()]
        if not re.search(f"^{NUMERAL}|平均$|[这那]", m[2]) and not re.search(
            "[不忙至等由远略大显最稍均]$", before
        ):
            yield m.start(), m.end(), f"比{m[2]}{m[1]}"


# 13 of 13 right
@rule
def depend_on(text: str, words: Words) -> Iterator[Edit]:
    """价格取决于质量 → 价格由质量决定"""
    for m in re.finditer("取决于([^，。！？；：]{2,14})(?=[，。；]|$)", text):
        if not QUESTION.search(m[1]) and "是否" not in m[1]:
            yield m.start(), m.end(), f"由{m[1]}决定"


# 18 of 18 right
@rule
def compared_with(text: str, words: Words) -> Iterator[Edit]:
    """今年比去年更冷 → 与去年相比，今年更冷"""
    v = view(text, words)
    for c in v.clauses:
        m = re.fullmatch(
            "([^比，]{1,10})比([^比，]{1,12}?)(更|还要|要|[一-龥])([^，]{1,12})",
            text[c.start : c.end],
        )
        if not m or not v.at(c.start + len(m[1]), c.start + len(m[1]) + 1):
            continue
        k = v.starts[c.start + len(m[1])]
        for j in range(k + 2, c.last + 1):
            end = v.tokens[j - 1].end
            if v.tag(j) in {"a", "d", "ad"} and (
                subject_only(v, k + 1, end) or TIME.fullmatch(text, v.tokens[k + 1].start, end)
            ):
                one, two = text[c.start : v.tokens[k].start], text[v.tokens[k + 1].start : end]
                whole = subject_only(v, c.first, v.tokens[k].start) or TIME.fullmatch(one)
                if whole:
                    yield c.start, end, f"与{two}相比，{one}"
                break
