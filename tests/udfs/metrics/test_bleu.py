"""BLEU must equal values by hand, and sacrebleu.

By hand: 100 · BP · (p1 · p2 · p3 · p4)^(1/4), p_n = matched n-grams / n-grams of the paraphrase,
over the orders that the paraphrase has; BP = min(1, exp(1 − r / m)).
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU as Sacrebleu

from gaixie.udfs.metrics.bleu import BLEU
from gaixie.udfs.metrics.metric import Pairs

GOLDEN = [
    # 今 天 天 气 of 6; 今天 天天 天气 of 5; 今天天 天天气 of 4; 今天天气 of 3.
    ("今天天气很好", ["今天天气不错"], 100 * (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)),
    ("今天", ["今天天气"], 100 * math.exp(1 - 4 / 2)),  # orders 1 and 2 match; brevity
    # Clipped by the second: 2 of 3, 1 of 2; 哈哈哈 is smoothed: 1 / (2 · 1). Closest length is 2.
    ("哈哈哈", ["哈", "哈哈"], 100 * (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3)),
    # Both together match 2 of 3; longer n-grams: 1/2 of 2, 1/4 of 1. Of lengths 2 and 4, 2 counts.
    ("春夏秋", ["春冬", "冬夏冬冬"], 100 * (2 / 3 * 1 / 4 * 1 / 4) ** (1 / 3)),
    ("今天 天气", ["今天天 气"], 100.0),  # white space is not a token
    ("今天天气很好", ["外面阳光明媚"], 0.0),
    ("", ["今天"], 0.0),
    ("", [""], 0.0),
]


def one(metric, paraphrase, references):
    return metric.sentence_scores(Pairs.of([""], [paraphrase], *([r] for r in references)))[0]


@pytest.mark.parametrize(("paraphrase", "references", "expected"), GOLDEN)
def test_golden(paraphrase, references, expected):
    assert one(BLEU(), paraphrase, references) == pytest.approx(expected, abs=1e-9)


def test_corpus_golden():
    # Counts are summed: 4 + 0 of 6 + 1; 好 adds nothing to the longer orders.
    pairs = Pairs.of([None] * 3, ["今天天气很好", "好", None], ["今天天气不错", "坏", "好"])
    expected = 100 * (4 / 7 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)
    assert BLEU().corpus_score(pairs) == pytest.approx(expected, abs=1e-9)


def assert_as_sacrebleu(metric, rows):
    """Asserts equality with sacrebleu.

    rows: (paraphrase, references); equally many references, some null.
    """
    paraphrases, references = zip(*rows, strict=True)
    columns = list(zip(*references, strict=True))
    pairs = Pairs.of([None] * len(rows), list(paraphrases), *map(list, columns))
    settings = {"tokenize": metric.tokenize, "max_ngram_order": metric.order, "force": True}
    sentence = Sacrebleu(**settings, effective_order=True)
    expected = [
        sentence.sentence_score(p, [r for r in refs if r is not None]).score for p, refs in rows
    ]
    np.testing.assert_allclose(metric.sentence_scores(pairs), expected, rtol=0, atol=1e-9)
    corpus = Sacrebleu(**settings).corpus_score(paraphrases, columns).score
    assert metric.corpus_score(pairs) == pytest.approx(corpus, abs=1e-9)


SHARING = st.text("的一是 ", max_size=30)
ANY = st.text(st.characters(codec="utf-8"), max_size=12)
PIECES = st.lists(
    st.sampled_from(["今天天气很好", "我们", "early", " ", "哈", "好的，", "3.5", "\u3000", "𠮷"])
).map("".join)
TEXT = st.one_of(SHARING, ANY, PIECES)
ROWS = st.lists(
    st.tuples(TEXT, st.tuples(TEXT, st.one_of(st.none(), TEXT), st.one_of(st.none(), TEXT))),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60)
@given(ROWS, st.sampled_from(["char", "zh", "13a"]), st.integers(1, 6))
def test_as_sacrebleu(rows, tokenize, order):
    assert_as_sacrebleu(BLEU(tokenize, order), rows)


def test_words():
    # 我/很/高兴 and 我/很/快乐: 2 of 3 words, 1 of 2, none of 1, which exp counts as a half
    expected = 100 * (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3)
    assert one(BLEU("zh-word"), "我很高兴", ["我很快乐"]) == pytest.approx(expected)
    assert one(BLEU("zh-word"), "我很高兴", ["我很高兴"]) == pytest.approx(100)
