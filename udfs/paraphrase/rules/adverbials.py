"""Where time, place and sentence adverbs stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.connectives import subject_only
from gaixie.udfs.paraphrase.rules.view import (
    PERSONS,
    TIME,
    Clause,
    Edit,
    View,
    Words,
    predicate,
    rule,
    subject,
    view,
)


# 33 of 34 right
@rule
def time_first(text: str, words: Words) -> Iterator[Edit]:
    """他昨天去了北京 → 昨天他去了北京"""
    v = view(text, words)
    for m in TIME.finditer(text):
        c = next((c for c in v.clauses if c.start < m.start() < c.end), None)
        if not c or not v.at(m.start(), m.end()) or not subject_only(v, c.first, m.start()):
            continue
        if not predicate(v, v.starts.get(m.end(), len(v.tokens))) or more_times(v, c, m):
            continue
        if v.tag(c.first) == "m" or text[m.end()] == "之":
            continue
        yield c.start, m.end(), m.group() + text[c.start : m.start()]
        if len(m.group()) > 2 and c.number == 0:
            yield c.start, m.end(), m.group() + "，" + text[c.start : m.start()]


def more_times(v: View, clause: Clause, match: re.Match[str]) -> bool:
    """Whether the sentence names another time than the matched one."""
    a, b = v.sentences[clause.sentence]
    return len(TIME.findall(v.text, a, b)) > 1


# 31 of 33 right
@rule
def time_after_subject(text: str, words: Words) -> Iterator[Edit]:
    """昨天，他去了北京 → 他昨天去了北京"""
    v = view(text, words)
    for c in v.clauses:
        m = TIME.match(text, c.start)
        if not m or not v.at(m.start(), m.end()) or more_times(v, c, m):
            continue
        at = m.end() + (text[m.end() : m.end() + 1] == "，")
        k = subject(v, v.starts.get(at, len(v.tokens)))
        if k:
            end = v.tokens[k].start
            by = "于" if m.group()[:2].isdigit() and (v.tag(k) == "v" or v.word(k) == "被") else ""
            yield c.start, end, text[at:end] + by + m.group()


MOVERS = (
    "其实|显然|也许|或许|大概|果然|幸好|幸亏|毕竟|本来|原本|后来"
    "|最终|通常|有时|突然|忽然|渐渐|事实上|实际上|起初|偶尔"
)
MOVERS += (
    "|在某种程度上|在大多数情况下|总的来说|一般来说|理论上|基本上"
    "|原则上|因此|因而|于是|随后|随即|从此|据说|据报道|据悉"
)
NEVER_LAST = {"就", "才", "是", "也", "都", "便", "又"}


# 30 of 30 right
@rule
def adverb_after_subject(text: str, words: Words) -> Iterator[Edit]:
    """也许他不会来 → 他也许不会来"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile(f"({MOVERS})").match(text, c.start)
        if m and text.count(m.group()) > 1:
            continue
        if m and v.at(m.start(), m.end()):
            k = subject(v, v.starts[m.end()]) if m.end() in v.starts else None
            if k and v.word(k) not in NEVER_LAST:
                yield c.start, v.tokens[k].start, text[m.end() : v.tokens[k].start] + m.group()
            at = m.end() + 1
            k = subject(v, v.starts[at]) if text[m.end() : at] == "，" and at in v.starts else None
            if k and v.word(k) not in NEVER_LAST:
                yield c.start, v.tokens[k].start, text[at : v.tokens[k].start] + m.group()


# 27 of 29 right
@rule
def adverb_first(text: str, words: Words) -> Iterator[Edit]:
    """他也许不会来 → 也许他不会来"""
    v = view(text, words)
    for m in re.finditer(f"{MOVERS}|可能|似乎|好像", text):
        c = next((c for c in v.clauses if c.start < m.start() < c.end), None)
        if c and v.at(m.start(), m.end()) and subject_only(v, c.first, m.start()):
            if predicate(v, v.starts.get(m.end(), len(v.tokens))) and v.tag(c.first) != "m":
                yield c.start, m.end(), m.group() + text[c.start : m.start()]


PLACE = "在[^，。！？；：在时后前]{2,14}(?:[里中内下间]|方面|期间|情况下|过程中|情况)"


# 27 of 28 right
@rule
def place_after_subject(text: str, words: Words) -> Iterator[Edit]:
    """在这种情况下，他不能走 → 他在这种情况下不能走"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile(f"({PLACE})，").match(text, c.start)
        k = m and m.end() in v.starts and subject(v, v.starts[m.end()])
        if m and k and v.word(k) not in {"在", "也", "都", "还", "就"} and not own_pronoun(v, m, k):
            yield c.start, v.tokens[k].start, text[m.end() : v.tokens[k].start] + m.group(1)


def own_pronoun(v: View, match: re.Match[str], k: int) -> bool:
    """Whether the subject before token k is a pronoun that the matched phrase has too."""
    return v.word(k - 1) in PERSONS and v.word(k - 1) in match.group(1)


# 23 of 24 right
@rule
def place_first(text: str, words: Words) -> Iterator[Edit]:
    """他在这种情况下不能走 → 在这种情况下，他不能走"""
    v = view(text, words)
    for c in v.clauses:
        for m in re.finditer(PLACE, text[c.start : c.end]):
            at, end = c.start + m.start(), c.start + m.end()
            if m.start() and v.at(at, end) and subject_only(v, c.first, at):
                inner, after = v.tag(v.starts[at] + 1), v.starts.get(end, len(v.tokens))
                if (
                    not predicate(v, after)
                    or c.number
                    or inner in {"v", "uz", "d"}
                    or text[at + 1] == "等"
                ):
                    continue
                if not re.match("度过|排|占|居|位", v.word(after)):
                    yield c.start, end, m.group() + "，" + text[c.start : at]


# 7 of 7 right
@rule
def phrase_after_subject(text: str, words: Words) -> Iterator[Edit]:
    """根据合同，房东必须维修 → 房东根据合同必须维修"""
    v = view(text, words)
    for c in v.clauses:
        basis = "法律?|规定|合同|协议|定义|逻辑|标准|计划|要求|目标|法|法律|条例|习俗|传统|惯例"
        basis = f"((?:根据|按照|依照)[^，。！？；：]{{0,10}}(?:{basis}))，"
        m = re.compile(basis).match(text, c.start)
        k = m and m.end() in v.starts and subject(v, v.starts[m.end()])
        if m and k and v.word(k) not in {"是", "都", "也"}:
            yield c.start, v.tokens[k].start, text[m.end() : v.tokens[k].start] + m[1]
