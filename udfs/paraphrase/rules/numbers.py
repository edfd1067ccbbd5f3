"""Numbers, weekdays and counts in another writing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from gaixie.udfs.paraphrase.rules.view import NUMERAL, Edit, Words, rule

DIGITS = "零一二三四五六七八九"


def spelled(number: int) -> str:
    """A whole number below 10000 in Chinese: 105 → 一百零五"""
    out, zero = "", False
    for place, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, place)
        if digit:
            out += ("零" if zero and out else "") + DIGITS[digit] + unit
            zero = False
        else:
            zero = True
    out = out or "零"
    return out[1:] if out.startswith("一十") else out


def parsed(number: str) -> int | None:
    """A Chinese whole number below 10000, or None: 一百零五 → 105"""
    for k in range(10000):
        if spelled(k) == number:
            return k
    return None


@lru_cache(maxsize=1)
def numerals() -> dict[str, int]:
    """Chinese numerals with their values."""
    return {spelled(k): k for k in range(10000)}


# 24 of 24 right
@rule
def percent(text: str, words: Words) -> Iterator[Edit]:
    """30% → 百分之三十; 百分之三十 → 30%"""
    for m in re.finditer(
        "(?<![0-9.,~～至到-])([0-9]{1,3})(?:\\.([0-9]{1,2}))?[%％](?![0-9~～至到-])", text
    ):
        part = "点" + "".join(DIGITS[int(d)] for d in m[2]) if m[2] else ""
        if text.count("%") + text.count("％") + text.count("百分") > 1:
            continue
        yield m.start(), m.end(), f"百分之{spelled(int(m[1]))}{part}"
    for m in re.finditer(
        "百分之([零一二三四五六七八九十百]+)(?![点几多来数至到零一二三四五六七八九十百])", text
    ):
        if m[1] in numerals():
            yield m.start(), m.end(), f"{numerals()[m[1]]}%"


# 18 of 18 right
@rule
def tenths(text: str, words: Words) -> Iterator[Edit]:
    """三成 → 百分之三十"""
    for m in re.finditer(
        "(?<![一二三四五六七八九十第有几百千万])([一二三四五六七八九])成(?=[，。；的以左多是]|$)",
        text,
    ):
        yield m.start(), m.end(), f"百分之{m[1].replace('一', '')}十"


# 20 of 20 right
@rule
def weekday(text: str, words: Words) -> Iterator[Edit]:
    """周四 → 星期四"""
    for m in re.finditer(
        (
            "(?<![一二三四五六七八九十几两每])(周|星期)"
            "([一二三四五六])(?![一二三四五六七八九十至到日天年月岁、])"
        ),
        text,
    ):
        if len(re.findall("周[一二三四五六日]|星期", text)) == 1 and not re.search(
            "[0-9满第双多]$", text[: m.start()]
        ):
            yield m.start(), m.end(), ("星期" if m[1] == "周" else "周") + m[2]


COUNTED = (
    "个|天|年|岁|名|人|次|小时|分钟|秒|度|元|块|米|公里|公斤|斤|吨|克|厘米|毫米|平方米|"
    "公顷|箱|件|户|层|页|辆|艘|只|万|亿|倍|家|所|座|位|届|集|条|种|支|台|本|篇|套|枚|场"
)


BEFORE = f"(?<![第几数两0-9.年月点分之初{NUMERAL[1:-1]}])"


# 28 of 29 right
@rule
def count_in_digits(text: str, words: Words) -> Iterator[Edit]:
    """十八度 → 18度; 三万元 → 3万元 (all counts of a text at once, lest it mix two ways)"""
    found = []
    pattern = f"{BEFORE}([一二三四五六七八九十百千零两]{{1,8}})(?=(?:{COUNTED})(?![半几多来代]))"
    for m in re.finditer(pattern, text):
        value = 2 if m[1] == "两" else numerals().get(m[1])
        large = value and (value >= 10 or (text[m.end()] in "万亿" and value > 1))
        if large and m[1] not in {"十", "百", "千", "一千", "一百"} and text[m.end()] != "条":
            found.append((m.start(), m.end(), str(value)))
    if found and found[-1][1] - found[0][0] <= 24:
        out, at = "", found[0][0]
        for start, end, new in found:
            out, at = out + text[at:start] + new, end
        rest = text[: found[0][0]] + text[at:]
        if not re.search(
            "[二三四五六七八九十][百千万]|十[一二三四五六七八九]?(?![一-龥]{0,1}[分全])", rest
        ):
            yield found[0][0], at, out


# 22 of 24 right
@rule
def count_in_words(text: str, words: Words) -> Iterator[Edit]:
    """3个月 → 三个月"""
    for m in re.finditer(
        (
            "(?<![0-9.,，:：~～/第A-Za-z至到年月（( -])"
            f"([1-9][0-9]?)(?=(?:{COUNTED})(?![0-9代级款日男女]))"
        ),
        text,
    ):
        value = int(m[1])
        if (
            text[m.end()] in "亿度"
            or (value > 10 and text[m.end()] != "岁")
            or len(re.findall("[0-9]+", text)) > 1
        ):
            continue
        two = value == 2 and text[m.end()] not in "度月"
        yield m.start(), m.end(), "两" if two else spelled(value)
