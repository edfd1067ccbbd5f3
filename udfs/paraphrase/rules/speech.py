"""Reported speech."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.connectives import subject_only
from gaixie.udfs.paraphrase.rules.view import (
    QUESTION,
    THIRD,
    Edit,
    View,
    Words,
    balanced,
    rule,
    subject,
    view,
)

SAYING = "(?:表示|指出|称|说|认为|透露|警告说|解释说|预计|预测)"


# 15 of 15 right
@rule
def said_last(text: str, words: Words) -> Iterator[Edit]:
    """专家说，今年会更冷。 → 今年会更冷，专家说。"""
    v = view(text, words)
    for k, (a, b) in enumerate(v.sentences):
        m = re.fullmatch(f"([^，：]{{2,14}}{SAYING})，(.+)", text[a:b])
        if (
            not m
            or v.mark(k) not in "。"
            or not v.mark(k)
            or THIRD.search(m[2])
            or QUESTION.search(m[2])
        ):
            continue
        if re.match("据|但|而|所以|因此|不过|有|又|也|还|[我你对]", m[1]) or "，" in m[2][:3]:
            continue
        if balanced(m[1]) and speaker(v, a, a + len(m[1])):
            yield a, b, f"{m[2]}，{m[1]}"


def speaker(v: View, start: int, end: int) -> bool:
    """Whether the text between two offsets is a noun phrase and a verb of saying."""
    if not v.at(start, end):
        return False
    last = v.ends[end] - 1
    return subject_only(v, v.starts[start], v.tokens[last].start)


# 27 of 27 right
@rule
def according_to(text: str, words: Words) -> Iterator[Edit]:
    """据新华社报道，他已抵达 → 新华社报道称，他已抵达 / 他已抵达，新华社报道"""
    v = view(text, words)
    for _k, (a, b) in enumerate(v.sentences):
        m = re.match("据([^，：悉说]{2,16}?)(报道|介绍|说|透露|称|估计)，", text[a:b])
        if not m or m[1] in {"报道", "了解"} or not m[1].strip("《》"):
            continue
        if re.search("^(?:此|这|外|记者)|从|对", m[1]) or not balanced(m[1]):
            continue
        saying = "报道称" if m[2] == "报道" else m[2]
        yield a, a + m.end(), f"{m[1]}{saying}，"


# 27 of 29 right
@rule
def in_my_view(text: str, words: Words) -> Iterator[Edit]:
    """我认为这不公平 → 在我看来，这不公平"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile("(我|他|她|他们|她们|我们|[一-龥]{2,6}?)(认为|觉得)，?").match(text, c.start)
        if not m or not v.at(c.start, m.end(1)) or not subject_only(v, c.first, m.end(1)):
            continue
        if not QUESTION.search(v.text[c.start : v.sentences[c.sentence][1]]) and m.end() < c.end:
            k = v.starts.get(m.end(), 0)
            if v.word(k) == m[1] or m[1] == "个人" or text.count("认为") + text.count("觉得") > 1:
                continue
            if k and c.end - m.end() > 4 and v.text[m.end()] not in "很太非好有" and subject(v, k):
                yield c.start, m.end(), f"在{m[1]}看来，"


# 13 of 13 right
@rule
def in_view_of(text: str, words: Words) -> Iterator[Edit]:
    """在我看来，这不公平 → 我认为这不公平"""
    for m in re.finditer("(?:^|(?<=[。！？；“\n]))在([一-龥]{1,8})看来，(?=[^，。！？]{4,})", text):
        if m[1] not in {"外人", "旁人"}:
            yield m.start(), m.end(), f"{m[1]}认为，" if len(m[1]) > 1 else f"{m[1]}认为"


# 18 of 18 right
@rule
def quote_first(text: str, words: Words) -> Iterator[Edit]:
    """他说：“我不去。” → “我不去。”他说。"""
    for m in re.finditer(
        (
            "(?:^|(?<=[。！？\n]))([^，。！？；：“”\n]{1,14}[说道喊问])"
            "：“([^“”]+)([。！？…])”(?=$|\n|[^，。！？])"
        ),
        text,
    ):
        if not re.match("[但而所然于接又还]|最后|后来|因此|不过|有", m[1]):
            yield m.start(), m.end(), f"“{m[2]}{m[3]}”{m[1]}。"


# 22 of 22 right
@rule
def quote_last(text: str, words: Words) -> Iterator[Edit]:
    """“我不去。”他说。 → 他说：“我不去。”"""
    for m in re.finditer(
        "(?:^|(?<=[。！？\n]))“([^“”]+)([，。！？])”([^，。！？；：“”\n]{1,14}[说道喊问])。", text
    ):
        end = "。" if m[2] == "，" else m[2]
        yield m.start(), m.end(), f"{m[3]}：“{m[1]}{end}”"
