"""Tells what a word is: characters with at least one letter, digit or Han character."""

from functools import cache

import numpy as np

from gaixie.udfs.text.compiled import inner

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio in 64 bits: multiplies well mixed hashes."""

_ASSIGNED = 0x40000
"""No letter lies above this code point: only empty planes, tags and private use."""
_PLACE = np.uint64(21)  # bits of a code point + 1
_ONE, _LONG = np.uint64(1), np.uint64(1 << 63)


@cache
def alphanumeric() -> np.ndarray:
    """Returns for every code point, as uint8, whether it is a letter, digit or Han character."""
    table = np.zeros(0x110000, np.uint8)
    table[:_ASSIGNED] = np.fromiter(map(str.isalnum, map(chr, range(_ASSIGNED))), np.uint8)
    table.flags.writeable = False
    return table


@inner
def is_word(text, begin, end, alnum):
    """Tells whether the code points text[begin:end] are a word. alnum: from alphanumeric."""
    for k in range(begin, end):
        code = text[k]
        if 0x4E00 <= code < 0x9FFF or (code < 0x110000 and alnum[code]):
            return True
    return False


@inner
def word_key(text, begin, end):
    """Returns a word as one number, never 0: its code points if at most three, else a hash."""
    second = np.uint64(text[min(begin + 1, end - 1)]) + _ONE
    third = np.uint64(text[min(begin + 2, end - 1)]) + _ONE
    key = np.uint64(text[begin]) + _ONE
    key = (key << _PLACE) | second * np.uint64(end - begin > 1)
    key = (key << _PLACE) | third * np.uint64(end - begin > 2)
    if end - begin > 3:
        for k in range(begin + 3, end):
            # Multiply first, or 2011 and 2020 would collide: the third character is not mixed.
            key *= MULTIPLIER
            key ^= (key >> np.uint64(29)) ^ np.uint64(text[k])
        key |= _LONG
    return key


@inner
def same_text(a, i, b, j, length):
    """Tells whether a[i : i + length] and b[j : j + length] are the same code points."""
    k = 0
    while k < length and j + k < len(b) and a[i + k] == b[j + k]:
        k += 1
    return k == length
