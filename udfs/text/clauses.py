"""Clauses: a sentence cut at commas and sentence punctuation.

On normalised text: ``, ; : ! ? . 。``. The enumeration comma 、 joins the members of one list and
does not cut. A full stop, comma or colon between two ASCII letters or digits belongs to a number, a
time or an address (3.14, 1,000, 12:30, a.cn) and does not cut either.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def clause_spans(text, starts, ends):
    """The same cuts for uint32 code points: fills starts and ends, returns their number.

    starts and ends need one cell for each two characters, and one more.
    """
    count = 0
    start = 0
    n = len(text)
    for position in range(n + 1):
        if position < n:
            code = text[position]
            if code > 0x3F and code != 0x3002:  # nothing above "?" cuts but 。: the usual character
                continue
            if not cuts_code(text, position):
                continue
        low, high = start, position
        while low < high and text[low] == 0x20:
            low += 1
        while high > low and text[high - 1] == 0x20:
            high -= 1
        if low < high:
            starts[count] = low
            ends[count] = high
            count += 1
        start = position + 1
    return count


@njit(cache=True, nogil=True)
def cuts_code(text, position):
    """Whether the character at a position cuts."""
    code = text[position]
    if code == 0x3002 or code == 0x3B or code == 0x21 or code == 0x3F:  # 。 ; ! ?
        return True
    if code != 0x2C and code != 0x2E and code != 0x3A:  # , . :
        return False
    inside = position > 0 and position + 1 < len(text)
    return not (inside and _ascii_alnum(text[position - 1]) and _ascii_alnum(text[position + 1]))


@njit(cache=True, nogil=True)
def _ascii_alnum(code):
    lower = code | np.uint32(0x20)
    return 0x30 <= code <= 0x39 or 0x61 <= lower <= 0x7A
