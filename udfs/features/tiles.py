"""Finds shared runs and greedy string tilings, from which SPA, LIS and SBLEU are computed.

A *run* is a maximal stretch of equal characters on one diagonal: ``a[i + k] == b[j + k]`` for
``0 <= k < length``, and neither end can be extended. Every substring that two sentences share lies
in a run, so the runs are found once for all three features.

Greedy string tiling (Michael J. Wise, 1993, "String similarity via greedy string tiling and running
Karp-Rabin matching") covers both sentences with the longest unmarked matches, one after another.
"""

import numpy as np
from numba import njit

MINIMUM_TILE = 2
"""Length of the shortest tile: a single shared character does not count as a substring."""

MAXIMUM_CHARACTERS = 2**21 - 1
"""Length of the longest sentence that the kernels accept."""

BUCKETS = 1024


@njit(cache=True, nogil=True)
def shared_runs(a, b, buckets, chain, runs):
    """Finds the runs of two characters or more that the code points a and b share.

    buckets: int32 (BUCKETS,), all -1 on entry and on return. chain: int32, at least len(b) cells.
    runs: int64 (capacity,), filled with runs as :func:`pack` writes them. Returns (runs, or a
    larger array if they do not fit; their number; length of the longest run, which may be 1). The
    array also has room for :func:`kernel`, which splits a run of length L into at most L / 2 runs.
    """
    count, longest, characters = _fill_runs(a, b, buckets, chain, runs)
    if characters // 2 > len(runs):
        runs = np.empty(characters, np.int64)
        _fill_runs(a, b, buckets, chain, runs)
    return runs, count, longest


@njit(cache=True, nogil=True)
def _fill_runs(a, b, buckets, chain, runs):
    """Does shared_runs as far as runs has room; also returns the total length of all runs."""
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
    """Packs a run into one number. Longer runs are smaller; ties go by place in a, then in b."""
    return ((MAXIMUM_CHARACTERS - length) << 42) | (i << 21) | j


@njit(cache=True, nogil=True)
def unpack(run):
    """Returns (i, j, length) of a packed run."""
    return (run >> 21) & (2**21 - 1), run & (2**21 - 1), MAXIMUM_CHARACTERS - (run >> 42)


@njit(cache=True, nogil=True)
def greedy_string_tiling(runs, count, marked_a, marked_b, partner):
    """Chooses tiles from the runs of :func:`shared_runs` by greedy string tiling.

    marked_a, marked_b: uint8, one cell for each character, all 0 on entry; tiles stay marked.
    partner: int32; partner[i] becomes the start in b of the tile that starts at i in a; other cells
    are not set. Overwrites runs. Returns the number of tiles.

    The longest remaining run is a tile unless another tile covers a part of it. If so, its
    uncovered stretches go back as shorter runs. The remaining runs are a binary heap.
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
    """Puts heap[slot] below its smaller children."""
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
    """Adds a run to a heap that holds count runs."""
    slot = count
    while slot > 0 and run < heap[(slot - 1) // 2]:
        heap[slot] = heap[(slot - 1) // 2]
        slot = (slot - 1) // 2
    heap[slot] = run
