"""SARI must equal its definition."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.sari import SARI

TEXT = st.text("我你他好𠮷 a", max_size=8)


def by_definition(source, paraphrase, references, deletion):
    def grams(tokens, n, times=1):
        found = Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
        return Counter({gram: times * count for gram, count in found.items()})

    def score_of_sides(both, done, right, kind="f1"):
        precision, recall = both / done if done else 0.0, both / right if right else 0.0
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        return precision if kind == "precision" else f1

    total = 0.0
    for n in (1, 2, 3, 4):
        o, p = grams(source, n, len(references)), grams(paraphrase, n, len(references))
        r = sum((grams(reference, n) for reference in references), Counter())
        new, wanted = p.keys() - o.keys(), r.keys() - o.keys()
        total += score_of_sides(len(new & wanted), len(new), len(wanted))
        total += score_of_sides((o & p & r).total(), (o & p).total(), (o & r).total())
        both, done, right = (o - p) & (o - r), o - p, o - r
        total += score_of_sides(both.total(), done.total(), right.total(), deletion)
    return 100 * total / 3 / 4


@given(
    st.lists(st.tuples(TEXT, TEXT, TEXT, st.none() | TEXT), min_size=1, max_size=4),
    st.sampled_from(["precision", "f1"]),
)
def test_fast_equals_the_reference(rows, deletion):
    columns = [list(column) for column in zip(*rows, strict=True)]
    found = SARI(deletion=deletion).sentence_scores(Pairs.of(*columns))
    for row, value in zip(rows, found, strict=True):
        there = [list(text.replace(" ", "")) for text in row if text is not None]
        source, paraphrase, *references = there
        assert value == pytest.approx(by_definition(source, paraphrase, references, deletion))
        assert 0 <= value <= 100
