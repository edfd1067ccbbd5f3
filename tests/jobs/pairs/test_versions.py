"""Pairs of versions: which pairs are made, and that every version is counted."""

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gaixie.jobs.pairs import versions
from gaixie.jobs.pairs.method import ALONE, OVER_LIMIT, REPEATED, Candidate
from gaixie.jobs.pairs.versions import COMPARED, Versions, choose

TEXTS = st.lists(st.text("春眠不觉晓 １1", min_size=1, max_size=4), min_size=1, max_size=7)


def method(most=None, seed=1) -> Versions:
    return Versions(input="in", output="out", max_pairs=most, seed=seed, foreign_column="en")


def make(texts, most=None, seed=1) -> list[Candidate]:
    return list(method(most, seed).pairs_of(texts))


def pairs(made: list[Candidate]) -> set[tuple[str, str | None]]:
    return {(item.source, item.paraphrase) for item in made if item.reason is None}


def test_a_limit_keeps_a_part_of_all_pairs_and_more_of_it_with_a_higher_one():
    texts = [f"第{number}句" for number in range(30)]
    kept = [pairs(make(texts, most)) for most in (5, 50, 435, 10_000)]
    assert [len(some) for some in kept] == [5, 50, 435, 435]
    assert kept[0] < kept[1] < kept[2]
    assert {*map(frozenset, kept[2])} == {*map(frozenset, combinations(texts, 2))}
    assert kept[1] != pairs(make(texts, 50, seed=2))
    # Neither order nor text decides which one is the source.
    assert 0.3 < sum(a < b for a, b in kept[2]) / 435 < 0.7


@given(TEXTS, st.none() | st.integers(1, 5), st.randoms())
def test_every_version_is_in_a_pair_or_one_leftover(texts, most, random):
    made = make(texts, most)
    assert make(random.sample(texts, len(texts)), most) == made
    used = {text for pair in pairs(made) for text in pair}
    left = Counter(item.source for item in made if item.reason)
    assert {item.reason for item in made} <= {None, REPEATED, ALONE, OVER_LIMIT}
    assert Counter(texts) == left + Counter(used)
    assert sum(item.reason is None for item in made) <= (most or 100)


def test_a_group_of_100_000_is_bounded():
    """A huge group must be limited, because it would have 5,000 million pairs."""
    codes = np.random.default_rng(4).integers(0, 2**64, 100_000, np.uint64)
    chosen = np.array(list(choose(codes, 100)))
    assert len(chosen) == 100
    assert set(codes[chosen.ravel()]) <= set(np.sort(codes)[:COMPARED])
    assert sum(1 for _ in choose(codes, None)) == COMPARED * (COMPARED - 1) // 2


def test_a_task_holds_so_many_versions_of_a_group_at_once(monkeypatch):
    """Memory is bounded: versions over the limit are counted, and repeats are not held."""
    monkeypatch.setattr(versions, "MEMBERS", 4)
    texts = ["一", "二", "一", "三", "四", "五", "一", "六", "五", "二"]
    rows = [
        {"group": group, "foreign": f"{group} {number}", "source": text}
        for group, of_group in (("g", texts), ("h", texts[:3]))
        for number, text in enumerate(of_group)
    ]
    made = list(method(3).made_of(rows))
    left = Counter((row["group"], row["reason"], row["source"]) for row in made if row["reason"])
    assert (left["g", "over_limit", "五"], left["g", "over_limit", "六"]) == (2, 1)
    assert (left["g", "repeated", "一"], left["g", "repeated", "二"]) == (2, 1)
    assert left["h", "repeated", "一"] == 1
    pairs = [row for row in made if row["reason"] is None]
    used = {(row["group"], row[side]) for row in pairs for side in ("source", "paraphrase")}
    assert left.total() + len(used) == len(rows)
    assert {row["foreign"] for row in pairs} == {"g 0", "h 0"}
