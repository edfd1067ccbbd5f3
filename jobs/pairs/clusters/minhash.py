"""Computes MinHash signatures of character n-grams, and the exact overlap of two sentences.

An n-gram is n characters of the sentence after normalisation, lower-casing and removal of all that
is neither letter nor digit, so punctuation, spaces and symbols make no difference. The overlap is
the Jaccard similarity of two sets of n-grams. A signature has bands x rows values. Two sentences
with overlap J agree in one value with probability J, in a whole band with J^rows, and in at least
one band with 1 - (1 - J^rows)^bands.

Sources: Broder, "On the resemblance and containment of documents" (1997); bands: Leskovec,
Rajaraman and Ullman, *Mining of Massive Datasets*, section 3.4.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
from numba import njit

from gaixie.udfs.text.normalise import normalise_column
from gaixie.udfs.text.splitmix import GOLDEN, mix

NGRAM = 2
"""Characters of an n-gram."""

_TABLE = 0x30000
"""Code points above this are ideographs, private or unassigned: each stands for itself."""


def overlaps(a: pa.Array, b: pa.Array, n: int = NGRAM) -> np.ndarray:
    """Returns the overlap of the two sentences of each row: float32, shape (rows,)."""
    (x, x_offsets), (y, y_offsets) = _gram_sets(a, n), _gram_sets(b, n)
    return _overlaps(x, x_offsets, y, y_offsets)


def band_hashes(texts: pa.Array, bands: int, rows: int, seed: int, n: int = NGRAM) -> np.ndarray:
    """Returns a hash of each band of each sentence's signature: uint64, shape (sentences, bands).

    Bands with different numbers have different hashes, whatever their values.
    """
    codes, offsets = _gram_sets(texts, n)
    random = np.random.Generator(np.random.PCG64(seed))
    size = bands * rows
    flips = random.integers(0, 2**32, size, np.uint32)
    factors = random.integers(0, 2**32, size, np.uint32) | np.uint32(1)
    return _bands(codes, offsets, flips, factors, bands, rows)


def mixed(values: np.ndarray) -> np.ndarray:
    """Returns SplitMix64 of each uint64."""
    return mix(values + GOLDEN)


def folded(character: str) -> str:
    """Returns a character in lower case; empty if it is neither a letter nor a digit."""
    lower = character.lower()
    return (lower if len(lower) == 1 else character) if character.isalnum() else ""


@cache
def _table() -> np.ndarray:
    """Returns a table from each code point to its lower case; 0 for those left out."""
    stand_ins = (folded(chr(code)) for code in range(_TABLE))
    return np.array([ord(character) if character else 0 for character in stand_ins], np.uint32)


def _gram_sets(texts: pa.Array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the hashes of each sentence's n-grams, sorted and distinct (uint64), and offsets."""
    text = normalise_column(texts)[0]
    return _hash_grams(text.values, text.offsets, _table(), n)


_mix64 = njit(nogil=True)(mix)


@njit(cache=True, nogil=True)
def _mix(value):
    return _mix64(value + GOLDEN)


@njit(cache=True, nogil=True)
def _hash_grams(values, offsets, table, n):
    rows = len(offsets) - 1
    hashes = np.empty(len(values), np.uint64)  # a sentence has no more n-grams than characters
    starts = np.zeros(rows + 1, np.int64)
    kept = np.empty(len(values), np.uint64)
    filled = 0
    for row in range(rows):
        count = 0
        for position in range(offsets[row], offsets[row + 1]):
            code = values[position]
            if code < len(table):
                code = table[code]
            if code != 0:
                kept[count] = np.uint64(code)
                count += 1
        width = min(n, count)
        first = filled
        for start in range(count - width + 1 if count else 0):
            hashed = np.uint64(width)
            for position in range(start, start + width):
                hashed = _mix(hashed ^ kept[position])
            hashes[filled] = hashed
            filled += 1
        mine = hashes[first:filled]
        mine.sort()
        distinct = first
        for position in range(first, filled):
            if position == first or hashes[position] != hashes[position - 1]:
                hashes[distinct] = hashes[position]
                distinct += 1
        filled = distinct
        starts[row + 1] = filled
    return hashes[:filled].copy(), starts


@njit(cache=True, nogil=True)
def _overlaps(x, x_offsets, y, y_offsets):
    rows = len(x_offsets) - 1
    overlap = np.zeros(rows, np.float32)
    for row in range(rows):
        i, j, shared = x_offsets[row], y_offsets[row], 0
        i_end, j_end = x_offsets[row + 1], y_offsets[row + 1]
        union = (i_end - i) + (j_end - j)
        while i < i_end and j < j_end:
            if x[i] == y[j]:
                shared += 1
                i += 1
                j += 1
            elif x[i] < y[j]:
                i += 1
            else:
                j += 1
        if union:
            overlap[row] = shared / (union - shared)
    return overlap


@njit(cache=True, nogil=True)
def _bands(codes, offsets, flips, factors, bands, rows):
    """Returns hashes of the bands of a signature's values. A value is the least of (high half of
    the hash ^ flip) * factor over the n-grams; each flip and odd factor order all 32-bit numbers
    differently."""
    sentences, size = len(offsets) - 1, len(flips)
    hashed = np.empty((sentences, bands), np.uint64)
    signature = np.empty(size, np.uint32)
    for sentence in range(sentences):
        signature[:] = np.uint32(0xFFFFFFFF)
        for position in range(offsets[sentence], offsets[sentence + 1]):
            code = np.uint32(codes[position] >> np.uint64(32))
            for k in range(size):
                value = np.uint32((code ^ flips[k]) * factors[k])
                signature[k] = min(signature[k], value)
        for band in range(bands):
            value = np.uint64(band)
            for row in range(rows):
                value = _mix(value ^ np.uint64(signature[band * rows + row]))
            hashed[sentence, band] = value
    return hashed
