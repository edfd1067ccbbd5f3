"""Clusters without Spark: signatures, overlap, buckets, components, the guard against chains."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.jobs.pairs.clusters import candidates, linking
from gaixie.jobs.pairs.clusters.linking import Component, Linking, Sentence, choose
from gaixie.jobs.pairs.clusters.method import join_edges
from gaixie.jobs.pairs.clusters.minhash import band_hashes, folded, mixed, overlaps
from gaixie.udfs.text.normalise import normalise

TEXTS = st.text("火势从厨房，。 Ａａ①ﬁ１2\u0301𠀀", max_size=12)


def grams(text: str, n: int) -> set[str]:
    """Returns a sentence's n-grams by definition; the whole sentence if it is shorter than n."""
    kept = "".join(folded(character) for character in normalise(text))
    return {kept[k : k + n] for k in range(max(len(kept) - n + 1, 1))} - {""}


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), st.integers(1, 4))
def test_overlap_is_its_definition(pairs, n):
    """It is 0 if neither sentence has an n-gram."""
    a, b = (pa.array(side, pa.string()) for side in zip(*pairs, strict=True))
    both = [(grams(x, n), grams(y, n)) for x, y in pairs]
    expected = [len(x & y) / max(len(x | y), 1) for x, y in both]
    np.testing.assert_allclose(overlaps(a, b, n), expected, rtol=1e-6)


def test_bands_agree_as_often_as_sentences_overlap():
    random = np.random.default_rng(5)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    texts = ["".join(random.choice(letters, 100)) for _ in range(200)]  # 60 of them are shared
    a, b = pa.array(text[:80] for text in texts), pa.array(text[:60] + text[80:] for text in texts)
    overlap = overlaps(a, b, 3)
    hashes = band_hashes(a, 256, 1, 1, 3)
    agree = hashes == band_hashes(b, 256, 1, 1, 3)
    assert abs(agree.mean() - overlap.mean()) < 0.01
    error = agree.mean(axis=1) - overlap
    assert error.std() < 1.3 * np.sqrt(overlap * (1 - overlap) / 256).mean()
    assert (hashes == band_hashes(a, 256, 1, 2, 3)).mean() < 0.01
    assert len(np.unique(band_hashes(a, 128, 2, 1, 3)[0])) == 128


def met(hashes, nodes, new, most, keys=None, whole=None, partitions=3) -> set[tuple[int, int]]:
    """Returns the pairs that meet, of the entries of each partition as a task gets them."""
    columns = {"node": pa.array(nodes), "new": pa.array(new)}
    if keys is not None:
        columns["keys"] = pa.array(keys, pa.list_(pa.int64()))
    batch = pa.RecordBatch.from_pydict(columns)
    packed = candidates.pack_entries(batch, hashes, whole, partitions)
    assert packed["partition"].to_pylist() == sorted(set(packed["partition"].to_pylist()))
    pairs = set()
    for data in packed["entries"].to_pylist():
        for a, b in candidates.meetings(np.frombuffer(data, np.uint64).reshape(-1, 2), most):
            pairs |= {(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True) if x != y}
    return pairs


def test_sentences_meet_that_share_a_bucket_and_of_which_one_is_new(monkeypatch):
    monkeypatch.setattr(candidates, "AT_ONCE", 7)
    random = np.random.default_rng(6)
    nodes = random.permutation(np.arange(-60, 60) * 3)
    new = random.random(120) < 0.6
    hashes = mixed(random.integers(0, 25, (120, 2)).astype(np.uint64) * np.uint64(2))
    hashes[:, 1] ^= np.uint64(1 << 40)
    expected = set()
    for i, j in combinations(range(120), 2):
        if (hashes[i] == hashes[j]).any():
            first, second = sorted((i, j), key=lambda k: (new[k], nodes[k]))
            if new[second]:
                expected.add((nodes[first], nodes[second]))
    assert met(hashes, nodes, new, 1000) == expected
    assert met(hashes, nodes, new, 1000, partitions=50) == expected


def test_a_crowded_bucket_has_anchors():
    nodes, new = np.arange(100), np.arange(100) >= 10
    pairs = met(np.full((100, 1), 2**50, np.uint64), nodes, new, 4)
    assert pairs == {(a, b) for b in range(10, 100) for a in range(4)}


def test_a_key_separates_and_a_small_one_compares_all():
    nodes, new = np.arange(30), np.ones(30, bool)
    keys = [[n % 10] if n < 28 else [3, 4] for n in range(30)]
    hashes = mixed(np.arange(1000, 1030, dtype=np.uint64))[:, None]
    pairs = met(hashes, nodes, new, 5, keys, whole=5)
    assert pairs == {(a, b) for a, b in combinations(range(30), 2) if {*keys[a]} & {*keys[b]}}
    large, apart = [[7] for _ in range(30)], [[n] for n in range(30)]
    assert met(hashes, nodes, new, 5, large, whole=5) == set()
    same = np.full((30, 1), 4, np.uint64)
    assert len(met(same, nodes, new, 40, large, whole=5)) == 435
    assert met(same, nodes, new, 40, apart, whole=5) == set()


EDGES = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=25)


