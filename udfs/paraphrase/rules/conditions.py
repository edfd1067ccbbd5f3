"""Conditions and clauses of time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.view import (
    NUMERAL,
    THIRD,
    Edit,
    Words,
    pairs,
    plain,
    portable,
    rule,
    subject,
    view,
)


# 22 of 22 right
@rule
def when_shorter(text: str, words: Words) -> Iterator[Edit]:
    """当他到家时，… → 他到家时，… / 在他到家的时候，…"""
    for m in re.finditer(
        "(?:^|(?<=[，。！？；：“但而]))当([^，。！？；：]{3,24}?)(的时候|时)，", text
    ):
        other = {"时": "的时候", "的时候": "时"}[m[2]]
        yield m.start(), m.start() + 1, ""
        yield m.start(), m.end(), f"{m[1]}{other}，"


# 18 of 19 right
@rule
def when_longer(text: str, words: Words) -> Iterator[Edit]:
    """他到家时，… → 当他到家时，… / 他到家的时候，…"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile("([^当，。！？；：]{4,20}?)(的时候|时)，").match(text, c.start)
        if m and m.end() == c.end + 1 and subject(v, c.first) and v.at(m.start(2), m.end(2)):
            bad = (
                "同时|及时|小时|临时|此时|随时|到时|有时|平时$"
                "|在|^直到|^每|要|记得|趁|知道|说|想|如果"
            )
            if not re.search(bad, m.group()):
                yield c.start, c.start, "当"
                yield m.start(2), m.end(2), {"时": "的时候", "的时候": "时"}[m[2]]


# 17 of 17 right
@rule
def until_by(text: str, words: Words) -> Iterator[Edit]:
    """自5月1日起 → 从5月1日开始"""
    for m in re.finditer(
        (
            f"(自|从)({NUMERAL}+[年月日号][^，。！？；：自从到]{{0,9}}?"
            f"|今[天年日]|明[天年]|下?周[一二三四五六日])起(?=[，。；一-龥])"
        ),
        text,
    ):
        other = "从" if m[1] == "自" else "自"
        yield m.start(), m.end(), f"{other}{m[2]}{'开始' if other == '从' else '起'}"


# 13 of 13 right
@rule
def for_purpose(text: str, words: Words) -> Iterator[Edit]:
    """为了省钱，我们走路去 → 我们走路去，为的是省钱 / 我们为了省钱，走路去"""
    v = view(text, words)
    for a, b, mark in pairs(v):
        m = re.fullmatch("为了([^，]{2,20}(?<!起见))", text[a.start : a.end])
        k = subject(v, b.first)
        if not m or mark not in "。；" or not k or "不是" in m[1]:
            continue
        main = text[b.start : b.end]
        if v.tag(v.starts.get(m.start(1) + a.start, -1)) == "v" and not THIRD.search(main):
            yield a.start, b.end, f"{main}，为的是{m[1]}"
            yield a.start, b.end, f"{main}，目的是{m[1]}"
        at = v.tokens[k].start
        if v.word(k) not in {"就", "便"}:
            yield a.start, at, f"{text[b.start : at]}为了{m[1]}，"


# 6 of 7 right
@rule
def purpose_first(text: str, words: Words) -> Iterator[Edit]:
    """我们走路去，以便省钱 → 为了省钱，我们走路去"""
    v = view(text, words)
    for a, b, mark in pairs(v):
        m = re.fullmatch("(?:以便|为的是|目的是|以)([^，]{3,24})", text[b.start : b.end])
        first = text[a.start : a.end]
        if not m or mark not in "。；" or not plain(first) or not subject(v, a.first):
            continue
        if re.search("还|也|来|用于|[以为]", first):
            continue
        k = v.starts.get(b.start + m.start(1), -1)
        if v.tag(k) == "v" and not THIRD.search(m[1]) and v.word(b.first) in {"以便", "以", "为"}:
            yield a.start, b.end, f"为了{m[1]}，{first}"


# 5 of 6 right
@rule
def unless_last(text: str, words: Words) -> Iterator[Edit]:
    """除非下雨，否则比赛照常 → 比赛照常，除非下雨"""
    for m in re.finditer(
        "(?:^|(?<=[。！？；\n]))除非([^，。！？；：]+)，否则([^，。！？；：]+)(?=[。；])", text
    ):
        if portable(m[2], m[1]) and not THIRD.search(m[1]):
            yield m.start(), m.end(), f"{m[2]}，除非{m[1]}"


# 22 of 23 right
@rule
def not_but(text: str, words: Words) -> Iterator[Edit]:
    """这不是偶然，而是必然 → 这是必然，而不是偶然"""
    for m in re.finditer(
        "(?<!是)(?:并)?不是([^，。！？；：]{1,16})，而是([^，。！？；：“”]{1,20})(?=[。；！])", text
    ):
        if "不" not in m[1] + m[2]:
            yield m.start(), m.end(), f"是{m[2]}，而不是{m[1]}"


# 4 of 4 right
@rule
def not_only(text: str, words: Words) -> Iterator[Edit]:
    """他不仅会唱歌，还会跳舞 → 他除了会唱歌，还会跳舞"""
    v = view(text, words)
    for m in re.finditer(
        (
            "(?:不仅仅?|不但|不只|不光)([^，。！？；：]{2,18})"
            "，(?:而且)?(还|也)(?=[^，。！？；：]{2,})"
        ),
        text,
    ):
        k = v.starts.get(m.start(1), -1)
        if v.tag(k) == "v" and v.word(k) not in {"是", "没", "没有", "要"} and m[2] == "还":
            yield m.start(), m.end(), f"除了{m[1]}，还"


# 12 of 13 right
@rule
def first_then(text: str, words: Words) -> Iterator[Edit]:
    """先洗手，再吃饭 → 洗手之后再吃饭"""
    for m in re.finditer("先([^，。！？；：先]{2,10})，(?:然后)?再(?=[^，。！？；：]{2,})", text):
        if "生" != m[1][0] and not re.search("别|不要|得|落后|[了过]$", m[1]):
            yield m.start(), m.end(), f"{m[1]}之后再"
