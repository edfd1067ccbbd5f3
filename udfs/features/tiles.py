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

BUCKETS = 1024


def reference(source: str, paraphrase: str) -> list[tuple[int, int, int]]:
    """Tiles (start in source, start in paraphrase, length), in the order of the source.

    Wise's algorithm as he states it: each round takes every longest match between unmarked
    characters, in the order of source and then paraphrase, unless a tile of its round covers it.
    """
    marked_a, marked_b = [False] * len(source), [False] * len(paraphrase)
    tiles = []
    while True:
        longest, matches = MINIMUM_TILE, []
        for i in range(len(source)):
            for j in range(len(paraphrase)):
                if source[i] != paraphrase[j]:
                    continue
                k = 0
                while (
                    i + k < len(source)
                    and j + k < len(paraphrase)
                    and source[i + k] == paraphrase[j + k]
                    and not marked_a[i + k]
                    and not marked_b[j + k]
                ):
                    k += 1
                if k > longest:
                    longest, matches = k, [(i, j)]
                elif k == longest:
                    matches.append((i, j))
        if not matches:
            return sorted(tiles)
        for i, j in matches:
            if not any(marked_a[i : i + longest]) and not any(marked_b[j : j + longest]):
                marked_a[i : i + longest] = marked_b[j : j + longest] = [True] * longest
                tiles.append((i, j, longest))


@njit(cache=True, nogil=True)
def shared_runs(a, b, buckets, chain, runs):
    """Runs of two characters or more of code points a and b.

    buckets: int32 (BUCKETS,), all -1 on entry and on return. chain: int32, at least len(b) cells.
    runs: int32 (capacity, 3) to fill with (i, j, length). Returns (runs, a larger array where they
    do not fit; how many; length of the longest run, 1 included). What is returned has room for
    :func:`kernel` too: a run of length L falls into at most L / 2 runs.
    """
    count, longest, characters = _fill_runs(a, b, buckets, chain, runs)
    if characters // 2 > len(runs):
        runs = np.empty((characters, 3), np.int32)
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
                        runs[count, 0] = i
                        runs[count, 1] = j
                        runs[count, 2] = length
                    count += 1
                    characters += length
            j = np.int64(chain[j])
    for j in range(m):
        buckets[np.int64(b[j] & mask)] = -1
    return count, longest, characters


@njit(cache=True, nogil=True)
def kernel(runs, count, marked_a, marked_b, partner):
    """Tiles from the runs of :func:`shared_runs`: the tiles of :func:`reference`.

    marked_a, marked_b: uint8, all 0 on entry, a cell for each character; left marked under tiles.
    partner: int32; partner[i] = start in b of the tile that starts at i in a; not set elsewhere.
    Uses up runs. Returns the number of tiles.

    The longest run left is a tile if no tile covers a part of it; otherwise its uncovered stretches
    are shorter runs, to be looked at in their turn.
    """
    tiles = 0
    while count > 0:
        best, i, j, length = 0, np.int64(runs[0, 0]), np.int64(runs[0, 1]), np.int64(runs[0, 2])
        for k in range(1, count):
            rival = np.int64(runs[k, 2])
            if rival < length:
                continue
            rival_i, rival_j = np.int64(runs[k, 0]), np.int64(runs[k, 1])
            if rival > length or rival_i < i or (rival_i == i and rival_j < j):
                best, i, j, length = k, rival_i, rival_j, rival
        count -= 1
        runs[best, 0] = runs[count, 0]
        runs[best, 1] = runs[count, 1]
        runs[best, 2] = runs[count, 2]
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
                runs[count, 0] = i + begin
                runs[count, 1] = j + begin
                runs[count, 2] = k - begin
                count += 1
    return tiles