@given(EDGES)
def test_components_are_what_can_be_reached(edges):
    least = {node: node for edge in edges for node in edge}
    for _ in least:
        for a, b in edges:
            least[a] = least[b] = min(least[a], least[b])
    assert join_edges(pd.DataFrame(edges, columns=["a", "b"], dtype=np.int64)).to_dict() == least


def component(size: int, alike, clusters=None, old=()) -> Component:
    sentences = [
        Sentence(n, f"{n:02}", f"t{n}", (clusters or {}).get(n), n not in old) for n in range(size)
    ]
    return Component(sentences, {(min(pair), max(pair)): True for pair in alike})


class Told(Linking):
    """Knows which pairs say the same; None: all do."""

    def __init__(self, share: float, true: Iterable[tuple[int, int]] | None):
        super().__init__(None, share, 0.8, 1, None)
        self.true = None if true is None else {frozenset(pair) for pair in true}
        self.asked = 0

    def same(self, sources, paraphrases):
        self.asked += len(sources)
        asked = [{int(a[1:]), int(b[1:])} for a, b in zip(sources, paraphrases, strict=True)]
        return [self.true is None or pair in self.true for pair in asked]


def linked(component: Component, true=(), share=0.5) -> list[set[int]]:
    """Returns the clusters' members. true: pairs with the same meaning, besides the known ones."""
    Told(share, true).link([component])
    for members, pairs in zip(component.clusters, component.pairs(), strict=True):
        assert {m for pair in pairs for m in pair} <= set(members)
    return [set(members) for members in component.clusters]


CHAIN = [(n, n + 1) for n in range(8)]
STAR = [(0, n) for n in range(1, 6)]
ALL = list(combinations(range(6), 2))
CLIQUE = list(combinations(range(5), 2))
TWO = [*combinations(range(4), 2), *combinations(range(4, 7), 2), (0, 4), (0, 5), (0, 6)]


@pytest.mark.parametrize(
    ("size", "known", "true", "share", "expected"),
    [
        (9, CHAIN, (), 0.5, [{0, 1, 2}, {3, 4}, {5, 6}, {7, 8}]),
        (9, CHAIN, (), 0.6, [{1, 2}, {3, 4}, {5, 6}, {7, 8}]),  # the ends of each three differ
        (6, STAR, ALL, 0.5, [set(range(6))]),  # they say the same, though no bucket showed it
        (6, STAR, (), 0.5, [{0, 4, 5}]),
        (6, STAR, (), 0.1, [set(range(6))]),
        (6, CHAIN[:5], ALL, 0.5, [{0, 1, 2}, {3, 4, 5}]),
        (6, CHAIN[:5], {*ALL} - {(1, 3), (1, 4), (1, 5)}, 0.6, [{0, 1, 2}, {3, 4, 5}]),
        (6, [*CLIQUE, (0, 5)], (), 0.5, [set(range(5))]),  # only the centre is linked to 5
        (6, [*CLIQUE, (0, 5)], (), 0.2, [set(range(6))]),
        (7, TWO, (), 0.6, [{0, 4, 5, 6}, {1, 2, 3}]),  # those that leave form a cluster
    ],
)
def test_components_are_cut_into_clusters(size, known, true, share, expected):
    assert linked(component(size, known), true, share) == expected


def test_newcomers_join_published_clusters_which_do_not_merge():
    old = {0: "00", 1: "00", 2: "02", 3: "02"}
    known = [(4, 0), (4, 1), (5, 3), (4, 2), (5, 6)]
    clusters = linked(component(7, known, old, old), [(5, 2), (4, 3)])
    assert clusters == [{0, 1, 4}, {2, 3, 5}]  # of two equally near, the smaller id wins
    given = component(7, known, old, old)
    assert linked(given) == [{0, 1, 4}, {2, 3}, {5, 6}]
    assert given.pairs() == [[(0, 4), (1, 4)], [], [(5, 6)]]  # no published pair is given again


@given(st.data())
def test_every_member_says_what_the_centre_says_and_a_share_of_the_others(data):
    size = data.draw(st.integers(2, 12))
    pairs = list(combinations(range(size), 2))
    true = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    known = data.draw(st.lists(st.sampled_from(true), unique=True)) if true else []
    clusters = linked(component(size, known), true)
    assert sum(map(len, clusters)) == len(set().union(*clusters)) if clusters else True
    same = {frozenset(pair) for pair in true}
    for members in clusters:
        degrees = [sum(frozenset((m, other)) in same for other in members - {m}) for m in members]
        assert max(degrees) == len(members) - 1
    if known:
        assert clusters


def test_large_clusters_are_compared_in_part(monkeypatch):
    monkeypatch.setattr(linking, "COMPARED", 10)
    star, told = component(200, [(0, n) for n in range(1, 200)]), Told(0.5, None)
    told.link([star])
    assert [len(members) for members in star.clusters] == [200]
    assert told.asked < 200 * 10


def test_chosen_pairs():
    pairs = list(combinations([f"第{n}句" for n in range(12)], 2))
    directed = choose(pairs, 1, None)
    assert {frozenset(pair) for pair in directed} == {frozenset(pair) for pair in pairs}
    assert 0.2 < sum(pair in pairs for pair in directed) / len(pairs) < 0.8
    few = choose(pairs, 1, 9)
    assert len(few) == 9
    assert set(few) < set(choose(pairs[::-1], 1, 20)) < set(directed)
