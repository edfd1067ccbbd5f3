"""Greedy string tiling: by hand, the kernel against Wise's rounds, and properties of a tiling."""

from itertools import pairwise

import numpy as np
import plain_features
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.features import tiles

# (source, paraphrase, tiles as (start in source, start in paraphrase, length))
GOLDEN = [
    ("早上他去公园", "他去公园早上", [(0, 4, 2), (2, 0, 4)]),
    # Of two longest matches, 甲乙丙 comes first in the source; of 丙丁戊 it leaves 丁戊.
    ("甲乙丙丁戊", "丙丁戊甲乙丙", [(0, 3, 3), (3, 1, 2)]),
    # The longest match comes first, though a shorter one precedes it: 乙丙丁 leaves only 甲.
    ("甲乙丙丁", "甲乙×乙丙丁", [(1, 3, 3)]),
    # Of equal matches in the paraphrase, the first is taken.
    ("甲乙×甲乙", "甲乙", [(0, 0, 2)]),
    ("哈哈哈哈哈", "哈哈哦哈哈", [(0, 0, 2), (2, 3, 2)]),
    # cdef is covered at its head (c, in the source) and tail (f, in the paraphrase): de is left.
    ("PQRScdef#fTUVW", "cdefTUVW*PQRSc", [(0, 9, 5), (5, 1, 2), (9, 3, 5)]),
    ("甲乙丙", "丙乙甲", []),
    ("", "我们", []),
    ("", "", []),
]


def by_kernel(source: str, paraphrase: str) -> list[tuple[int, int, int]]:
    """Returns the kernel's tiles: it gives their starts, and a tile is as long as its mark."""
    a, b = (np.array([ord(c) for c in text], np.uint32) for text in (source, paraphrase))
    size = max(len(a), len(b))
    buckets, chain = np.full(tiles.BUCKETS, -1, np.int32), np.empty(size, np.int32)
    runs, count, _ = tiles.shared_runs(a, b, buckets, chain, np.empty(4, np.int64))
    assert (buckets == -1).all()
    marked_a, marked_b = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    partner = np.full(size, -1, np.int32)
    number = tiles.greedy_string_tiling(runs, count, marked_a, marked_b, partner)
    starts = np.flatnonzero(partner >= 0).tolist()
    assert number == len(starts)
    found = []
    for start, after in pairwise([*starts, len(a)]):
        length = int(marked_a[start:after].sum())
        assert marked_a[start : start + length].all()
        found.append((start, int(partner[start]), length))
    assert marked_a.sum() == marked_b.sum()
    assert all(marked_b[j : j + length].all() for _, j, length in found)
    return found


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(source, paraphrase, expected):
    assert plain_features.tiles(source, paraphrase) == expected
    assert by_kernel(source, paraphrase) == expected


# U+0401 falls into the bucket of U+0001, so the kernel's lists of places hold both.
TEXTS = st.one_of(*(st.text(letters, max_size=24) for letters in ("ab", "的一是", "\x01\u0401é的")))
BLOCKS = st.builds(str.__mul__, st.sampled_from(["ab", "a", "abba", "bab"]), st.integers(1, 60))
TEXTS |= st.lists(BLOCKS, max_size=3).map("".join)


@given(TEXTS, TEXTS)
def test_kernel_is_reference(source, paraphrase):
    assert by_kernel(source, paraphrase) == plain_features.tiles(source, paraphrase)


def test_kernel_on_long_texts():
    """The kernel must equal the reference on 1,000 distinct characters in shuffled blocks of up to
    50."""
    rng = np.random.default_rng(0)
    source = "".join(map(chr, 0x4E00 + rng.permutation(1000)))
    cuts = [0, *sorted(rng.choice(np.arange(1, 1000), 40, replace=False).tolist()), 1000]
    blocks = [source[i:j] for i, j in pairwise(cuts)]
    rng.shuffle(blocks)
    assert by_kernel(source, "".join(blocks)) == plain_features.tiles(source, "".join(blocks))
