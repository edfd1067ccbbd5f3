"""The kernel of udfs/meaning/vectors.py: words of a pair, matched first by hash and then by vector."""

from __future__ import annotations

import numpy as np
from numba import njit

from gaixie.udfs.features.wpa import _is_word

UNIT = 256
"""Length of a vector in the table; its values lie from -127 to 127."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
ROW_BITS = 20
_ROW = np.uint64((1 << ROW_BITS) - 1)
_TAG = ~_ROW


@njit(cache=True, nogil=True)
def word_hash(text, begin, end):
    """64 bits of the code points text[begin:end]; ASCII capitals count as small letters."""
    value = np.uint64(end - begin)
    for k in range(begin, end):
        code = np.uint64(text[k])
        if np.uint64(0x41) <= code <= np.uint64(0x5A):
            code += np.uint64(0x20)
        value = (value ^ code) * _FACTOR
        value ^= value >> _SHIFT
    return value


@njit(cache=True, nogil=True)
def find_row(cells, value, missing):
    """The row of a word by its hash, or missing. A cell: the hash's upper bits, and the row + 1."""
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
    """Fills empty cells with rows 0, 1, … of these hashes; the first of two equal ones stays."""
    mask = np.uint64(len(cells) - 1)
    for row in range(len(values)):
        slot = values[row] & mask
        while cells[slot] != 0 and cells[slot] & _TAG != values[row] & _TAG:
            slot = (slot + np.uint64(1)) & mask
        if cells[slot] == 0:
            cells[slot] = (values[row] & _TAG) | np.uint64(row + 1)


@njit(cache=True, nogil=True)
def read_words(text, ends, alnum, tables, hashes, rows, spans):
    """Content words of a sentence: hashes, rows, and (begin, end). Returns how many."""
    missing = len(tables.vectors)
    count = 0
    begin = np.int64(0)
    for k in range(len(ends)):
        end = np.int64(ends[k])
        if _is_word(text, begin, end, alnum):
            hashes[count] = word_hash(text, begin, end)
            rows[count] = find_row(tables.cells, hashes[count], missing)
            spans[count, 0] = begin
            spans[count, 1] = end
            count += 1
        begin = end
    return count


@njit(cache=True, nogil=True)
def fetch_vector(text, begin, end, row, tables, vectors, k, sums):
    """vectors[k]: the word's, or that of its characters' mean, of length UNIT; zeros without any."""
    table = tables.vectors
    missing, dimensions = table.shape
    if row < missing:
        for d in range(dimensions):
            vectors[k, d] = table[row, d]
    else:
        _compose(text, begin, end, tables, vectors, k, sums)


@njit(cache=True, nogil=True)
def _compose(text, begin, end, tables, vectors, k, sums):
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


@njit(cache=True, nogil=True)
def dot(x, i, y, j):
    """x[i] @ y[j]. By index, as a slice of a row costs more than the products; 32 bits throughout,
    as only then the compiler multiplies and adds 16 and more at a time."""
    total = np.int32(0)
    for d in range(x.shape[1]):
        total = np.int32(total + np.int32(np.int32(x[i, d]) * np.int32(y[j, d])))
    return total


