"""Normalised edit distance: by hand, against the plain table, and what a distance must hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.edit_distance import EditDistance, reference
from gaixie.udfs.metrics.metric import Pairs

GOLDEN = [
    ("今天天气很好", "今天天气很好", 0.0),
    ("今天天气很好", "今天天气不错", 2 / 6),  # 很好 -> 不错
    ("今天天气", "天气", 2 / 4),  # 今天 goes
    ("今天", "今天天气很好", 4 / 6),  # 天气很好 comes
    ("春夏秋冬", "夏秋冬春", 2 / 4),  # 春 goes in front and comes behind
    ("今 天", "今天", 1 / 3),  # white space counts
    ("𠮷野家", "吉野家", 1 / 3),  # a code point is one character
    ("今天", "", 1.0),
    ("", "今天", 1.0),
    ("", "", 0.0),
]


def scores(sources, paraphrases):
    return EditDistance().sentence_scores(Pairs.of(sources, paraphrases))


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(source, paraphrase, expected):
    assert reference(source, paraphrase) == pytest.approx(expected)
    assert scores([source], [paraphrase])[0] == pytest.approx(expected)


TEXT = st.one_of(
    st.text("的一是 ", max_size=100), st.text(st.characters(codec="utf-8"), max_size=12)
)


@given(TEXT, TEXT)
def test_as_the_plain_definition(source, paraphrase):
    there, back, copy = scores([source, paraphrase, source], [paraphrase, source, source])
    assert there == pytest.approx(reference(source, paraphrase))
    assert there == back
    assert 0 <= there <= 1
    assert (there == 0) == (source == paraphrase)
    assert copy == 0


def test_rows_without_a_side_and_the_corpus():
    pairs = Pairs.of(["春", None, "春", "春夏"], ["夏", "夏", None, "春夏"])
    np.testing.assert_array_equal(EditDistance().sentence_scores(pairs), [1, np.nan, np.nan, 0])
    assert EditDistance().corpus_score(pairs) == 0.5
    assert EditDistance().sentence_scores(Pairs.of([], [])).shape == (0,)
    assert EditDistance().signature().startswith("EditDistance|norm:longer|rapidfuzz:")
