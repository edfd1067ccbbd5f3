"""PINC: by hand, over sets of n-grams, and against the plain definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.pinc import PINC, reference

GOLDEN = [
    ("今天天气很好", "今天天气很好", 0.0),
    ("今天天气很好", "外面阳光明媚", 1.0),
    # New: 不 错 of the set 今 天 气 不 错; 气不 不错 of 5; 天气不 气不错 of 4; 2 of 3.
    ("今天天气很好", "今天天气不错", (2 / 5 + 2 / 5 + 2 / 4 + 2 / 3) / 4),
    # One 哈 and one 哈哈, both known; 哈哈哈 and 哈哈哈哈 are new.
    ("哈哈", "哈哈哈哈哈", (0 + 0 + 1 + 1) / 4),
    ("今天天气", "天今", (0 + 1) / 2),  # orders 1 and 2 alone
    ("今 天", "今天", 0.0),
    ("𠮷野家", "吉野家", (1 / 3 + 1 / 2 + 1) / 3),
    ("今天", "", 0.0),
    ("", "今天", 1.0),
    ("", "", 0.0),
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(source, paraphrase, expected):
    assert reference(source, paraphrase) == pytest.approx(expected)
    assert PINC().sentence_scores(Pairs.of([source], [paraphrase]))[0] == pytest.approx(expected)


TEXT = st.one_of(
    st.text("的一是 ", max_size=40), st.text(st.characters(codec="utf-8"), max_size=12)
)


@given(TEXT, TEXT, st.sampled_from(["char", "zh", "13a"]), st.integers(1, 6))
def test_as_the_plain_definition(source, paraphrase, tokenize, order):
    score = PINC(tokenize, order).sentence_scores(Pairs.of([source], [paraphrase]))[0]
    assert score == pytest.approx(reference(source, paraphrase, tokenize, order))
    assert 0 <= score <= 1
    copy = PINC(tokenize, order).sentence_scores(Pairs.of([source], [source]))[0]
    assert copy == 0


def test_rows_without_a_side_and_the_corpus():
    pairs = Pairs.of(["春", None, "春"], ["夏", "夏", None])
    np.testing.assert_array_equal(PINC().sentence_scores(pairs), [1, np.nan, np.nan])
    assert PINC().corpus_score(pairs) == 1


def test_settings():
    assert PINC("zh", 3).signature().startswith("PINC|tok:zh|order:3|v:")
    with pytest.raises(ValueError, match="tokenize 'word': expected one of char, zh, 13a"):
        PINC("word")
    with pytest.raises(ValueError, match="order must be at least 1, not 0"):
        PINC(order=0)