@njit(cache=True, nogil=True)
def fill_rows(
    values_a,
    offsets_a,
    values_b,
    offsets_b,
    ends_a,
    words_a,
    ends_b,
    words_b,
    alnum,
    tables,
    room,
    features,
):
    """Fills features, float32 (rows, len(NAMES)); see udfs.meaning.vectors."""
    hashes_a, rows_a, spans_a, vectors_a, best_a, match_a, same_a = room.a
    hashes_b, rows_b, spans_b, vectors_b, best_b, match_b, same_b = room.b
    lost_a, lost_b, cosines = room.left_a, room.left_b, room.cosines
    weights = tables.weights
    table = tables.vectors
    missing, dimensions = table.shape
    sum_a, sum_b = np.empty(dimensions), np.empty(dimensions)
    unit = np.float32(1 / UNIT**2)
    for pair in range(len(features)):
        a = values_a[offsets_a[pair] : offsets_a[pair + 1]]
        b = values_b[offsets_b[pair] : offsets_b[pair + 1]]
        n = read_words(
            a, ends_a[words_a[pair] : words_a[pair + 1]], alnum, tables, hashes_a, rows_a, spans_a
        )
        m = read_words(
            b, ends_b[words_b[pair] : words_b[pair + 1]], alnum, tables, hashes_b, rows_b, spans_b
        )
        out = features[pair]
        out[:] = np.nan
        if n == 0 or m == 0:
            continue
        best_b[:m] = 0
        match_b[:m] = -1
        left_a = 0
        for i in range(n):
            match_a[i] = -1
            for j in range(m):
                if hashes_b[j] == hashes_a[i] and match_b[j] < 0:
                    match_a[i], match_b[j] = j, i
                    best_a[i] = best_b[j] = 1
                    break
            if match_a[i] < 0:
                best_a[i] = 0
                lost_a[left_a] = i
                if rows_a[i] < missing:
                    for d in range(dimensions):
                        vectors_a[left_a, d] = table[rows_a[i], d]
                else:
                    _compose(a, spans_a[i, 0], spans_a[i, 1], tables, vectors_a, left_a, room.sums)
                left_a += 1
        left_b = 0
        for j in range(m):
            same_b[j] = match_b[j] >= 0
            if match_b[j] < 0:
                lost_b[left_b] = j
                if rows_b[j] < missing:
                    for d in range(dimensions):
                        vectors_b[left_b, d] = table[rows_b[j], d]
                else:
                    _compose(b, spans_b[j, 0], spans_b[j, 1], tables, vectors_b, left_b, room.sums)
                left_b += 1
        for i in range(n):
            same_a[i] = match_a[i] >= 0
        for x in range(left_a):
            i = lost_a[x]
            for y in range(left_b):
                cosine = dot(vectors_a, x, vectors_b, y) * unit
                cosines[x * left_b + y] = cosine
                j = lost_b[y]
                if cosine > best_a[i]:
                    best_a[i] = cosine
                    match_a[i] = j
                if cosine > best_b[j]:
                    best_b[j] = cosine
                    match_b[j] = i
        side(weights, rows_a, best_a, same_a, n, out, 0)
        side(weights, rows_b, best_b, same_b, m, out, 9)
        out[18] = 2 * out[0] * out[9] / max(out[0] + out[9], 1e-6)
        out[19] = 2 * out[1] * out[10] / max(out[1] + out[10], 1e-6)
        inverted, crossed, moved, aligned = 0, 0, 0.0, 0
        for i in range(n):
            if best_a[i] > 0.6:
                aligned += 1
                j = match_a[i]
                moved += (
                    abs(
                        (spans_a[i, 0] + spans_a[i, 1]) / len(a)
                        - (spans_b[j, 0] + spans_b[j, 1]) / len(b)
                    )
                    / 2
                )
                for k in range(i):
                    if best_a[k] > 0.6 and match_a[k] != j:
                        crossed += 1
                        inverted += match_a[k] > j
        if crossed:
            out[20] = inverted / crossed
        if aligned:
            out[21] = moved / aligned
        out[22] = n
        out[23] = m
        # mean vectors of what is left
        sum_a[:] = 0
        sum_b[:] = 0
        for x in range(left_a):
            weight = weights[rows_a[lost_a[x]]]
            for d in range(dimensions):
                sum_a[d] += weight * vectors_a[x, d]
        for y in range(left_b):
            weight = weights[rows_b[lost_b[y]]]
            for d in range(dimensions):
                sum_b[d] += weight * vectors_b[y, d]
        xx = xy = yy = 0.0
        for d in range(dimensions):
            xx += sum_a[d] * sum_a[d]
            xy += sum_a[d] * sum_b[d]
            yy += sum_b[d] * sum_b[d]
        if left_a and left_b:
            out[24] = xy / np.sqrt(xx * yy + 1e-9)


@njit(cache=True, nogil=True)
def side(weights, rows, best, same, count, out, at):
    """Columns of a side: nine, from at."""
    total = kept = plain = most = second = lowest = lost = replaced = cosines = identical = 0.0
    lowest = 1.0
    for k in range(count):
        weight, cosine = weights[rows[k]], best[k]
        total += weight
        kept += weight * cosine
        plain += cosine
        gone = weight * (1 - cosine)
        if gone > most:
            most, second = gone, most
        elif gone > second:
            second = gone
        lowest = min(lowest, cosine)
        if cosine < 0.5:
            lost += weight
        if same[k]:
            identical += weight
        elif cosine > 0.6:
            replaced += weight
            cosines += weight * cosine
    out[at] = kept / total
    out[at + 1] = plain / count
    out[at + 2] = most
    out[at + 3] = second
    out[at + 4] = total - kept
    out[at + 5] = lost / total
    out[at + 6] = replaced / total
    out[at + 7] = cosines / replaced if replaced else np.nan
    out[at + 8] = identical / total
