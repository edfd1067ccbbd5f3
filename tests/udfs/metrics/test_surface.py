"""PINC, edit distance, Self-BLEU and iBLEU must equal their definitions."""

import Levenshtein
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics import Pairs
from gaixie.udfs.metrics.bleu import BLEU, IBLEU, SelfBLEU
from gaixie.udfs.metrics.edit_distance import EditDistance
from gaixie.udfs.metrics.grams import tokenizer
from gaixie.udfs.metrics.pinc import PINC

TEXT = st.text("的一是 ", max_size=40) | st.text(st.characters(codec="utf-8"), max_size=12)


def one(metric, *texts):
    return metric.sentence_scores(Pairs.of(*([text] for text in texts)))[0]


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
