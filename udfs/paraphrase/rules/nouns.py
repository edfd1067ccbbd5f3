"""Noun phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from gaixie.udfs.paraphrase.rules.connectives import subject_only
from gaixie.udfs.paraphrase.rules.view import (
    NUMERAL,
    PERSONS,
    QUESTION,
    Edit,
    View,
    Words,
    rule,
    slice_of,
    subject,
    view,
)
from gaixie.udfs.paraphrase.rules.voice import follows

MEASURE = "个|位|名|座|种|部|家|条|只|项|支|件|所|本|幅|颗|张|辆|艘|款|间|群|片|场|栋|份|台"


QUANTITY = f"(?:[一两三四五六七八九十几这那某](?:{MEASURE})|许多|很多|一些|不少|大量)"


# 34 of 38 right
@rule
def measure_inside(text: str, words: Words) -> Iterator[Edit]:
    """一位来自北京的老师 → 来自北京的一位老师"""
    v = view(text, words)
    for m in re.finditer(f"({QUANTITY})([^，。！？；：的、“”]{{3,16}}的)(?=[一-龥])", text):
        if not v.at(m.start(1), m.end(1)) or not v.at(m.start(2), m.end(2)):
            continue
        k, j = v.starts[m.start(2)], v.starts[m.end(2)]
        end = noun_end(v, j)
        if (
            v.tag(k) != "v"
            or v.tag(v.starts[m.start()] - 1) in {"uj", "r"}
            or not end
            or v.word(j) in {"人", "事", "地方"}
        ):
            continue
        if v.word(v.starts[m.start()] - 1) in {"有", "唯一", "每"} or re.match(
            ("人|叫|名叫|值得"), m[2]
        ):
            continue
        if not re.match(
            "如此|足够|只|获取|没有|有|是|会|能|像|被称|称为|可能|可以|想|应该", m[2]
        ) and not QUESTION.search(m[2]):
            yield m.start(), m.end(), m[2] + m[1]


def noun_end(v: View, k: int) -> int | None:
    """The token after a run of plain nouns from token k, if it closes a noun phrase."""
    j = k
    while v.tag(j) in {"n", "nz", "an", "nr", "ns", "nt", "a", "b"} and j < k + 3:
        j += 1
    closed = v.tag(j) in {"v", "d", "p", ""} or v.word(j) in {"，", "。", "；", "！", "？"}
    return j if j > k and v.tag(j - 1) in {"n", "nr", "ns", "nt", "nz"} and closed else None


# 17 of 18 right
@rule
def measure_outside(text: str, words: Words) -> Iterator[Edit]:
    """来自北京的一位老师 → 一位来自北京的老师"""
    v = view(text, words)
    for m in re.finditer(
        (
            f"(?<=[是有])((?:位于|来自|用于|横跨|流经|属于|由(?!于))[^，。！？；：的]{{2"
            f",20}}的)(一(?:{MEASURE}))(?=[一-龥]{{2,6}}[，。；])"
        ),
        text,
    ):
        if v.at(m.start(1), m.end(1)):
            yield m.start(), m.end(), m[2] + m[1]


ROLE = "首都|作者|主席|总统|创始人|导演|队长|校长|发明者|主角|首府|总部|前身|最大城市"


# 8 of 9 right
@rule
def identity(text: str, words: Words) -> Iterator[Edit]:
    """巴黎是法国的首都 → 法国的首都是巴黎; 最高的山是珠峰 → 珠峰是最高的山"""
    v = view(text, words)
    for c in v.clauses:
        m = re.fullmatch("([^是，]{2,16})是([^是，]{3,24})", text[c.start : c.end])
        if not m or follows(v, c) or not v.at(c.start, c.start + len(m[1])):
            continue
        whole = subject_only(v, c.first, c.start + len(m[1]))
        if (
            whole
            and re.search(
                "^[^最，]{0,14}(?:最[一-龥]{1,3}的|唯一的|第一[个位座条部])[^，之的]{1,8}$", m[2]
            )
            and unique(m[1], m[2])
        ):
            yield c.start, c.end, f"{m[2]}是{m[1]}"
        elif re.search(
            "^[^的]{0,10}(?:最[一-龥]{1,3}的|唯一的|第一[个位座条部])[^，之的]{1,8}$", m[1]
        ) and unique(m[2], m[1]):
            if v.at(c.start + m.start(2), c.end) and subject_only(
                v, v.starts[c.start + m.start(2)], c.end
            ):
                yield c.start, c.end, f"{m[2]}是{m[1]}"


def unique(thing: str, description: str) -> bool:
    """Whether a thing may change places with its description around 是."""
    return not re.match("[这那此它他她一]|我的?$|也|都|还|就|不", thing) and not re.search(
        "之一|没有|一个$|时候|一次|吗|[也都还就不]", thing + description
    )


ATTRIBUTE = (
    "个子|身高|皮肤|头发|眼睛|脸|声音|心情|体重|脾气|性格|手|腿|肚子|头|背|胃口|身体|工资"
    "|压力|记性|视力|胆子|脸色|力气|价格|质量|味道|面积|体积|颜色|房间|位置|交通|风景|速度"
)


# 4 of 4 right
@rule
def attribute_topic(text: str, words: Words) -> Iterator[Edit]:
    """他的个子很高 → 他个子很高"""
    for m in re.finditer(
        (
            "(?:^|(?<=[，。！？；：]))([我你他她它]们?)(的)(?="
            f"(?:{ATTRIBUTE})(?:很|非常|不太|特别|十分|比较))"
        ),
        text,
    ):
        yield m.start(2), m.end(2), ""


# 19 of 21 right
@rule
def same_pronoun(text: str, words: Words) -> Iterator[Edit]:
    """我是新手，我想请教 → 我是新手，想请教"""
    v = view(text, words)
    for a, b in pairwise(v.clauses):
        same = v.word(a.first) == v.word(b.first) and v.word(a.first) in PERSONS
        if (
            same
            and a.sentence == b.sentence
            and text[a.end : b.start] == "，"
            and subject(v, a.first) == a.first + 1
        ):
            if (
                v.word(b.first + 2) == "知道"
                or slice_of(v, a) == slice_of(v, b)
                or text[a.end - 1] in "天年日时后前"
            ):
                continue
            bad = "是|在|对|为|说|想|的|知道|准备"
            said = re.search(
                "[说想问]|觉得|认为|知道|希望|告诉|看到|听|表示|相信|记得|问|如果|当|因为",
                text[a.start : a.end],
            )
            if said or text[a.start - 1 : a.start] == "，":
                continue
            if subject(v, b.first) == b.first + 1 and v.word(b.first + 1) not in bad.split("|"):
                yield b.start, v.tokens[b.first].end, ""


# 31 of 32 right
@rule
def middle_of_list(text: str, words: Words) -> Iterator[Edit]:
    """苹果、梨、桃和李 → 苹果、桃、梨和李"""
    v = view(text, words)
    for m in re.finditer(
        (
            "(?<=、)([^、，。！？；：和与及或]{1,10})、"
            "([^、，。！？；：和与及或]{1,10})(?=[、和与及或])"
        ),
        text,
    ):
        if re.search("从[^，。]*到|依次|先后", text[: m.start()]) or v.tag(
            v.starts.get(m.start(1), -1)
        ) in {"v", "d"}:
            continue
        if (
            v.at(m.start(1), m.end(1))
            and v.at(m.start(2), m.end(2))
            and not re.search(f"{NUMERAL}|[第首次初再末上中下前后]", m.group())
        ):
            yield m.start(), m.end(), f"{m[2]}、{m[1]}"


# 34 of 37 right
@rule
def two_nouns(text: str, words: Words) -> Iterator[Edit]:
    """老师和家长 → 家长和老师"""
    v = view(text, words)
    for k in range(1, len(v.tokens) - 1):
        if v.word(k) not in {"和", "与", "及", "以及", "或", "或者"}:
            continue
        a, b = v.tokens[k - 1], v.tokens[k + 1]
        if (
            a.tag != b.tag
            or a.tag not in {"n", "ns", "nr", "nt", "nz"}
            or abs(len(a.word) - len(b.word)) > 1
            or min(len(a.word), len(b.word)) < 2
        ):
            continue
        left = v.tag(k - 2) in {"v", "p", "x", "c", ""} and v.word(k - 2) not in {"、", "是"}
        symmetric = re.match(
            "相|不同|一样|无关|有关|合作|结婚|类似|同|没有关|之间的", v.word(k + 2)
        )
        if symmetric or (
            v.tag(k - 2) not in {"v", "p"} and v.word(k + 2) not in {"都", "均", "，", "。"}
        ):
            continue
        if re.match("父|母|男|女|爸|妈|银牌|金牌|编码|老师|学生|中国", a.word):
            continue
        right = v.word(k + 2) in {"，", "。", "；", "！", "", "等", "都", "之间"} or v.tag(
            k + 2
        ) in {"d", "v"}
        if left and right and re.search(f"{NUMERAL}", a.word + b.word) is None:
            yield a.start, b.end, f"{b.word}{v.word(k)}{a.word}"
