"""Finds what a number counts: 72小时 is 三天, and a cut by 三分之一 leaves 三分之二.

    quantity = number ["多" | "余" | "来"] ["个" ["半" | "多"]] unit ["半"]

| dimension | units |
|---|---|
| time | 秒 秒钟 分钟 刻钟 小时 钟头 天 日 昼夜 周 星期 礼拜 |
| months | 月 (only behind 个) 季度 年 世纪 |
| length | 毫米 厘米 公分 米 公尺 公里 mm cm km |
| weight | 克 斤 公斤 kg 吨; 千 of 千克 is of the numeral |
| clock | 8:30, 八点半, 20点三刻 (udfs/text/numerals.py): hours, modulo 12 |
| the part that is left | a share (30%, 三成, 三分之一) behind a word of cutting (减少) or of leaving |
| | (剩下, 降至, 只有) |

Two numbers in one dimension are equal if their amounts are equal. Any other two are equal if their
values are: 2018年 is 2018, and 3日 is 3号.
"""

import numpy as np

from gaixie.udfs.text.compiled import inner

NOTHING, TIME, MONTHS, LENGTH, WEIGHT, LEFT, CLOCK = range(7)
UNITS: dict[int, dict[str, float]] = {
    TIME: {"秒": 1, "秒钟": 1, "分钟": 60, "刻钟": 900, "小时": 3600, "钟头": 3600, "天": 86400}
    | {"日": 86400, "昼夜": 86400, "周": 604800, "星期": 604800, "礼拜": 604800.0},
    MONTHS: {"月": 1, "季度": 3, "年": 12, "世纪": 1200},
    LENGTH: {"毫米": 0.001, "厘米": 0.01, "公分": 0.01, "米": 1, "公尺": 1, "公里": 1000}
    | {"mm": 0.001, "cm": 0.01, "km": 1000},
    WEIGHT: {"克": 1, "斤": 500, "公斤": 1000, "kg": 1000, "吨": 1e6},
    NOTHING: dict.fromkeys(("周年", "周岁", "年级", "年代", "年度", "克拉"), 1),
}
"""The units of each dimension and their sizes in its smallest or most common unit."""

SOME, CUT, KEPT, BETWEEN = "多余来", "减降跌缩少低滑", "剩余至到为仅只", "了近约下的有原来"
"""SOME behind a number means "about". Before a share, CUT means that it is gone, KEPT that it is
left, and BETWEEN may come between."""

_ROWS = sorted(
    ((unit, dimension, size) for dimension, sizes in UNITS.items() for unit, size in sizes.items()),
    key=lambda row: -len(row[0]),
)
_CODES = np.array([[*map(ord, unit.ljust(2, "\0"))] for unit, _, _ in _ROWS], np.uint32)
_DIMENSIONS = np.array([dimension for _, dimension, _ in _ROWS])
_SIZES = np.array([float(size) for _, _, size in _ROWS])
_SOME, _CUT, _KEPT, _BETWEEN = (
    np.array([*map(ord, characters)], np.uint32) for characters in (SOME, CUT, KEPT, BETWEEN)
)
_EACH, _HALF, _MONTH, _SPACE = map(ord, "个半月 ")
_FAR = 5
"""The most characters between a share and its word."""


@inner
def kernel(text, start, end, value, share):
    """Returns (dimension, amount) of the number text[start:end]. share: is it one, like 30%?"""
    if share:
        return _left(text, start, value)
    counted, k, each = value, end, False
    k = past_space(text, k + is_one_of(text, k, _SOME))
    if k < len(text) and text[k] == _EACH:
        each, k = True, k + 1
        if k < len(text) and text[k] == _HALF:
            counted, k = counted + 0.5, k + 1
        else:
            k += is_one_of(text, k, _SOME)
    for row in range(len(_CODES)):
        first, second = _CODES[row, 0], _CODES[row, 1]
        size = 1 + (second != 0)
        if k + size > len(text) or _lower(text[k]) != first:
            continue
        if second and _lower(text[k + 1]) != second:
            continue
        if _DIMENSIONS[row] == NOTHING or (first == _MONTH and not each):
            break
        if k + size < len(text) and text[k + size] == _HALF:
            counted += 0.5
        return _DIMENSIONS[row], counted * _SIZES[row]
    return NOTHING, value


@inner
def is_one_of(text, k, characters):
    """Tells whether there is a character at k, and it is one of these code points."""
    if k >= 0 and k < len(text):
        for code in characters:
            if text[k] == code:
                return True
    return False


@inner
def past_space(text, k):
    """Returns the place behind a space at k, or k."""
    return k + 1 if k < len(text) and text[k] == _SPACE else k


@inner
def _lower(code):
    return code | 0x20 if 0x41 <= code <= 0x5A else code


@inner
def _left(text, start, share):
    """Returns what a share leaves, by the word before it."""
    k = start - 1
    while start - k <= _FAR and is_one_of(text, k, _BETWEEN):
        k -= 1
    if is_one_of(text, k, _CUT):
        return LEFT, 1.0 - share
    if is_one_of(text, k, _KEPT):
        return LEFT, share
    return NOTHING, share


def same(number, other):
    """Tells whether two numbers, each (value, dimension, amount), mean the same."""
    if number[1] == NOTHING or number[1] != other[1]:
        return number[0] == other[0]
    return abs(number[2] - other[2]) <= 1e-9 * max(1.0, abs(number[2]))


same_kernel = inner(same)
