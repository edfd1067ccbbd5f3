"""The kernel of udfs/meaning/vectors.py: matches words first by hash and then by vector."""

from collections import namedtuple
from typing import NamedTuple

import numpy as np
from numba import njit

from gaixie.udfs.meaning.bucket import fetch
from gaixie.udfs.text.compiled import entry, inner, row_of, summing
from gaixie.udfs.text.words import MULTIPLIER, is_word

UNIT = 256
"""Length of a vector in the table, whose values are from -127 to 127."""

ALIGNED = 0.6
"""Words with a higher cosine are aligned."""
KEPT, KEPT_PLAIN, MOST, SECOND, SUM, GONE, REPLACED, REPLACED_COSINE, SAME = range(9)
"""Columns of a side."""
SIDE = SAME + 1
F1, F1_PLAIN, INVERTED, MOVED, WORDS_A, WORDS_B, LEFT_COSINE = range(2 * SIDE, 2 * SIDE + 7)
"""Columns of both sides, after those of each side; vectors.NAMES has all in this order."""

_SHIFT = np.uint64(29)
ROW_BITS = 20
_ROW = np.uint64((1 << ROW_BITS) - 1)
_TAG = ~_ROW


class Side(namedtuple("Side", "hashes rows begins ends best match same left vectors sums")):
    """Scratch space for the content words of a sentence.

    hashes: uint64, rows: int64, begins, ends: int32, (words,): see read_words. best: float32,
    match: int32, (words,): cosine and number of each word's partner, -1 if it has none. same:
    uint8, (words,): 1 if the partner is equal. left: int32, (words,): numbers of the words without
    an equal; vectors: int8, (words, dimensions), their vectors. sums: float64, (dimensions,).
    """


class Room(NamedTuple):
    """Scratch space."""

    a: Side
    b: Side
    cosines: np.ndarray  # float32, (words, words): of the words left
    sums: np.ndarray  # int32, (dimensions,)


def room(words_a: int, words_b: int, dimensions: int) -> Room:
    """Allocates scratch space for sentences of up to so many words."""
    kinds = ("u8", "i8", "i4", "i4", "f4", "i4", "u1", "i4")

    def side(words: int) -> Side:
        arrays: list[np.ndarray] = [np.empty(words, kind) for kind in kinds]
        arrays += [np.empty((words, dimensions), np.int8), np.empty(dimensions)]
        return Side(*arrays)

    a, b = side(words_a), side(words_b)
    return Room(a, b, np.empty((words_a, words_b), np.float32), np.empty(dimensions, np.int32))


@njit(cache=True, nogil=True)
def word_hash(text, begin, end):
    """Hashes the code points text[begin:end] to 64 bits; ASCII capitals count as small letters."""
    value = np.uint64(end - begin)
    for k in range(begin, end):
        code = np.uint64(text[k])
        if np.uint64(0x41) <= code <= np.uint64(0x5A):
            code += np.uint64(0x20)
        value = (value ^ code) * MULTIPLIER
        value ^= value >> _SHIFT
    return value


@njit(cache=True, nogil=True)
def find_row(cells, value, missing):
    """Returns a word's row by its hash, or missing. A cell is the hash's upper bits and row + 1."""
    mask = np.uint64(len(cells) - 1)
    slot = value & mask
    while True:
        cell = cells[slot]
        if cell == 0:
            return missing
        if cell & _TAG == value & _TAG:
            return np.int64(cell & _ROW) - 1
        slot = (slot + np.uint64(1)) & mask


@njit(cache=True, nogil=True)
def insert_rows(cells, values):
    """Fills empty cells with rows 0, 1, … of these hashes; of two equal ones, the first stays."""
    mask = np.uint64(len(cells) - 1)
    for row in range(len(values)):
        slot = values[row] & mask
        while cells[slot] != 0 and cells[slot] & _TAG != values[row] & _TAG:
            slot = (slot + np.uint64(1)) & mask
        if cells[slot] == 0:
            cells[slot] = (values[row] & _TAG) | np.uint64(row + 1)


