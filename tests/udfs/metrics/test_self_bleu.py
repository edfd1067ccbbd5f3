"""Self-BLEU: BLEU with the source as the only reference."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.bleu import BLEU
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.self_bleu import SelfBLEU, reference

TEXT = st.one_of(
    st.text("的一是 ", max_size=30), st.text(st.characters(codec="utf-8"), max_size=12)
)


def test_golden():
    # The orders hold 4/6, 3/5, 2/4, 1/3; the reference is not looked at.
    pairs = Pairs.of(["今天天气不错"], ["今天天气很好"], ["今天天气很好"])
    expected = 100 * (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)
    assert SelfBLEU().sentence_scores(pairs)[0] == pytest.approx(expected)
    assert SelfBLEU().corpus_score(pairs) == pytest.approx(expected)


@given(TEXT, TEXT)
def test_is_bleu_against_the_source(source, paraphrase):
    pairs = Pairs.of([source], [paraphrase])
    score = SelfBLEU().sentence_scores(pairs)[0]
    assert score == pytest.approx(reference(source, paraphrase), abs=1e-9)
    assert score == BLEU().sentence_scores(Pairs.of([None], [paraphrase], [source]))[0]


def test_a_corpus_and_rows_without_a_side():
    pairs = Pairs.of(["今天天气很好", None, "春"], ["今天天气很好", "夏", None])
    np.testing.assert_array_equal(np.isnan(SelfBLEU().sentence_scores(pairs)), [False, True, True])
    assert SelfBLEU().corpus_score(pairs) == pytest.approx(100)
    assert math.isnan(SelfBLEU().corpus_score(Pairs.of([None], ["夏"])))


def test_signature():
    assert SelfBLEU(order=2).signature().startswith("Self-BLEU|case:mixed|")
    with pytest.raises(ValueError, match="order must be at least 1"):
        SelfBLEU(order=0)
