"""Rules for noun phrases, lists, voice and the frames of verbs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.tables import expression, words
from gaixie.udfs.paraphrase.rules.view import (
    NUMERAL,
    PERSONS,
    Clause,
    Edit,
    View,
    filled,
    follows,
    rule,
    subject_only,
)

ONLY = expression("only")
SUO_VERB, SUO_NEVER = expression("suo_verb"), words("suo_never")
RESULT, KIN, NOT_UNIQUE = expression("result"), words("kin_with_de"), expression("not_unique")
NAMES = {"n", "ns", "nt", "nz", "nr"}


# 34 of 38 right
# 8 of 9 right
@rule
def identity(v: View) -> Iterator[Edit]:
    """最高的山是珠峰 → 珠峰是最高的山"""
    for c in v.clauses:
        m = re.fullmatch("([^是，]{2,16})是([^是，]{3,24})", v.span(c))
        middle = c.start + len(m[1]) if m else -1
        if not m or follows(v, c) or not v.at(c.start, middle):
            continue
        if re.search(f"^[^最，]{{0,14}}{ONLY}", m[2]) and _unique(m[1], m[2]):
            fine = subject_only(v, c.first, middle)
        else:
            fine = False
        if not fine and re.search(f"^[^的]{{0,10}}{ONLY}", m[1]) and _unique(m[2], m[1]):
            fine = filled(v, middle + 1, c.end)
        if fine:
            yield c.start, c.end, f"{m[2]}是{m[1]}"


def _unique(thing: str, description: str) -> bool:
    """Tells whether a thing may swap places with its description around 是."""
    return not re.match("[这那此它他她一]|我的?$|也|都|还|就|不", thing) and not re.search(
        NOT_UNIQUE, thing + description
    )


# 22 of 24 right
@rule
def first_of_list(v: View) -> Iterator[Edit]:
    """包括苹果、梨和李 → 包括梨、苹果和李"""
    for k in range(len(v.tokens) - 3):
        one, mark, two, after = v.tokens[k : k + 4]
        if mark.word != "、" or after.word not in {"、", "和", "与", "及", "以及", "等"}:
            continue
        left = v.tag(k - 1) in {"v", "p", ""} or v.word(k - 1) in {"，", "：", "。"}
        if not left or one.tag != two.tag or one.tag not in NAMES:
            continue
        ordered = re.search("其|从|依次|先后|继|国际", v.text[max(0, one.start - 12) : two.end])
        if min(len(one.word), len(two.word)) > 1 and not ordered:
            yield one.start, two.end, f"{two.word}、{one.word}"


# 34 of 37 right
@rule
def two_nouns(v: View) -> Iterator[Edit]:
    """老师和家长 → 家长和老师"""
    fixed = f"父|母|男|女|爸|妈|银牌|金牌|编码|老师|学生|中国|.*{NUMERAL}"
    symmetric = "相|不同|一样|无关|有关|合作|结婚|类似|同|没有关|之间的"
    for k in range(1, len(v.tokens) - 1):
        a, b, left, right = v.tokens[k - 1], v.tokens[k + 1], v.tag(k - 2), v.word(k + 2)
        if v.word(k) not in {"和", "与", "及", "以及", "或", "或者"} or a.tag != b.tag:
            continue
        if a.tag not in NAMES or abs(len(a.word) - len(b.word)) > 1:
            continue
        if min(len(a.word), len(b.word)) < 2 or re.match(symmetric, right):
            continue
        if left not in {"v", "p"} and right not in {"都", "均", "，", "。"}:
            continue
        if re.match(fixed, a.word) or re.search(NUMERAL, b.word):
            continue
        opens = left in {"v", "p", "x", "c", ""} and v.word(k - 2) not in {"、", "是"}
        ends = right in {"，", "。", "；", "！", "", "等", "都", "之间"}
        if opens and (ends or v.tag(k + 2) in {"d", "v"}):
            yield a.start, b.end, f"{b.word}{v.word(k)}{a.word}"


# 13 of 13 right
@rule
def kin_de(v: View) -> Iterator[Edit]:
    """我妈妈 → 我的妈妈"""
    for k in range(1, len(v.tokens)):
        mine = v.word(k) in KIN and v.word(k - 1) in {"我", "你", "他", "她"}
        if mine and v.tag(k + 1) not in {"n", "uj", "nr"} and v.tag(k - 2) != "v":
            yield v.tokens[k].start, v.tokens[k].start, "的"


# 24 of 26 right
@rule
def suo_in(v: View) -> Iterator[Edit]:
    """我们需要的时间 → 我们所需要的时间"""
    for m in re.finditer(f"(?<=[一-龥])({SUO_VERB})的(?=[一-龥])", v.text):
        k = v.starts.get(m.start(), -1)
        if k <= 0 or v.word(k) != m[1] or v.tag(k + 1) != "uj" or v.word(k + 2) in SUO_NEVER:
            continue
        person = v.word(k - 1) in PERSONS - {"大家"} and v.tag(k - 1) == "r"
        if (person or v.tag(k - 1) in {"nr", "ns", "nt"}) and v.tag(k - 2) not in {"p", "uj", "n"}:
            yield m.start(), m.start(), "所"


# 39 of 42 right
@rule
def indefinite(v: View) -> Iterator[Edit]:
    """许多人认为 → 有许多人认为; 有一名男子被捕 → 一名男子被捕"""
    start = "(?:^|(?<=[。！？；\n])|(?<=[^0-9]，))"
    amount = "一[名位]|许多|很多|不少|几[名位]|[0-9]+[名位]|数[百千十][名位]?"
    never = {"都", "也", "是", "会", "可以", "在", "还", "应", "应该", "将"}
    for m in re.finditer(f"{start}(?:{amount})(?=[一-龥])", v.text):
        k = v.subject_at(m.start())
        if k and "的" not in v.text[m.start() : v.tokens[k].start] and v.word(k) not in never:
            yield m.start(), m.start(), "有"
    for m in re.finditer(f"{start}有(?=(?:一[名位]|(?:许多|很多|不少)人)[一-龥])", v.text):
        if v.subject_at(m.end()):
            yield m.start(), m.end(), ""


# 19 of 22 right
# 15 of 15 right
@rule
def verb_to_ba(v: View) -> Iterator[Edit]:
    """打开了那扇门 → 把那扇门打开了"""
    find = f"([一-龥]{RESULT})了([^，。！？；：了]{{2,10}})(?=[，。；！]|$)"
    for m in re.finditer(find, v.text):
        definite = re.match("[这那该此]|我|你|他|她|它|所有|全部", m[2])
        if not definite or re.search(NUMERAL, m[2]) or not filled(v, *m.span(2)):
            continue
        if v.tag(v.starts.get(m.start(), -1)) in {"v", "vd"}:
            if not re.match("离开|召开|展开|死|充满|公开", m[1]):
                yield m.start(), m.end(), f"把{m[2]}{m[1]}了"


# 15 of 16 right
@rule
def ba_to_bei(v: View) -> Iterator[Edit]:
    """他把杯子打碎了 → 杯子被他打碎了"""
    for c in v.clauses:
        if re.search("^([^把，]{1,8})(?:把|将)([^把，]{2,12})$", v.span(c)):
            yield from _swap_voice(v, c, {"把", "将"}, "被")


# 2 of 2 right
@rule
def bei_to_ba(v: View) -> Iterator[Edit]:
    """杯子被他打碎了 → 他把杯子打碎了"""
    for c in v.clauses:
        yield from _swap_voice(v, c, {"被"}, "把")


def _swap_voice(v: View, c: Clause, marks: set[str], other: str) -> Iterator[Edit]:
    """Swaps subject and noun phrase around another marker: subject, marker, phrase, rest."""
    for k in range(c.first + 1, c.last - 2):
        if v.word(k) not in marks or not subject_only(v, c.first, v.tokens[k - 1].end):
            continue
        verbs = (j for j in range(k + 2, c.last) if v.tag(j) == "v" and v.tag(j - 1) != "vn")
        j = next((j for j in verbs if subject_only(v, k + 1, v.tokens[j - 1].end)), None)
        if j is None or follows(v, c):
            continue
        one, at = v.text[c.start : v.tokens[k - 1].end], v.tokens[j].start
        rest = v.text[at : c.end]
        done = re.search(f"了$|{RESULT}了|[在到给成为走出上下进起回]", rest)
        if done and "的" not in rest:
            yield c.start, at, f"{v.text[v.tokens[k].end : at]}{other}{one}"
