"""iBLEU and Self-iBLEU: by hand, and from BLEU and Self-BLEU."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.bleu import BLEU
from gaixie.udfs.metrics.ibleu import IBLEU, SelfIBLEU, reference
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.self_bleu import SelfBLEU

TEXT = st.one_of(
    st.text("的一是 ", max_size=30), st.text(st.characters(codec="utf-8"), max_size=12)
)
ALPHA = st.sampled_from([0.0, 0.3, 1.0])
# 4/6, 3/5, 2/4, 1/3 of the n-grams.
HALF = 100 * (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)

GOLDEN = [
    ("今天天气不错", "今天天气很好", ["今天天气很好"], 100 - 0.3 * HALF),
    ("今天天气很好", "今天天气很好", ["今天天气不错"], HALF - 30),
    ("外面阳光明媚", "今天天气很好", ["今天天气不错"], HALF),
    ("今天天气很好", "今天天气很好", ["外面阳光明媚"], -30),
    ("今天", "", ["今天"], 0),
]


@pytest.mark.parametrize(("source", "paraphrase", "references", "expected"), GOLDEN)
def test_golden(source, paraphrase, references, expected):
    pairs = Pairs.of([source], [paraphrase], references)
    assert reference(source, paraphrase, references) == pytest.approx(expected)
    assert IBLEU().sentence_scores(pairs)[0] == pytest.approx(expected)
    assert IBLEU().corpus_score(pairs) == pytest.approx(expected)


@given(TEXT, TEXT, st.lists(TEXT, min_size=1, max_size=2), ALPHA)
def test_is_bleu_less_self_bleu(source, paraphrase, references, alpha):
    pairs = Pairs.of([source], [paraphrase], *([r] for r in references))
    metric = IBLEU(alpha)
    score = metric.sentence_scores(pairs)[0]
    assert score == pytest.approx(reference(source, paraphrase, references, alpha), abs=1e-9)
    own = SelfBLEU().sentence_scores(pairs)[0]
    assert score == pytest.approx(BLEU().sentence_scores(pairs)[0] - alpha * own, abs=1e-9)
    assert metric.range[0] - 1e-9 <= score <= metric.range[1] + 1e-9


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8), ALPHA)
def test_self_ibleu_is_ibleu_with_the_source_for_reference(rows, alpha):
    sources, paraphrases = map(list, zip(*rows, strict=True))
    pairs = Pairs.of(sources, paraphrases, sources)
    metric, full = SelfIBLEU(alpha=alpha), IBLEU(alpha)
    expected = full.sentence_scores(pairs)
    np.testing.assert_allclose(metric.sentence_scores(pairs), expected, rtol=0, atol=1e-9)
    assert metric.corpus_score(pairs) == pytest.approx(full.corpus_score(pairs), abs=1e-9)


def test_a_corpus_counts_the_complete_rows_alone():
    pairs = Pairs.of(
        ["今天天气不错", None, "春", "春"],
        ["今天天气很好", "夏", "春", None],
        ["今天天气很好", "秋", None, "春"],
    )
    scores = IBLEU().sentence_scores(pairs)
    np.testing.assert_array_equal(np.isnan(scores), [False, True, True, True])
    assert IBLEU().corpus_score(pairs) == pytest.approx(100 - 0.3 * HALF)
    assert math.isnan(IBLEU().corpus_score(Pairs.of([None], ["夏"], ["夏"])))


def test_signatures_ranges_and_needs():
    assert IBLEU(0.2).signature().startswith("iBLEU|alpha:0.2|case:mixed|")
    assert SelfIBLEU(alpha=0.2).signature().startswith("Self-iBLEU|alpha:0.2|case:mixed|")
    assert (IBLEU(0.2).range, SelfIBLEU(alpha=0.2).range) == ((-20, 100), (0, 80))
    with pytest.raises(ValueError, match="ibleu needs a reference"):
        IBLEU().sentence_scores(Pairs.of(["春"], ["夏"]))
    for metric in (IBLEU, SelfIBLEU):
        with pytest.raises(ValueError, match="alpha must lie between 0 and 1"):
            metric(alpha=1.5)
        with pytest.raises(ValueError, match="tokenize 'jieba': expected one of"):
            metric(tokenize="jieba")
