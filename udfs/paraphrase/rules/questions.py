"""Questions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.connectives import subject_only
from gaixie.udfs.paraphrase.rules.view import Edit, Words, rule, subject, view


# 24 of 24 right
@rule
def have_or_not(text: str, words: Words) -> Iterator[Edit]:
    """有没有人试过？ → 有人试过吗？"""
    v = view(text, words)
    for k, (a, b) in enumerate(v.sentences):
        if v.mark(k) not in {"？", "?"} or re.search("吗|还是|谁|什么|怎么|如何|为什么", text[a:b]):
            continue
        for m in re.finditer("有没有|能不能|会不会|可不可以|要不要|是不是|知不知道", text[a:b]):
            single = {
                "有没有": "有",
                "能不能": "能",
                "会不会": "会",
                "可不可以": "可以",
                "要不要": "要",
                "是不是": "是",
            }
            word = single.get(m.group(), "知道")
            tail = text[a + m.end() : b]
            clause = re.split("[，：]", text[a : a + m.start()])[-1]
            if re.search("知道|想|问|不管|无论|看看|确认|[不没]", clause + tail):
                continue
            if "，" not in tail and not re.search("[呢呀啊吧了]$", tail) and len(tail) > 1:
                yield a + m.start(), b, f"{word}{tail}吗"


# 36 of 36 right
@rule
def ma_to_whether(text: str, words: Words) -> Iterator[Edit]:
    """你会来吗？ → 你会不会来？ / 你是否会来？"""
    v = view(text, words)
    for c in v.clauses:
        end = v.sentences[c.sentence][1]
        if v.mark(c.sentence) not in {"？", "?"} or c.end != end or text[end - 1] != "吗":
            continue
        k = subject(v, c.first)
        if k is None:
            continue
        word, old = v.word(k), text[c.start : c.end]
        if (
            word
            not in {
                "会",
                "能",
                "可以",
                "应该",
                "知道",
                "是",
                "有",
                "要",
                "喜欢",
                "认为",
                "觉得",
                "需要",
                "相信",
                "愿意",
                "同意",
                "记得",
                "支持",
            }
            or "不" in old
        ):
            continue
        twice = {
            "可以": "可不可以",
            "知道": "知不知道",
            "会": "会不会",
            "能": "能不能",
            "有": "有没有",
            "是": "是不是",
        }
        at = v.tokens[k].start
        rest = text[v.tokens[k].end : c.end - 1]
        if not re.search("[了过]$|什么|谁|哪|多少|还是|已经|没|怎么|为什么|如何", rest) and rest:
            if word in twice:
                yield at, c.end, twice[word] + rest
            yield at, c.end, f"是否{word}{rest}"


# 9 of 9 right
@rule
def anyone(text: str, words: Words) -> Iterator[Edit]:
    """有人知道吗？ → 有没有人知道？"""
    for m in re.finditer(
        "(?:^|(?<=[，。！？：\n]))(请问)?有(人|谁)([^，。！？；：]{2,30})吗(?=[？?])", text
    ):
        if m[2] == "人" and not re.search("什么|怎么|谁|哪|不|没", m[3]):
            yield m.start(), m.end(), f"{m[1] or ''}有没有人{m[3]}"


# 24 of 24 right
@rule
def why_first(text: str, words: Words) -> Iterator[Edit]:
    """他为什么不来 → 为什么他不来"""
    v = view(text, words)
    for m in re.finditer("为什么|为何|什么时候", text):
        c = next((c for c in v.clauses if c.start < m.start() < c.end), None)
        if c and v.at(m.start(), m.end()) and subject_only(v, c.first, m.start()):
            yield c.start, m.end(), m.group() + text[c.start : m.start()]


# 24 of 25 right
@rule
def why_after_subject(text: str, words: Words) -> Iterator[Edit]:
    """为什么他不来 → 他为什么不来"""
    v = view(text, words)
    for m in re.finditer("为什么|为何", text):
        if m.end() in v.starts and m.start() in v.starts:
            k = subject(v, v.starts[m.end()])
            end = next((c.end for c in v.clauses if c.start <= m.start() < c.end), 0)
            if text[end : end + 1] == "，":
                continue
            if (
                k
                and v.word(k) not in {"就", "是"}
                and (m.start() == 0 or text[m.start() - 1] in "，。！？：；“但")
            ):
                at = v.tokens[k].start
                yield m.start(), at, text[m.end() : at] + m.group()


# 23 of 24 right
@rule
def le_ma(text: str, words: Words) -> Iterator[Edit]:
    """你吃饭了吗？ → 你吃饭了没有？"""
    for m in re.finditer("(?<=[一-龥]{2}了)吗(?=[？?])", text):
        before = re.split("[，。！？；：]", text[: m.start()])[-1]
        if (
            not re.search("不|没|难道|什么|谁|都|太|就|也|是|才|得了|能|会|知道|还有", before)
            and len(before) < 16
        ):
            yield m.start(), m.end(), "没有"
