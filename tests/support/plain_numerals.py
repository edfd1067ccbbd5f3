"""Finds numbers by the grammar of udfs/text/numerals.py, to test its kernel against."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from gaixie.udfs.text import quantities
from gaixie.udfs.text.numerals import BEFORE, BEHIND, CODE, DIGITS, MEASURES, UNITS, Number

_CHINESE = "".join([*DIGITS, *UNITS])
_DIGIT, _UNIT = f"[{''.join(DIGITS)}]", f"[{''.join(UNITS)}]"
_UNITS = rf"(?:[多余](?={_UNIT}))?{_UNIT}*"
_ARABIC = rf"(?:[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?{_UNITS}"
_DECIMAL = rf"点{_DIGIT}++(?![十分]){_UNIT}*"
_NUMERAL = rf"(?:{_ARABIC}|[{_CHINESE}]++(?:{_DECIMAL}|{_UNITS}))"
NUMBER = re.compile(rf"({_NUMERAL})(?:分之({_NUMERAL})|([%‰]))?")


def find(text: str, words: Sequence[str]) -> list[Number]:
    """Returns the numbers of a normalised text, given with its words, in order, by definition."""
    edges = [0, *accumulate(map(len, words))]
    numbers, position = [], 0
    while position < len(text):
        if match := CODE.match(text, position):
            position = match.end()
        elif match := NUMBER.match(text, position):
            numbers.append(_number(text, edges, match))
            position = numbers[-1].end
        elif text[position] == "半" and (counted := quantity(text, position, position + 1, 0.5)):
            numbers.append(Number(0.5, True, position, position + 1, *counted))
            position += 1
        else:
            position += 1
    return numbers


def _number(text: str, edges: list[int], match: re.Match[str]) -> Number:
    start, end = match.span()
    numeral, share, sign = match.groups()
    number = value(numeral)
    tenth = None if share or sign or number > 10 else _tenth(text, end, edges)
    if share:
        number = value(share) / number if number else 0.0
    elif sign:
        number /= 100 if sign == "%" else 1000
    elif tenth:
        hundredths = (DIGITS | {"": 0, "半": 5})[tenth[1:]]
        number, end = (number * 10 + hundredths) / 100, end + len(tenth)
    first = max(edge for edge in edges if edge <= start)
    last = min(edge for edge in edges if edge >= end)
    inside = set(text[first:last]) - set(_CHINESE + MEASURES)
    weak = (
        numeral in ("一", "十")
        or numeral[0] in "百千万亿"
        or bool(not numeral[0].isascii() and inside)
    )
    strong = (
        share or tenth or (start and text[start - 1] in BEFORE) or text[end : end + 1] in [*BEHIND]
    )
    if share or sign or tenth:
        counted = left(text[:start], number)
    else:
        counted = quantity(text, start, end, number) or (quantities.NOTHING, number)
    return Number(number, weak and not strong, start, end, *counted)


def _tenth(text: str, end: int, edges: list[int]) -> str | None:
    """Returns 成 and a digit or 半 that follows it, if a word ends there."""
    for match in (re.compile(pattern).match(text, end) for pattern in (f"成(?:{_DIGIT}|半)", "成")):
        if match and match.end() in edges:
            return match[0]
    return None


_NAMES = {
    unit: (dimension, size)
    for dimension, own in quantities.UNITS.items()
    for unit, size in own.items()
}
_LONGEST_FIRST = "|".join(sorted(_NAMES, key=lambda unit: -len(unit)))
QUANTITY = re.compile(
    rf"[{quantities.SOME}]?(?:(个)(?:(半)|[{quantities.SOME}])?)?({_LONGEST_FIRST})(半)?"
)


def quantity(text: str, start: int, end: int, number: float) -> tuple[int, float] | None:
    """Returns (dimension, amount) of the number text[start:end], if a unit follows."""
    match = QUANTITY.match(text, end)
    if match is None or _NAMES[match[3]][0] == quantities.NOTHING:
        return None
    if match[3] == "月" and not match[1]:
        return None
    dimension, size = _NAMES[match[3]]
    return dimension, (number + bool(match[2]) / 2 + bool(match[4]) / 2) * size


def left(before: str, share: float) -> tuple[int, float]:
    """Returns (dimension, amount) of a share, by the text before it."""
    between = rf"[{quantities.BETWEEN}]{{0,5}}+$"
    if re.search(rf"[{quantities.CUT}]{between}", before):
        return quantities.LEFT, 1.0 - share
    if re.search(rf"[{quantities.KEPT}]{between}", before):
        return quantities.LEFT, share
    return quantities.NOTHING, share


def value(numeral: str) -> float:
    """Returns the value of a numeral of the grammar."""
    arabic = rf"([0-9,]+)(?:\.([0-9]+))?[多余]?({_UNIT}*)"
    chinese = rf"([{_CHINESE}]++)(?:点({_DIGIT}+)|[多余])?({_UNIT}*)"
    match = re.fullmatch(arabic, numeral) or re.fullmatch(chinese, numeral)
    if match is None:
        raise ValueError(f"{numeral!r} is no numeral")
    whole, decimals, units = match.groups(default="")
    number = _row(whole.replace(",", "")) if whole[0].isascii() else _chinese(whole)
    if decimals:
        if whole[0].isascii():  # one division, as the kernel does for all digits
            number = _row(whole.replace(",", "") + decimals) / 10.0 ** len(decimals)
        else:
            number += _row(decimals) / 10.0 ** len(decimals)
    for unit in units:
        number *= UNITS[unit]
    return number


def _row(digits: str) -> float:
    number = 0.0
    for digit in digits:
        number = number * 10 + (DIGITS[digit] if digit in DIGITS else int(digit))
    return number


def _chinese(numeral: str) -> float:
    high = middle = low = 0.0  # multiples of 亿, multiples of 万, the rest
    row, unit = "", 1.0
    for character in numeral:
        if character in DIGITS:
            row += character
            continue
        unit = UNITS[character]
        counted = _few(row) if row else 0.0
        if unit < UNITS["万"]:
            low += (counted if row else 1.0) * unit
        elif unit == UNITS["万"]:
            middle += (low + counted if row or low else 1.0) * unit
            low = 0.0
        else:
            high += (middle + low + counted if row or low or middle else 1.0) * unit
            middle = low = 0.0
        row = ""
    rest = _few(row) if row else 0.0
    if len(row) == 1 and unit > 1:
        rest = rest * unit / 10
    return high + middle + low + rest


def _few(digits: str) -> float:
    first, last = DIGITS[digits[0]], DIGITS[digits[-1]]
    if len(digits) == 2 and 0 < first == last - 1:
        return first + 0.5
    return _row(digits)