@entry
def fill_rows(texts_a, texts_b, words_a, words_b, alnum, tables, room, rows, losses):
    """Fills rows, float32 (pairs, len(NAMES)), and losses; see features of udfs.meaning.vectors."""
    wanted = len(losses[0]) > 0
    for pair in range(len(rows)):
        a, b = row_of(texts_a, pair), row_of(texts_b, pair)
        n = _read_words(a, row_of(words_a, pair), alnum, tables.cells, room.a)
        m = _read_words(b, row_of(words_b, pair), alnum, tables.cells, room.b)
        row = rows[pair]
        row[:] = np.nan
        if n > 0 and m > 0:
            _fill_row(a, b, n, m, tables, room, row)
            if wanted:
                _note_losses(tables.weights, room.a, n, losses[0][texts_a.offsets[pair] :])
                _note_losses(tables.weights, room.b, m, losses[1][texts_b.offsets[pair] :])


@inner
def _note_losses(weights, side, count, losses):
    for k in range(count):
        weight, cosine = weights[side.rows[k]], side.best[k]
        if cosine < 0.5 and weight > 0.5:
            losses[side.begins[k]] = weight * (np.float32(1) - cosine)


@inner
def _fill_row(a, b, n, m, tables, room, row):
    """Fills row for a pair with n and m content words."""
    _match_equal(n, m, room.a, room.b)
    left_a = _find_left(n, tables, room.a)
    left_b = _find_left(m, tables, room.b)
    _read_vectors(a, left_a, tables, room.a, room.sums)
    _read_vectors(b, left_b, tables, room.b, room.sums)
    _compare(left_a, left_b, room)
    _describe_side(tables.weights, room.a, n, row[:SIDE])
    _describe_side(tables.weights, room.b, m, row[SIDE : 2 * SIDE])
    kept, other = row[KEPT], row[SIDE + KEPT]
    row[F1] = 2 * kept * other / max(kept + other, 1e-6)
    kept, other = row[KEPT_PLAIN], row[SIDE + KEPT_PLAIN]
    row[F1_PLAIN] = 2 * kept * other / max(kept + other, 1e-6)
    row[WORDS_A] = n
    row[WORDS_B] = m
    if left_a and left_b:
        _sum_left(tables.weights, left_a, room.a)
        _sum_left(tables.weights, left_b, room.b)
        row[LEFT_COSINE] = _cosine(room.a.sums, room.b.sums)
    _describe_order(len(a), len(b), n, room.a, room.b, row)


@inner
def _read_words(text, ends, alnum, cells, side):
    """Reads the content words of a sentence: hashes, begins and ends. Returns how many."""
    mask = np.uint64(len(cells) - 1)
    count = 0
    begin = np.int64(0)
    for k in range(len(ends)):
        end = np.int64(ends[k])
        if is_word(text, begin, end, alnum):
            value = word_hash(text, begin, end)
            fetch(cells, value & mask)
            side.hashes[count] = value
            side.begins[count] = begin
            side.ends[count] = end
            count += 1
        begin = end
    return count


@inner
def _match_equal(n, m, a, b):
    """Pairs equal words: the k-th occurrence matches the k-th occurrence."""
    a.best[:n] = 0
    a.match[:n] = -1
    b.best[:m] = 0
    b.match[:m] = -1
    for i in range(n):
        for j in range(m):
            if (b.hashes[j] == a.hashes[i]) & (b.match[j] < 0):
                a.match[i], b.match[j] = j, i
                a.best[i] = b.best[j] = 1
                break


@inner
def _find_left(count, tables, side):
    """Finds the rows of all words, and the words left without an equal. Returns how many."""
    missing, dimensions = tables.vectors.shape
    left = 0
    for k in range(count):
        row = find_row(tables.cells, side.hashes[k], missing)
        side.rows[k] = row
        side.same[k] = side.match[k] >= 0
        side.left[left] = k
        left += side.match[k] < 0
    for x in range(left):
        fetch(tables.vectors, min(side.rows[side.left[x]], missing - 1) * dimensions)
    return left


@inner
def _read_vectors(text, left, tables, side, sums):
    """Reads the vectors of the words left, or their characters' means, of length UNIT."""
    table = tables.vectors
    missing, dimensions = table.shape
    for x in range(left):
        k = side.left[x]
        row = side.rows[k]
        if row < missing:
            for d in range(dimensions):
                side.vectors[x, d] = table[row, d]
        else:
            _compose(text, side.begins[k], side.ends[k], tables, side.vectors, x, sums)


