"""Finds numbers by value, in digits or Chinese numerals: 3,000 and 三千, 30% and 百分之三十.

Grammar, over normalised text:

    number   = numeral ["分之" numeral | "%" | "‰" | "成" [digit | "半"]] | "半"
    numeral  = arabic units* | chinese ["点" digit+ units*]
    arabic   = digits, with commas before every third or without, ["." digits]
    chinese  = one or more of 零〇一二两三四五六七八九 and units
    units    = 十百千万亿, which multiply; 多 or 余 may precede them (30多万)

In a Chinese numeral a row of digits counts the unit behind it; a unit without digits counts once.
万 and 亿 multiply all that precedes them since the last 亿. A single digit at the end counts the next
smaller unit (三万五). Two consecutive digits mean the value between them (七八 is 7.5). 点 or a colon
or 时 behind an hour tells the time, with its minutes (八点半 is 8:30 and 20:30). 成 means tenths, and a
digit behind it hundredths (三成五); it needs a numeral up to 十 before it and the end of a word
behind it (not 一成不变). 半 is a number only before a unit of udfs/text/quantities.py (半小时, 半个月).

A number is *weak*, that is, possibly not a number, if 一 or 十 stands alone (一个, 十分), if it begins
with 百, 千, 万 or 亿 (百姓, 万一), or if its word has characters other than numerals and measures (四川,
一心一意). A fraction is never weak, nor is a number behind 第, 周, 期 or 拜 or before 年, 月, 日 or 号.
Digits behind a Latin letter belong to a code (A380). A space may stand before units, % and what is
counted (23 亿, 3 公里).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from gaixie.udfs.text import quantities
from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.compiled import entry, inner, read_only

DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")}
DIGITS |= {"〇": 0, "两": 2}
UNITS = {"十": 1e1, "百": 1e2, "千": 1e3, "万": 1e4, "亿": 1e8}
FINANCIAL = dict(zip("○◯壹贰叁肆伍陆柒捌玖拾佰仟", "零零一二三四五六七八九十百千", strict=True))
"""Financial numerals, and the circle that is a zero; one alone may be a name or a mark: 陆先生."""
MEASURES = (
    "第个年月日号天次名人位岁元块点分秒时楼种件条张本只度倍米届级章节项步间座场家份台辆把颗片段句遍趟回双对"
    "组批套册箱袋瓶杯盒架艘匹株棵首幅封世纪初旬底多余几半整支枚吨斤亩公里厘毫美英欧折星期"
)
BEFORE, BEHIND = "第周期拜", "年月日号"
"""A numeral next to one of these is a number."""

CODE = re.compile(r"[A-Za-z][A-Za-z0-9]*")


class Number(NamedTuple):
    """A number in a text."""

    value: float
    weak: bool
    start: int
    end: int
    """Index after the last character in the text; start is the index of the first."""
    dimension: int = quantities.NOTHING
    amount: float = 0.0
    """How much it counts, in the unit of its dimension (udfs/text/quantities.py)."""

    def same(self, other: Number) -> bool:
        """Tells whether two numbers mean the same."""
        sides = ((one.value, one.dimension, one.amount) for one in (self, other))
        return bool(quantities.same(*sides))


# Bits of a cell of the kernel's table, by code point: the digit + 1, the number of the unit, ...
DIGIT_MASK, UNIT_SHIFT, UNIT_MASK = 15, 4, 7
ARABIC, MEASURE, IS_BEFORE, IS_BEHIND, HALF = 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11
NUMERAL = DIGIT_MASK | UNIT_MASK << UNIT_SHIFT
_COMMA, _STOP, _POINT, _MINUTE, _PERCENT, _PER_MILLE, _COLON = map(ord, ",.点分%‰:")
_PART, _OF, _MANY, _OVER, _TEN, _TENTH, _QUARTER, _HOUR = map(ord, "分之多余十成刻时")
_DASH, _MINUS, _BELOW, _ZERO = map(ord, "-−下零")
_ALONE = np.array([*map(ord, "一十" + "".join(FINANCIAL))], np.uint32)
_REACHED = np.array([*map(ord, "到至为是达约了 ,:(")], np.uint32)
"""What stands before the minus of a number, and not of a range or a code: 降到-5度."""
_SIZES = np.array([1.0, *UNITS.values()])
_RATIO = np.array([*map(ord, "分以成比例为")], np.uint32)
"""What stands before a score or a scale, which is no time: 比分21:15."""


def cells() -> dict[str, int]:
    """Returns each character's cell, which the table must hold in its low twelve bits."""
    table = {str(digit): digit + 1 | ARABIC for digit in range(10)}
    table |= {character: digit + 1 for character, digit in DIGITS.items()}
    table |= {character: k << UNIT_SHIFT for k, character in enumerate(UNITS, 1)}
    table |= {character: table[plain] for character, plain in FINANCIAL.items()}
    marked = ((MEASURE, MEASURES), (IS_BEFORE, BEFORE), (IS_BEHIND, BEHIND), (HALF, "半"))
    for bit, characters in marked:
        for character in characters:
            table[character] = table.get(character, 0) | bit
    return table


