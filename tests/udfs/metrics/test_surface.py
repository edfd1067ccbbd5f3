"""PINC, edit distance, Self-BLEU and iBLEU must equal values by hand, and their definitions."""

import numpy as np
import plain_metrics
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.metrics.bleu import BLEU
from gaixie.udfs.metrics.edit_distance import EditDistance
from gaixie.udfs.metrics.ibleu import IBLEU, SelfIBLEU
from gaixie.udfs.metrics.pinc import PINC
from gaixie.udfs.metrics.self_bleu import SelfBLEU

TEXT = st.one_of(
    st.text("的一是 ", max_size=40), st.text(st.characters(codec="utf-8"), max_size=12)
)
ALPHA = st.sampled_from([0.0, 0.3, 1.0])
# 4/6, 3/5, 2/4, 1/3 of the n-grams of 今天天气不错 and 今天天气很好.
HALF = 100 * (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)

GOLDEN = {
    "pinc": [
        ("今天天气很好", "今天天气很好", 0.0),
        ("今天天气很好", "外面阳光明媚", 1.0),
        # New: 不 错 of the set 今 天 气 不 错; 气不 不错 of 5; 天气不 气不错 of 4; 2 of 3.
        ("今天天气很好", "今天天气不错", (2 / 5 + 2 / 5 + 2 / 4 + 2 / 3) / 4),
        # As sets, 哈 and 哈哈 are known; 哈哈哈 and 哈哈哈哈 are new.
        ("哈哈", "哈哈哈哈哈", (0 + 0 + 1 + 1) / 4),
        ("今天天气", "天今", (0 + 1) / 2),  # only orders 1 and 2
        ("今 天", "今天", 0.0),
        ("𠮷野家", "吉野家", (1 / 3 + 1 / 2 + 1) / 3),
        ("今天", "", 0.0),
        ("", "今天", 1.0),
    ],
    "edit-distance": [
        ("今天天气很好", "今天天气很好", 0.0),
        ("今天天气很好", "今天天气不错", 2 / 6),  # 很好 -> 不错
        ("今天天气", "天气", 2 / 4),  # 今天 is deleted
        ("春夏秋冬", "夏秋冬春", 2 / 4),  # 春 is deleted in front and added at the end
        ("今 天", "今天", 1 / 3),  # white space counts
        ("𠮷野家", "吉野家", 1 / 3),  # a code point is one character
        ("", "今天", 1.0),
        ("", "", 0.0),
    ],
    "self-bleu": [("今天天气不错", "今天天气很好", HALF), ("春", "春", 100), ("春", "", 0)],
}


def one(metric, *texts):
    return metric.sentence_scores(Pairs.of(*([text] for text in texts)))[0]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name):
    for source, paraphrase, expected in GOLDEN[name]:
        assert one(load_metric(name), source, paraphrase) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("source", "paraphrase", "reference", "expected"),
    [
        ("今天天气不错", "今天天气很好", "今天天气很好", 100 - 0.3 * HALF),
        ("今天天气很好", "今天天气很好", "今天天气不错", HALF - 30),
        ("外面阳光明媚", "今天天气很好", "今天天气不错", HALF),
        ("今天天气很好", "今天天气很好", "外面阳光明媚", -30),
        ("今天", "", "今天", 0),
    ],
)
def test_golden_ibleu(source, paraphrase, reference, expected):
    assert one(IBLEU(), source, paraphrase, reference) == pytest.approx(expected)
    pairs = Pairs.of([source], [paraphrase], [reference])
    assert IBLEU().corpus_score(pairs) == pytest.approx(expected)


@given(TEXT, TEXT, st.sampled_from(["char", "zh", "13a"]), st.integers(1, 6))
def test_pinc_as_defined(source, paraphrase, tokenize, order):
    score = one(PINC(tokenize, order), source, paraphrase)
    assert score == pytest.approx(plain_metrics.pinc(source, paraphrase, tokenize, order))
    assert one(PINC(tokenize, order), source, source) == 0


@given(TEXT, TEXT)
def test_edit_distance_as_defined(source, paraphrase):
    score = one(EditDistance(), source, paraphrase)
    assert score == pytest.approx(plain_metrics.edit_distance(source, paraphrase))
    assert score == one(EditDistance(), paraphrase, source)
    assert (score == 0) == (source == paraphrase)


@given(TEXT, TEXT, st.lists(TEXT, min_size=1, max_size=2), ALPHA)
def test_ibleu_as_defined(source, paraphrase, references, alpha):
    score = one(IBLEU(alpha), source, paraphrase, *references)
    expected = plain_metrics.ibleu(source, paraphrase, references, alpha)
    assert score == pytest.approx(expected, abs=1e-9)
    own, kept = one(SelfBLEU(), source, paraphrase), one(BLEU(), "", paraphrase, *references)
    assert own == one(BLEU(), "", paraphrase, source)
    assert score == pytest.approx(kept - alpha * own, abs=1e-9)
    assert IBLEU(alpha).range[0] - 1e-9 <= score <= IBLEU(alpha).range[1] + 1e-9


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8), ALPHA)
def test_self_ibleu_is_ibleu_with_the_source_for_reference(rows, alpha):
    sources, paraphrases = map(list, zip(*rows, strict=True))
    pairs = Pairs.of(sources, paraphrases, sources)
    metric, full = SelfIBLEU(alpha=alpha), IBLEU(alpha)
    expected = full.sentence_scores(pairs)
    np.testing.assert_allclose(metric.sentence_scores(pairs), expected, rtol=0, atol=1e-9)
    assert metric.corpus_score(pairs) == pytest.approx(full.corpus_score(pairs), abs=1e-9)
