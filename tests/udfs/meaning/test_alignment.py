"""Bit-parallel LCS, edit distance and n-grams: by hand, and against dynamic programming."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from Levenshtein import distance as levenshtein

from gaixie.udfs.meaning.alignment import ORDERS, align, scan

# (x, y, length of the LCS, distance, n-grams of y in x, places that the LCS takes)
GOLDEN = [
    ("早上他去公园", "他去公园早上", 4, 4, (6, 4, 2, 1), [(2, 0), (3, 1), (4, 2), (5, 3)]),
    ("甲乙", "乙甲", 1, 2, (2, 0, 0, 0), [(0, 1)]),
    ("哈哈哈", "哈哈", 2, 1, (2, 1, 0, 0), [(0, 0), (1, 1)]),
    ("", "", 0, 0, (0, 0, 0, 0), []),
]


Scan = tuple[int, int, tuple[int, ...]]
"""The values that scan returns: length of the LCS, distance, n-grams of y in x."""


def by_definition(x, y) -> tuple[Scan, list[tuple[int, int]]]:
    """Returns the scan, and a longest common subsequence as (index in x, in y).

    If there are several, it is the one found by walking back from both ends, over x first.
    """
    n, m = len(x), len(y)
    table = [[0] * (n + 1) for _ in range(m + 1)]  # LCS of the first i of x and the first j of y
    for j in range(1, m + 1):
        for i in range(1, n + 1):
            longer = max(table[j - 1][i], table[j][i - 1])
            table[j][i] = table[j - 1][i - 1] + 1 if x[i - 1] == y[j - 1] else longer
    i, j, pairs = n, m, []
    while i and j:
        if table[j][i] == table[j][i - 1]:
            i -= 1
        elif table[j - 1][i] > table[j - 1][i - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    grams = []
    for k in range(1, ORDERS + 1):
        of_x = {tuple(x[i : i + k]) for i in range(n - k + 1)}
        grams.append(sum(tuple(y[j : j + k]) in of_x for j in range(m - k + 1)))
    return (table[m][n], levenshtein(x, y), tuple(grams)), pairs[::-1]


def by_kernel(x, y) -> tuple[Scan, list[tuple[int, int]]]:
    ids = {item: k for k, item in enumerate(dict.fromkeys([*x, *y]))}
    x, y = (np.array([ids[item] for item in items], np.int32) for items in (x, y))
    blocks = len(x) // 64 + 1
    masks = np.zeros((len(ids) + 1) * blocks, np.uint64)
    history = np.full((len(y) + 1) * blocks, 7, np.uint64)
    lcs, distance, grams = scan(x, y, masks, history, np.full(6 * blocks, 7, np.uint64))
    assert not masks.any()
    partner_x, partner_y = np.full((2, len(x) + len(y)), 7, np.int32)
    align(len(x), len(y), history, partner_x, partner_y)
    pairs = [(i, int(j)) for i, j in enumerate(partner_x[: len(x)]) if j >= 0]
    assert pairs == [(int(i), j) for j, i in enumerate(partner_y[: len(y)]) if i >= 0]
    return (lcs, distance, tuple(grams)), pairs


@pytest.mark.parametrize(("x", "y", "lcs", "distance", "grams", "pairs"), GOLDEN)
def test_golden(x, y, lcs, distance, grams, pairs):
    found = by_definition(x, y)
    assert found[0] == (lcs, distance, grams)
    assert len(found[1]) == lcs
    assert by_kernel(x, y) == found
    if lcs and x != "甲乙":  # either 甲 or 乙 would do
        assert found[1] == pairs


FEW = st.text("甲乙丙丁", max_size=12)


@given(FEW, FEW)
def test_short(x, y):
    assert by_kernel(x, y) == by_definition(x, y)


@given(st.integers(1, 6), st.integers(0, 200), st.integers(0, 200), st.randoms())
def test_over_several_machine_words(letters, n, m, random):
    x = [random.randrange(letters) for _ in range(n)]
    y = [random.randrange(letters) for _ in range(m)]
    if random.random() < 0.5:  # similar texts, so that carries propagate
        y = [*x[m // 2 :], *y[: m // 8], *x[: m // 2]]
    assert by_kernel(x, y) == by_definition(x, y)


@pytest.mark.parametrize("n", [63, 64, 65, 127, 128, 129])
def test_at_the_edge_of_a_machine_word(n):
    x = list(range(n))
    assert by_kernel(x, x) == ((n, 0, (n, n - 1, n - 2, n - 3)), [(k, k) for k in x])
    assert by_kernel(x, x[1:])[0] == (n - 1, 1, (n - 1, n - 2, n - 3, n - 4))