@inner
def cell_at(text, k, table):
    """Returns a character's cell, 0 beyond the end of the text. The table's last cell must be 0."""
    return np.int64(table[min(np.int64(text[k]), len(table) - 1)]) if k < len(text) else 0


@entry
def kernel(text, start, table, edges):
    """Reads the number at start: (value, weak, end, dimension, amount).

    start: of a numeral or 半 that is not in a code. table: see :func:`cells`. edges: 1 where a word
    begins or ends; one cell more than characters. If 半 is not a number, end is start.
    """
    first = cell_at(text, start, table)
    if first & HALF:
        dimension, amount = quantities.kernel(text, start, start + 1, 0.5, False)
        return 0.5, True, start + (dimension != quantities.NOTHING), dimension, amount
    number, end = _numeral(text, start, table)
    weak = (first >> UNIT_SHIFT) & UNIT_MASK > 1
    weak |= end == start + 1 and quantities.is_one_of(text, start, _ALONE)
    number, end, share = _share(text, number, end, table, edges)
    sign = end - 1
    if not weak and not first & ARABIC:
        k = start
        while not edges[k]:
            k -= 1
        while k < end or not edges[k]:
            cell = cell_at(text, k, table)
            weak |= cell & (MEASURE | NUMERAL) == 0 or cell & ARABIC != 0
            k += 1
    signed = text[sign] == _PERCENT or text[sign] == _PER_MILLE
    if (share and not signed) or cell_at(text, end, table) & IS_BEHIND:
        weak = False
    if start > 0 and cell_at(text, start - 1, table) & IS_BEFORE:
        weak = False
    dimension, amount = quantities.kernel(text, start, end, number, share)
    if _is_negative(text, start, first):
        number, amount = -number, -amount
    if dimension == quantities.LENGTH or dimension == quantities.WEIGHT:
        letters = begin = quantities.past_space(text, end)
        while letters < len(text) and 0x41 <= text[letters] & 0xFFDF <= 0x5A:
            letters += 1
        if letters == begin + 2:
            end = letters  # 2kg
        elif letters > begin:  # 5mmol
            dimension, amount = quantities.NOTHING, number
    elif dimension == quantities.NOTHING and not share:
        dimension, amount, end = _clock(text, start, number, end, table)
    return number, weak, end, dimension, amount


@inner
def _is_negative(text, start, first):
    """Tells whether -, or 零下, stands before a number."""
    if start > 1 and text[start - 1] == _BELOW and text[start - 2] == _ZERO:
        return True
    if start == 0 or (text[start - 1] != _DASH and text[start - 1] != _MINUS) or not first & ARABIC:
        return False
    return start == 1 or quantities.is_one_of(text, start - 2, _REACHED)


@inner
def _clock(text, start, hour, end, table):
    """Returns (CLOCK, hours modulo 12, end) of a time of day whose hour ends at end, or else
    (NOTHING, hour, end)."""
    sign = np.int64(text[end]) if end < len(text) else 0
    if (sign != _POINT and sign != _COLON and sign != _HOUR) or not 0 <= hour <= 24 or hour % 1:
        return quantities.NOTHING, hour, end
    if sign == _COLON and start > 0 and quantities.is_one_of(text, start - 1, _RATIO):
        return quantities.NOTHING, hour, end
    minutes, k = 0.0, end + 1
    if sign != _COLON and cell_at(text, k, table) & HALF:
        minutes, k = 30.0, k + 1
    elif cell_at(text, k, table) & NUMERAL:
        minutes, k = _numeral(text, k, table)
        if k < len(text) and (text[k] == _MINUTE or text[k] == _QUARTER):
            minutes, k = minutes * (15.0 if text[k] == _QUARTER else 1.0), k + 1
        elif k < end + 3 or cell_at(text, k, table) & MEASURE:  # 8点20人
            minutes, k = 0.0, end + 1
    if minutes >= 60 or minutes % 1 or (sign == _COLON and k != end + 3):
        return quantities.NOTHING, hour, end
    return quantities.CLOCK, hour % 12 + minutes / 60, k


@inner
def _share(text, number, end, table, edges):
    """Returns (value, end, whether it is a share), given a numeral; reads the share sign behind."""
    behind = quantities.past_space(text, end)
    if behind < len(text) and text[behind] == _PERCENT:
        return number / 100, behind + 1, True
    if behind < len(text) and text[behind] == _PER_MILLE:
        return number / 1000, behind + 1, True
    sign = np.int64(text[end]) if end < len(text) else 0
    if sign == _PART and end + 2 < len(text) and text[end + 1] == _OF:
        first = quantities.past_space(text, end + 2)
        if cell_at(text, first, table) & NUMERAL != 0:
            part, end = _numeral(text, first, table)
            return part / number if number != 0.0 else 0.0, end, True
    if sign == _TENTH and number <= 10.0:
        behind = cell_at(text, end + 1, table)
        if (_is_digit(behind) or behind & HALF) and edges[end + 2]:
            rest = 5.0 if behind & HALF else np.float64((behind & DIGIT_MASK) - 1)
            return (number * 10 + rest) / 100, end + 2, True
        if edges[end + 1]:
            return number / 10, end + 1, True
    return number, end, False


