"""Cuts a sentence into clauses at commas and sentence punctuation.

In normalised text these marks cut: ``, ; : ! ? . 。``. The enumeration comma 、 joins the members of
one list and does not cut. Nor does a full stop, comma or colon between two ASCII letters or digits:
it belongs to a number, a time or an address (3.14, 1,000, 12:30, a.cn).
"""

from numba import njit

from gaixie.udfs.text.normalise import is_latin


@njit(cache=True, nogil=True)
def clause_spans(text, starts, ends):
    """Cuts uint32 code points: fills starts and ends, and returns the number of clauses.

    starts and ends need one cell for every two characters, and one more.
    """
    count = 0
    start = 0
    n = len(text)
    for position in range(n + 1):
        if position < n:
            code = text[position]
            if code > 0x3F and code != 0x3002:  # fast path: above "?" only 。 cuts
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
    """Tells whether the character at a position cuts."""
    code = text[position]
    if code == 0x3002 or code == 0x3B or code == 0x21 or code == 0x3F:  # 。 ; ! ?
        return True
    if code != 0x2C and code != 0x2E and code != 0x3A:  # , . :
        return False
    inside = position > 0 and position + 1 < len(text)
    return not (inside and is_latin(text[position - 1]) and is_latin(text[position + 1]))
