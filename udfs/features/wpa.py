"""WPA, word positional alignment: how far the shared words moved.

Equation (1) of *Chinese Sentence Paraphrasing*, section 4 (see udfs/features/spa.py), with I = the
words that A and B share, k-th occurrence with k-th occurrence, in the order of A. Punctuation is no
word: a word has at least one letter, digit or Han character. RD counts characters, as in SPA. NaN
where no word is shared.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit

_ASSIGNED = 0x40000
"""No letter lies above: planes without characters, tags, private use."""


@cache
def alphanumeric() -> np.ndarray:
    """For every code point, uint8: is it a letter, digit or Han character?"""
    table = np.zeros(0x110000, np.uint8)
    table[:_ASSIGNED] = np.fromiter(map(str.isalnum, map(chr, range(_ASSIGNED))), np.uint8)
    return table


@njit(cache=True, nogil=True)
def match_words(a, ends_a, b, ends_b, alnum, keys, starts, partner):
    """Matches the words of code points a and b; their ends as in text.code_points.Words.

    keys: uint64 (cells,), starts: int32 (cells, 2): room for every word of b. partner: as in
    positional_alignment_kernel, -1 on entry. Returns the number of shared words.
    """
    count_b = 0
    begin = np.int64(0)
    for k in range(len(ends_b)):
        end = np.int64(ends_b[k])
        if _is_word(b, begin, end, alnum):
            keys[count_b] = _key(b, begin, end)
            starts[count_b, 0] = begin
            starts[count_b, 1] = end
            count_b += 1
        begin = end
    shared = 0
    begin = np.int64(0)
    for k in range(len(ends_a)):
        end = np.int64(ends_a[k])
        if _is_word(a, begin, end, alnum):
            key = _key(a, begin, end)
            for j in range(count_b):
                if keys[j] == key and _equal(
                    a, begin, end, b, np.int64(starts[j, 0]), np.int64(starts[j, 1])
                ):
                    partner[begin] = starts[j, 0]
                    shared += 1
                    keys[j] = 0  # taken
                    break
        begin = end
    return shared


@njit(cache=True, nogil=True)
def _is_word(text, begin, end, alnum):
    for k in range(begin, end):
        code = text[k]
        if 0x4E00 <= code < 0x9FFF or (code < 0x110000 and alnum[code]):
            return True
    return False


@njit(cache=True, nogil=True)
def _key(text, begin, end):
    """Length, first and last character: the whole of a word of up to two. Never 0."""
    length = np.uint64(end - begin)
    key = (length << np.uint64(42)) | (np.uint64(text[begin]) << np.uint64(21))
    return key | np.uint64(text[end - 1])


@njit(cache=True, nogil=True)
def _equal(a, begin_a, end_a, b, begin_b, end_b):
    if end_a - begin_a != end_b - begin_b:
        return False
    k = 1  # the key holds the first and the last character
    while k < end_a - begin_a - 1 and a[begin_a + k] == b[begin_b + k]:
        k += 1
    return k >= end_a - begin_a - 1
