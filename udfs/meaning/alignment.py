"""Compares two sequences bit-parallel: LCS with its alignment, edit distance, n-grams.

A sequence is a row of small ids: equal characters, or equal words, have equal ids. One pass over
the second sequence computes, for 64 positions of the first in each machine word:

* the length of the longest common subsequence, LCS (Hyyrö 2004, "Bit-parallel LCS-length
  computation revisited"), and its rows, from which an alignment is read back;
* the Levenshtein distance (Myers 1999, "A fast bit-vector algorithm for approximate string matching
  based on dynamic programming"; in blocks as Hyyrö 2003 has it);
* how many n-grams of the second, of one to four ids, occur in the first.
"""

import numpy as np

from gaixie.udfs.text.compiled import entry, inner

ORDERS = 4
"""Length of the longest n-gram."""

NO_PARTNER = -1

_ONE, _ZERO, _63 = np.uint64(1), np.uint64(0), np.uint64(63)


@entry
def scan(x, y, masks, history, vectors):
    """Returns (lcs, distance, grams) of ids x and y; see the module.

    x, y: int32, ids from 0. With blocks = len(x) / 64 rounded up: masks: uint64, a row of blocks
    for each id, all 0 on entry and on return. history: uint64, len(y) * blocks, for :func:`align`.
    vectors: uint64, 6 * blocks.
    """
    n, m = len(x), len(y)
    if n == 0 or m == 0:
        return 0, max(n, m), (0, 0, 0, 0)
    blocks = (n + 63) >> 6
    for i in range(n):
        masks[x[i] * blocks + (i >> 6)] |= _ONE << np.uint64(i & 63)
    distance, grams = _scan_blocks(n, y, masks, history, vectors, blocks)
    lcs = 0
    for i in range(n):
        masks[x[i] * blocks + (i >> 6)] = 0
        lcs += (vectors[i >> 6] >> np.uint64(i & 63)) & _ONE == _ZERO
    return lcs, distance, grams


@inner
def _scan_blocks(n, y, masks, history, vectors, blocks):
    """Does scan for masks that are set; leaves the last row of the LCS in vectors[:blocks]."""
    vectors[: 2 * blocks] = ~_ZERO
    vectors[2 * blocks : 6 * blocks] = 0
    grams_1 = grams_2 = grams_3 = grams_4 = 0
    distance = n
    last = np.uint64((n - 1) & 63)
    for j in range(len(y)):
        carry, up_in, down_in = _ZERO, _ONE, _ZERO
        one_in = two_in = three_in = _ZERO
        found_1 = found_2 = found_3 = found_4 = _ZERO
        for k in range(blocks):
            mask = masks[y[j] * blocks + k]

            rest = vectors[k]
            matched = rest & mask
            total = rest + matched
            overflow = np.uint64(total < rest)
            total += carry
            carry = overflow | np.uint64(total < carry)
            rest = total | (rest - matched)
            vectors[k] = rest
            history[j * blocks + k] = rest

            plus, minus = vectors[blocks + k], vectors[2 * blocks + k]
            wide = mask | down_in
            diagonal = (((wide & plus) + plus) ^ plus) | wide | minus
            up = minus | ~(diagonal | plus)
            down = diagonal & plus
            if k == blocks - 1:
                distance += np.int64((up >> last) & _ONE) - np.int64((down >> last) & _ONE)
            up_out, down_out = up >> _63, down >> _63
            up = (up << _ONE) | up_in
            vectors[blocks + k] = (down << _ONE) | down_in | ~(diagonal | up)
            vectors[2 * blocks + k] = up & diagonal
            up_in, down_in = up_out, down_out

            # Ends in x of the n-grams that end here in y.
            ends_1, ends_2 = vectors[3 * blocks + k], vectors[4 * blocks + k]
            ends_3 = vectors[5 * blocks + k]
            two, three = ((ends_1 << _ONE) | one_in) & mask, ((ends_2 << _ONE) | two_in) & mask
            found_1 |= mask
            found_2 |= two
            found_3 |= three
            found_4 |= ((ends_3 << _ONE) | three_in) & mask
            vectors[3 * blocks + k], vectors[4 * blocks + k] = mask, two
            vectors[5 * blocks + k] = three
            one_in, two_in, three_in = ends_1 >> _63, ends_2 >> _63, ends_3 >> _63
        grams_1 += found_1 != _ZERO
        grams_2 += found_2 != _ZERO
        grams_3 += found_3 != _ZERO
        grams_4 += found_4 != _ZERO
    return distance, (grams_1, grams_2, grams_3, grams_4)


@entry
def align(n, m, history, partner_x, partner_y):
    """Reads the pairs of an LCS from scan's history: each position's partner, or NO_PARTNER.

    partner_x, partner_y: int32, at least n and m cells.
    """
    partner_x[:n] = NO_PARTNER
    partner_y[:m] = NO_PARTNER
    blocks = (n + 63) >> 6
    i, j = n - 1, m - 1
    while i >= 0 and j >= 0:
        block, bit = i >> 6, np.uint64(i & 63)
        if (history[j * blocks + block] >> bit) & _ONE:  # x[i] does not lengthen the LCS
            i -= 1
        elif j > 0 and not (history[(j - 1) * blocks + block] >> bit) & _ONE:  # y[j] neither
            j -= 1
        else:
            partner_x[i], partner_y[j] = j, i
            i -= 1
            j -= 1
