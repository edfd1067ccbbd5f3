"""Shared runs and greedy string tiling: what SPA, LIS and SBLEU read from a pair of sentences.

A *run* is a maximal stretch of equal characters on one diagonal: ``a[i + k] == b[j + k]`` for
``0 <= k < length``, not extendable at either end. Every substring that two sentences share lies in
a run, so the runs are found once and serve three features.

Greedy string tiling (Michael J. Wise, 1993, "String similarity via greedy string tiling and running
Karp-Rabin matching") covers both sentences with the longest unmarked matches, one after another.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MINIMUM_TILE = 2
"""Length of the shortest tile: a single shared character is no shared substring."""

MAXIMUM_CHARACTERS = 2**21 - 1
"""Longest sentence that the kernels take."""

BUCKETS = 1024


@njit(cache=True, nogil=True)
def shared_runs(a, b, buckets, chain, runs):
    """Runs of two characters or more of code points a and b.

    buckets: int32 (BUCKETS,), all -1 on entry and on return. chain: int32, at least len(b) cells.
    runs: int64 (capacity,) to fill with runs as :func:`pack` writes them. Returns (runs, a larger
    array where they do not fit; how many; length of the longest run, 1 included). What is returned
    has room for :func:`kernel` too: a run of length L falls into at most L / 2 runs.
    """
    count, longest, characters = _fill_runs(a, b, buckets, chain, runs)
    if characters // 2 > len(runs):
        runs = np.empty(characters, np.int64)
        _fill_runs(a, b, buckets, chain, runs)
    return runs, count, longest


@njit(cache=True, nogil=True)
def _fill_runs(a, b, buckets, chain, runs):
    """shared_runs, as far as runs reaches; also returns the characters in all runs together."""
    n, m, capacity = len(a), len(b), len(runs)
    mask = np.uint32(BUCKETS - 1)
    count, longest, characters = 0, 0, 0
    for j in range(m - 1, -1, -1):  # backwards, so that each chain reads in the order of b
        slot = np.int64(b[j] & mask)
        chain[j] = buckets[slot]
        buckets[slot] = j
    for i in range(n):
        code = a[i]
        j = np.int64(buckets[np.int64(code & mask)])
        while j >= 0:
            if b[j] == code and (i == 0 or j == 0 or a[i - 1] != b[j - 1]):
                length = 1
                while i + length < n and j + length < m and a[i + length] == b[j + length]:
                    length += 1
                if length > longest:
                    longest = length
                if length >= MINIMUM_TILE:
                    if count < capacity:
                        runs[count] = pack(i, j, length)
                    count += 1
                    characters += length
            j = np.int64(chain[j])
    for j in range(m):
        buckets[np.int64(b[j] & mask)] = -1
    return count, longest, characters


@njit(cache=True, nogil=True)
def pack(i, j, length):
    """A run as one number: the smallest is the longest run, and of those the first in a, then b."""
    return ((MAXIMUM_CHARACTERS - length) << 42) | (i << 21) | j


@njit(cache=True, nogil=True)
def unpack(run):
    """(i, j, length) of a run."""
    return (run >> 21) & (2**21 - 1), run & (2**21 - 1), MAXIMUM_CHARACTERS - (run >> 42)


@njit(cache=True, nogil=True)
def kernel(runs, count, marked_a, marked_b, partner):
    """Tiles from the runs of :func:`shared_runs`: greedy string tiling.

    marked_a, marked_b: uint8, all 0 on entry, a cell for each character; left marked under tiles.
    partner: int32; partner[i] = start in b of the tile that starts at i in a; not set elsewhere.
    Uses up runs. Returns the number of tiles.

    The longest run left is a tile if no tile covers a part of it; otherwise its uncovered stretches
    are shorter runs, to be looked at in their turn. The runs left are a binary heap.
    """
    for slot in range(count // 2 - 1, -1, -1):
        _sift_down(runs, count, slot)
    tiles = 0
    while count > 0:
        i, j, length = unpack(runs[0])
        count -= 1
        runs[0] = runs[count]
        _sift_down(runs, count, 0)
        k = 0
        while k < length:
            while k < length and (marked_a[i + k] or marked_b[j + k]):
                k += 1
            begin = k
            while k < length and not (marked_a[i + k] or marked_b[j + k]):
                k += 1
            if k - begin == length:
                for c in range(length):
                    marked_a[i + c] = 1
                    marked_b[j + c] = 1
                partner[i] = j
                tiles += 1
            elif k - begin >= MINIMUM_TILE:
                _push(runs, count, pack(i + begin, j + begin, k - begin))
                count += 1
    return tiles


@njit(cache=True, nogil=True)
def _sift_down(heap, count, slot):
    """Puts heap[place] below its smaller children."""
    run = heap[slot]
    child = 2 * slot + 1
    while child < count:
        if child + 1 < count and heap[child + 1] < heap[child]:
            child += 1
        if run <= heap[child]:
            break
        heap[slot] = heap[child]
        slot, child = child, 2 * child + 1
    if count > 0:
        heap[slot] = run


@njit(cache=True, nogil=True)
def _push(heap, count, run):
    """Adds a run to a heap of count."""
    slot = count
    while slot > 0 and run < heap[(slot - 1) // 2]:
        heap[slot] = heap[(slot - 1) // 2]
        slot = (slot - 1) // 2
    heap[slot] = run
