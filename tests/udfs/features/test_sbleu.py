"""SBLEU must equal values by hand, and sacrebleu.

By hand: BP · (p4 · p5 · p6 · p7)^(1/4), p_k = matched k-grams / k-grams of the paraphrase, over the
orders of which the paraphrase has k-grams; BP = min(1, exp(1 − n / m)).
"""

import math

import numpy as np
import plain_features
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from gaixie.udfs.features import FEATURES, extract
from gaixie.udfs.text.normalise import normalise

GOLDEN = [
    ("今天天气非常好", "今天天气非常好", 1.0),
    # m = 7 has 4, 3, 2, 1 n-grams; those with 呀 miss. No 7-gram matches: 1 / (2 · 1).
    ("今天天气很好啊", "今天天气很好呀", (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** (1 / 4)),
    ("今天天气很好", "今天天气", math.exp(1 - 6 / 4)),  # p4 = 1/1 alone, and brevity
    ("今天天气", "今天天气很好", (1 / 3 * 1 / 4 * 1 / 4) ** (1 / 3)),  # p5 = 1/(2·2), p6 = 1/(4·1)
    # Clipped: the source has 哈哈哈哈 once, so one of three matches. p5, p6 as above; no p7.
    ("哈哈哈哈", "哈哈哈哈哈哈", (1 / 3 * 1 / 4 * 1 / 4) ** (1 / 3)),
    # 我们明天 and 早点出发 moved. m = 8: 2 of 5; then 0 of 4, 3, 2: 1/(2·4), 1/(4·3), 1/(8·2).
    ("我们明天早点出发", "早点出发我们明天", (2 / 5 * 1 / 8 * 1 / 12 * 1 / 16) ** (1 / 4)),
    ("今天 天气", "今天天气", 1.0),  # spaces do not count
    ("今天天气很好", "外面阳光明媚", 0.0),
    ("今天天气很好", "今天天", math.nan),  # too short for any n-gram
    ("", "", math.nan),
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(both, source, paraphrase, expected):
    actual = both("sbleu", source, paraphrase)
    assert actual == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)


ALL_ORDERS = BLEU(tokenize="char", max_ngram_order=7, effective_order=True, force=True)


def by_sacrebleu(source: str, paraphrase: str) -> float:
    """Computes SBLEU from sacrebleu's statistics of orders 4 to 7, by sacrebleu's formula."""
    score = ALL_ORDERS.sentence_score(normalise(paraphrase), [normalise(source)])
    if not score.totals[3]:
        return math.nan  # sacrebleu gives 0 if there is no n-gram at all
    return (
        BLEU.compute_bleu(
            score.counts[3:7],
            score.totals[3:7],
            score.sys_len,
            score.ref_len,
            smooth_method="exp",
            effective_order=True,
            max_ngram_order=4,
        ).score
        / 100
    )


def assert_as_sacrebleu(pairs, segmenter):
    sources, paraphrases = (pa.array(list(side), pa.string()) for side in zip(*pairs, strict=True))
    actual = extract(sources, paraphrases, segmenter)[:, FEATURES.index("sbleu")]
    expected = np.array([by_sacrebleu(*pair) for pair in pairs])
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)
    references = [plain_features.sbleu(*map(normalise, pair)) for pair in pairs]
    np.testing.assert_allclose(references, expected, rtol=1e-9)


SHARING = st.text("的一是 ", max_size=30)
ANY = st.text(st.characters(codec="utf-8", exclude_characters="\ufffd"), max_size=12)
# Both texts use the same pieces, so that they share long n-grams.
PIECES = st.lists(
    st.sampled_from(["今天天气很好", "我们", "明天早点出发", " ", "哈", "好的，", "3.5"])
)


@settings(max_examples=50)
@given(
    st.lists(
        st.one_of(
            st.tuples(SHARING, SHARING),
            st.tuples(ANY, ANY),
            st.tuples(PIECES.map("".join), PIECES.map("".join)),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_as_sacrebleu(characters, pairs):
    assert_as_sacrebleu(pairs, characters)
