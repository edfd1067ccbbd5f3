"""BLEU must equal sacrebleu."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU as Sacrebleu

from gaixie.udfs.metrics.bleu import BLEU
from gaixie.udfs.metrics.metric import Pairs

SHARING = st.text("的一是 ", max_size=30)
ANY = st.text(st.characters(codec="utf-8"), max_size=12)
PIECE = st.sampled_from(
    ["今天天气很好", "我们", "early", " ", "哈", "好的，", "3.5", "\u3000", "𠮷"]
)
PIECES = st.lists(PIECE).map("".join)
TEXT = st.one_of(SHARING, ANY, PIECES)
REFERENCES = st.tuples(TEXT, st.none() | TEXT, st.none() | TEXT)
ROWS = st.lists(st.tuples(TEXT, REFERENCES), min_size=1, max_size=6)


@settings(max_examples=60)
@given(ROWS, st.sampled_from(["char", "zh", "13a"]), st.integers(1, 6))
def test_as_sacrebleu(rows, tokenize, order):
    metric = BLEU(tokenize, order)
    paraphrases, references = zip(*rows, strict=True)
    columns = list(zip(*references, strict=True))
    pairs = Pairs.of([None] * len(rows), list(paraphrases), *map(list, columns))
    settings = {"tokenize": tokenize, "max_ngram_order": order, "force": True}
    sentence = Sacrebleu(**settings, effective_order=True)
    expected = [
        sentence.sentence_score(p, [r for r in refs if r is not None]).score for p, refs in rows
    ]
    np.testing.assert_allclose(metric.sentence_scores(pairs), expected, rtol=0, atol=1e-9)
    corpus = Sacrebleu(**settings).corpus_score(paraphrases, columns).score
    assert metric.corpus_score(pairs) == pytest.approx(corpus, abs=1e-9)