@inner
def _compose(text, begin, end, tables, vectors, k, sums):
    """Writes the mean of a word's characters, zeros if no character has a row."""
    table = tables.vectors
    missing, dimensions = table.shape
    sums[:] = 0
    for c in range(begin, end):
        row = find_row(tables.cells, word_hash(text, c, c + 1), missing)
        if row < missing:
            for d in range(dimensions):
                sums[d] += table[row, d]
    square = 0
    for d in range(dimensions):
        square += np.int64(sums[d]) * np.int64(sums[d])
    scale = UNIT / np.sqrt(square) if square else 0.0
    for d in range(dimensions):
        vectors[k, d] = min(127.0, max(-127.0, np.rint(sums[d] * scale)))


@inner
def _compare(left_a, left_b, room):
    """Finds the best partners of the words left, by cosine.

    First computes all cosines, then the best without branches, which would be unpredictable.
    """
    a, b, cosines = room.a, room.b, room.cosines[:left_a, :left_b]
    unit = np.float32(1 / UNIT**2)
    for x in range(left_a):
        for y in range(left_b):
            cosines[x, y] = dot(a.vectors, x, b.vectors, y) * unit
    _take_best(cosines, a, b)
    _take_best(cosines.T, b, a)


@inner
def _take_best(cosines, side, other):
    for x in range(cosines.shape[0]):
        best, match = np.float32(0), -1
        for y in range(cosines.shape[1]):
            better = cosines[x, y] > best
            best = cosines[x, y] if better else best
            match = y if better else match
        side.best[side.left[x]] = best
        side.match[side.left[x]] = other.left[match] if match >= 0 else -1


@inner
def dot(x, i, y, j):
    """Returns x[i] @ y[j]. It uses indices because slicing a row costs more than the products, and
    32 bits throughout because only then the compiler handles 16 and more at a time."""
    total = np.int32(0)
    for d in range(x.shape[1]):
        total = np.int32(total + np.int32(np.int32(x[i, d]) * np.int32(y[j, d])))
    return total


@inner
def _describe_side(weights, side, count, out):
    """Fills the nine columns of a side without branches, which would be unpredictable."""
    total = kept = plain = most = second = lost = replaced = cosines = same = 0.0
    for k in range(count):
        weight, cosine = weights[side.rows[k]], side.best[k]
        other = (side.same[k] == 0) & (cosine > ALIGNED)
        total += weight
        kept += weight * cosine
        plain += cosine
        gone = weight * (1 - cosine)
        second = max(second, min(most, gone))
        most = max(most, gone)
        lost += weight if cosine < 0.5 else np.float32(0)
        same += weight if side.same[k] else np.float32(0)
        replaced += weight if other else np.float32(0)
        cosines += weight * cosine if other else np.float32(0)
    out[KEPT] = kept / total
    out[KEPT_PLAIN] = plain / count
    out[MOST] = most
    out[SECOND] = second
    out[SUM] = total - kept
    out[GONE] = lost / total
    out[REPLACED] = replaced / total
    out[REPLACED_COSINE] = cosines / replaced if replaced else np.nan
    out[SAME] = same / total


@inner
def _describe_order(length_a, length_b, n, a, b, out):
    """Computes inverted and moved of the aligned words. Sets a.left to their partners."""
    partners = a.left
    inverted, crossed, moved, aligned = 0, 0, 0.0, 0
    for i in range(n):
        if a.best[i] > ALIGNED:
            j = a.match[i]
            middle_a = (a.begins[i] + a.ends[i]) / length_a
            moved += abs(middle_a - (b.begins[j] + b.ends[j]) / length_b) / 2
            for k in range(aligned):
                crossed += partners[k] != j
                inverted += partners[k] > j
            partners[aligned] = j
            aligned += 1
    if crossed:
        out[INVERTED] = inverted / crossed
    if aligned:
        out[MOVED] = moved / aligned


@inner
def _sum_left(weights, left, side):
    """Computes the weighted sum of the vectors of the words left."""
    side.sums[:] = 0
    for x in range(left):
        weight = weights[side.rows[side.left[x]]]
        for d in range(len(side.sums)):
            side.sums[d] += weight * side.vectors[x, d]


@summing
def _cosine(x, y):
    xx = xy = yy = 0.0
    for d in range(len(x)):
        xx += x[d] * x[d]
        xy += x[d] * y[d]
        yy += y[d] * y[d]
    return xy / np.sqrt(xx * yy + 1e-9)
