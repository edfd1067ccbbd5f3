"""PINC, edit distance, Self-BLEU and iBLEU must equal values by hand, and their definitions."""

import Levenshtein
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.metrics.bleu import BLEU, IBLEU, SelfBLEU, SelfIBLEU
from gaixie.udfs.metrics.edit_distance import EditDistance
from gaixie.udfs.metrics.grams import tokenizer
from gaixie.udfs.metrics.pinc import PINC

TEXT = st.one_of(
    st.text("的一是 ", max_size=40), st.text(st.characters(codec="utf-8"), max_size=12)
)
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
        ("", "今天", 1.0),
    ],
    "edit-distance": [
        ("今天天气很好", "今天天气不错", 2 / 6),  # 很好 -> 不错
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
        ("今天", "", "今天", 0),
    ],
)
def test_golden_ibleu(source, paraphrase, reference, expected):
    assert one(IBLEU(), source, paraphrase, reference) == pytest.approx(expected)
    pairs = Pairs.of([source], [paraphrase], [reference])
    assert IBLEU().corpus_score(pairs) == pytest.approx(expected)


def pinc(a, b, order):
    def grams(tokens, n):
        return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}

    orders = range(1, min(order, len(b)) + 1)
    new = [len(grams(b, n) - grams(a, n)) / len(grams(b, n)) for n in orders]
    return sum(new) / len(new) if new else 0.0


@given(TEXT, TEXT, st.sampled_from(["char", "zh", "13a"]), st.integers(1, 6))
def test_pinc_as_defined(source, paraphrase, tokenize, order):
    cut = tokenizer(tokenize)
    score = one(PINC(tokenize, order), source, paraphrase)
    assert score == pytest.approx(pinc(cut(source), cut(paraphrase), order))


@given(TEXT, TEXT, TEXT, st.sampled_from([0.0, 0.3, 1.0]))
def test_distance_and_ibleu_as_defined(source, paraphrase, reference, alpha):
    longer = max(len(source), len(paraphrase), 1)
    distance = Levenshtein.distance(source, paraphrase) / longer
    assert one(EditDistance(), source, paraphrase) == pytest.approx(distance)
    copied, kept = one(SelfBLEU(), source, paraphrase), one(BLEU(), "", paraphrase, reference)
    assert copied == one(BLEU(), "", paraphrase, source)
    score = one(IBLEU(alpha), source, paraphrase, reference)
    assert score == pytest.approx(kept - alpha * copied, abs=1e-9)
    own = one(SelfIBLEU(alpha=alpha), source, paraphrase)
    assert own == pytest.approx(one(IBLEU(alpha), source, paraphrase, source), abs=1e-9)
