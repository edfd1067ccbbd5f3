"""ROUGE must equal values by hand, rouge_score on the same tokens, and rouge-chinese.

By hand: 2 · shared / (units of the paraphrase + units of the reference).
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from gaixie.udfs.metrics.grams import tokenizer
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.rouge import ROUGE

GOLDEN = [
    # 今 天 天 气; 今天 天天 天气; 今天天气.
    ("今天天气很好", "今天天气不错", (8 / 12, 6 / 10, 8 / 12)),
    # All characters; 我们 们明 明天 and 早点 点出 出发 of 7 + 7; one half as a subsequence.
    ("我们明天早点出发", "早点出发我们明天", (1.0, 12 / 14, 8 / 16)),
    ("哈哈哈", "哈哈", (4 / 5, 2 / 3, 4 / 5)),  # a repeated unit counts as often as both have it
    ("好", "好", (1.0, 0.0, 1.0)),  # one character has no bigram
    ("", "今天", (0.0, 0.0, 0.0)),
    ("", "", (0.0, 0.0, 0.0)),
]
VARIANTS = ("1", "2", "l")


@pytest.mark.parametrize(("paraphrase", "reference", "expected"), GOLDEN)
def test_golden(paraphrase, reference, expected):
    pairs = Pairs.of([None], [paraphrase], [reference])
    actual = tuple(ROUGE(v).sentence_scores(pairs)[0] for v in VARIANTS)
    assert actual == pytest.approx(expected)


def test_the_best_of_several_references():
    pairs = Pairs.of([None] * 3, ["春夏", "春夏", None], ["春", None, "春"], ["春夏", "秋", "春"])
    np.testing.assert_allclose(ROUGE("1").sentence_scores(pairs), [1, 0, np.nan])
    assert ROUGE("1").corpus_score(pairs) == 0.5


class Split:
    def tokenize(self, text):
        return tokenizer("char")(text)


# More than 64 characters, so that a subsequence spans several machine words.
TEXT = st.text("的一是 不", max_size=300) | st.text(st.characters(codec="utf-8"), max_size=12)
ROWS = [("It's 3.5 miles to THE house, no?", "It is three miles to the house."), ("", "the")]


@settings(max_examples=40)
@example([*ROWS, ("the the the cat", "the cat the"), ("中文 cat，好好", "a cat好")])
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4))
def test_as_rouge_score(rows):
    paraphrases, references = map(list, zip(*rows, strict=True))
    pairs = Pairs.of([None] * len(rows), paraphrases, references)
    for tokenize, tokens in (("word", None), ("char", Split())):
        scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=tokens)
        scores = [scorer.score(*row[::-1]) for row in rows]
        for variant in VARIANTS:
            expected = [score[f"rouge{variant.upper()}"].fmeasure for score in scores]
            actual = ROUGE(variant, tokenize).sentence_scores(pairs)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)
