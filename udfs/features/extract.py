"""Computes all eight features of many pairs in one pass over the code points of both columns."""

import numpy as np
import pyarrow as pa
from numba import njit

from gaixie.udfs.features import acs, lis, lr, pmd, sbleu, sl, spa, tiles, wpa
from gaixie.udfs.text.code_points import CodePoints, Words
from gaixie.udfs.text.compiled import frozen
from gaixie.udfs.text.normalise import NULL, UNDECODABLE, normalise_column
from gaixie.udfs.text.segmenters import Segmenter
from gaixie.udfs.text.words import alphanumeric

FEATURES = ("acs", "spa", "pmd", "wpa", "lis", "sbleu", "sl", "lr")
"""The order of the columns, everywhere."""
ACS, SPA, PMD, WPA, LIS, SBLEU, SL, LR = range(len(FEATURES))


def extract(source: pa.Array, paraphrase: pa.Array, segmenter: Segmenter) -> np.ndarray:
    """Returns the features: float32, shape (rows, 8), columns as in FEATURES, NaN for missing.

    source, paraphrase: Arrow string arrays of the same length, which this function normalises. A
    null or undecodable sentence on either side makes the whole row NaN. Raises ValueError if the
    lengths differ, and TypeError if a column does not hold strings.
    """
    if len(source) != len(paraphrase):
        raise ValueError(f"{len(source)} sources, but {len(paraphrase)} paraphrases")
    a, flags_a = normalise_column(source)
    b, flags_b = normalise_column(paraphrase)
    features = extract_code_points(a, b, segmenter.word_ends(a), segmenter.word_ends(b))
    features[((flags_a | flags_b) & (NULL | UNDECODABLE)) != 0] = np.nan
    return features


def extract_code_points(a: CodePoints, b: CodePoints, words_a: Words, words_b: Words) -> np.ndarray:
    """Returns the features of normalised, segmented pairs: float32, shape (rows, 8).

    Raises ValueError for a sentence of more than tiles.MAXIMUM_CHARACTERS.
    """
    longest = max(int(np.diff(text.offsets).max(initial=0)) for text in (a, b))
    if longest > (most := tiles.MAXIMUM_CHARACTERS):
        raise ValueError(f"a sentence of {longest} characters, expected at most {most}")
    texts_a, texts_b = frozen(a, b)
    ends_a, ends_b = frozen(words_a, words_b)
    return _extract_rows(texts_a, texts_b, ends_a, ends_b, alphanumeric(), longest)


@njit(cache=True, nogil=True)
def _extract_rows(texts_a, texts_b, words_a, words_b, alnum, longest):
    rows = len(texts_a.offsets) - 1
    features = np.empty((rows, LR + 1), np.float32)
    # Scratch space for the longest row; every kernel restores it.
    buckets = np.full(tiles.BUCKETS, -1, np.int32)
    chain = np.empty(longest, np.int32)
    runs = np.empty(256, np.int64)
    mark_a = np.zeros(longest, np.uint8)
    mark_b = np.zeros(longest, np.uint8)
    partner = np.full(longest, -1, np.int32)
    clauses = np.empty((6, longest // 2 + 2), np.int32)
    keys = np.empty(longest, np.uint64)
    starts = np.empty(longest, np.int32)
    dense_a = np.empty(longest, np.uint32)
    dense_b = np.empty(longest, np.uint32)

    for row in range(rows):
        a = texts_a.values[texts_a.offsets[row] : texts_a.offsets[row + 1]]
        b = texts_b.values[texts_b.offsets[row] : texts_b.offsets[row + 1]]
        n, m = len(a), len(b)
        features[row, ACS] = acs.kernel(a, b)

        runs, count, longest_run = tiles.shared_runs(a, b, buckets, chain, runs)
        features[row, LIS] = lis.kernel(longest_run, n)

        dense_n, dense_m = _without_spaces(a, dense_a), _without_spaces(b, dense_b)
        if dense_n == n and dense_m == m:
            features[row, SBLEU] = sbleu.kernel(runs, count, n, m, mark_a, mark_b)
        count = tiles.greedy_string_tiling(runs, count, mark_a, mark_b, partner)
        features[row, SPA] = spa.positional_alignment_kernel(partner, count, n, m)
        mark_a[:n] = 0
        mark_b[:m] = 0
        if dense_n != n or dense_m != m:
            runs, count, _ = tiles.shared_runs(
                dense_a[:dense_n], dense_b[:dense_m], buckets, chain, runs
            )
            features[row, SBLEU] = sbleu.kernel(runs, count, dense_n, dense_m, mark_a, mark_b)

        features[row, PMD] = pmd.kernel(a, b, clauses)

        ends_a = words_a.ends[words_a.offsets[row] : words_a.offsets[row + 1]]
        ends_b = words_b.ends[words_b.offsets[row] : words_b.offsets[row + 1]]
        shared = wpa.match_words(a, ends_a, b, ends_b, alnum, keys, starts, partner)
        features[row, WPA] = spa.positional_alignment_kernel(partner, shared, n, m)

        features[row, SL] = sl.kernel(n)
        features[row, LR] = lr.kernel(n, m)
    return features


@njit(cache=True, nogil=True)
def _without_spaces(text, dense):
    """Copies text without spaces; returns the number of characters left."""
    length = 0
    for code in text:
        if code != 0x20:
            dense[length] = code
            length += 1
    return length
