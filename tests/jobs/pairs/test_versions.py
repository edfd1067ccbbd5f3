"""Pairs of versions: which pairs are made, and that every version is counted."""

from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.jobs.pairs.method import ALONE, OVER_LIMIT, REPEATED, Candidate
from gaixie.jobs.pairs.versions import COMPARED, Versions, choose

TEXTS = st.lists(st.text("春眠不觉晓 １1", min_size=1, max_size=4), min_size=1, max_size=7)


def make(texts, both=False, most=None, seed=1) -> list[Candidate]:
    given = {"max_pairs": most, "seed": seed, "directions": "both" if both else "one"}
    method = Versions(input="in", output="out", foreign_column="en", **given)
    return list(method.pairs_of([(text, text) for text in texts]))


def pairs(made: list[Candidate]) -> set[tuple[str, str | None]]:
    return {(item.source, item.paraphrase) for item in made if item.reason is None}


def test_all_pairs_in_one_direction_or_both():
    texts = ["一", "二", "三", "四"]
    one, both = pairs(make(texts)), pairs(make(texts, both=True))
    assert {frozenset(pair) for pair in one} == set(map(frozenset, combinations(texts, 2)))
    assert len(one) == 6
    assert both == set(permutations(texts, 2))
    assert one < both


def test_neither_order_nor_text_decides_which_one_is_the_source():
    texts = [f"第{number}句" for number in range(40)]
    ascending = sum(a < b for a, b in pairs(make(texts)))
    assert 0.3 < ascending / 780 < 0.7


def test_a_limit_keeps_a_part_of_all_pairs_and_more_of_it_with_a_higher_one():
    texts = [f"第{number}句" for number in range(30)]
    kept = [pairs(make(texts, both=True, most=most)) for most in (5, 50, 870, 10_000)]
    assert [len(some) for some in kept] == [5, 50, 870, 870]
    assert kept[0] < kept[1] < kept[2] == set(permutations(texts, 2))
    assert kept[1] != pairs(make(texts, both=True, most=50, seed=2))


def test_a_limit_spreads_over_the_versions():
    codes = np.random.default_rng(3).integers(0, 2**64, 200, np.uint64)
    chosen = Counter(source for source, _ in choose(codes, both_directions=True, max_pairs=2_000))
    assert len(chosen) == 200
    assert max(chosen.values()) < 30


@given(TEXTS, st.booleans(), st.none() | st.integers(1, 5), st.randoms())
def test_every_version_is_in_a_pair_or_one_leftover(texts, both, most, random):
    made = make(texts, both, most)
    shuffled = random.sample(texts, len(texts))
    assert make(shuffled, both, most) == made
    used = {text for pair in pairs(made) for text in pair}
    left = Counter(item.source for item in made if item.reason)
    assert {item.reason for item in made} <= {None, REPEATED, ALONE, OVER_LIMIT}
    assert Counter(texts) == left + Counter(used)
    assert sum(item.reason is None for item in made) <= (most or 100)


def test_a_group_of_100_000_is_bounded():
    """A huge group must be limited, because it would have 5,000 million pairs."""
    codes = np.random.default_rng(4).integers(0, 2**64, 100_000, np.uint64)
    chosen = np.array(list(choose(codes, False, 100)))
    assert len(chosen) == 100
    assert set(codes[chosen.ravel()]) <= set(np.sort(codes)[:COMPARED])
    assert sum(1 for _ in choose(codes, False, None)) == COMPARED * (COMPARED - 1) // 2


@pytest.mark.parametrize("both", [True, False])
def test_the_least_keys_are_kept_however_the_pairs_come(both):
    codes = np.random.default_rng(5).integers(0, 2**64, 20, np.uint64)
    order = np.random.default_rng(6).permutation(20)
    a = {(codes[i], codes[j]) for i, j in choose(codes, both, 30)}
    b = {(codes[order][i], codes[order][j]) for i, j in choose(codes[order], both, 30)}
    assert a == b