@inner
def _numeral(text, start, table):
    """Returns (value, end) of the numeral at start."""
    end = start
    if cell_at(text, start, table) & ARABIC:
        number = 0.0
        group = start
        while True:
            cell = cell_at(text, end, table)
            if cell & ARABIC:
                number = number * 10 + ((cell & DIGIT_MASK) - 1)
            elif end < len(text) and text[end] == _COMMA and end - group <= 3:
                digits = 0
                while digits < 4 and cell_at(text, end + 1 + digits, table) & ARABIC:
                    digits += 1
                if digits != 3:
                    break
                group = end + 1
            else:
                break
            end += 1
        if end < len(text) and text[end] == _STOP and cell_at(text, end + 1, table) & ARABIC:
            end += 1
            decimals = 0
            while cell_at(text, end, table) & ARABIC:
                number = number * 10 + ((cell_at(text, end, table) & DIGIT_MASK) - 1)
                decimals += 1
                end += 1
            number /= 10.0**decimals
        return _times_units(text, number, end, table)
    while _is_chinese(cell_at(text, end, table)):
        end += 1
    number = _chinese_kernel(text, start, end, table)
    if end < len(text) and text[end] == _POINT:
        stop, tail, decimals = end + 1, 0.0, 0
        while _is_digit(cell_at(text, stop, table)):
            tail = tail * 10 + ((cell_at(text, stop, table) & DIGIT_MASK) - 1)
            decimals += 1
            stop += 1
        behind = np.int64(text[stop]) if stop < len(text) else 0
        if decimals and behind != _TEN and behind != _MINUTE and behind != _QUARTER:
            number += tail / 10.0**decimals
            while cell_at(text, stop, table) & UNIT_MASK << UNIT_SHIFT:
                number *= _SIZES[(cell_at(text, stop, table) >> UNIT_SHIFT) & UNIT_MASK]
                stop += 1
            return number, stop
    return _times_units(text, number, end, table)


@inner
def _is_digit(cell):
    return cell & DIGIT_MASK != 0 and not cell & ARABIC


@inner
def _is_chinese(cell):
    return cell & NUMERAL != 0 and not cell & ARABIC


@inner
def _times_units(text, number, end, table):
    behind = quantities.past_space(text, end)
    if cell_at(text, behind, table) & UNIT_MASK << UNIT_SHIFT:
        end = behind
    if end < len(text) and (text[end] == _MANY or text[end] == _OVER):
        if cell_at(text, end + 1, table) & UNIT_MASK << UNIT_SHIFT:
            end += 1
    while cell_at(text, end, table) & UNIT_MASK << UNIT_SHIFT:
        number *= _SIZES[(cell_at(text, end, table) >> UNIT_SHIFT) & UNIT_MASK]
        end += 1
    return number, end


@inner
def _chinese_kernel(text, start, end, table):
    high = middle = low = row = 0.0
    unit, digits = 1.0, 0
    for k in range(start, end):
        cell = np.int64(table[text[k]])
        if cell & DIGIT_MASK:
            digit = (cell & DIGIT_MASK) - 1
            goes_on = k + 1 < end and np.int64(table[text[k + 1]]) & DIGIT_MASK != 0
            between = digits == 1 and 0 < row == digit - 1 and not goes_on
            row = row + 0.5 if between else row * 10 + digit
            digits += 1
            continue
        unit = _SIZES[(cell >> UNIT_SHIFT) & UNIT_MASK]
        if unit < 1e4:
            low += (row if digits else 1.0) * unit
        elif unit == 1e4:
            middle += (low + row if digits or low != 0.0 else 1.0) * unit
            low = 0.0
        else:
            some = digits or low != 0.0 or middle != 0.0
            high += (middle + low + row if some else 1.0) * unit
            middle = low = 0.0
        row, digits = 0.0, 0
    if digits == 1 and unit > 1.0:
        row = row * unit / 10
    return high + middle + low + row


def find(text: str, words: Sequence[str]) -> list[Number]:
    """Returns the numbers of a normalised text, given with its words, in order."""
    codes, table = read_only(from_strings([text]).values), _table()
    begins = ((table[np.minimum(codes, len(table) - 1)] & (NUMERAL | HALF)) != 0).tolist()
    edges = np.zeros(len(text) + 1, np.uint8)
    edges[[0, *accumulate(map(len, words))]] = 1
    numbers, position = [], 0
    while position < len(text):
        if code := CODE.match(text, position):
            position = code.end()
        elif begins[position]:
            number, weak, end, dimension, amount = kernel(codes, position, table, edges)
            if end > position:
                numbers.append(Number(number, bool(weak), position, end, dimension, amount))
            position = max(end, position + 1)
        else:
            position += 1
    return numbers


def table_of(cells: Mapping[str, int]) -> np.ndarray:
    """Returns cells by code point: uint32, up to one past the last that is not 0."""
    table = np.zeros(max(map(ord, cells)) + 2, np.uint32)
    table[[*map(ord, cells)]] = [*cells.values()]
    return table


@cache
def _table() -> np.ndarray:
    return table_of(cells())
