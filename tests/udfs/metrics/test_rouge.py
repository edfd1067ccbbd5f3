"""ROUGE must equal rouge_score on the same tokens."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from gaixie.udfs.metrics.grams import tokenizer
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.rouge import ROUGE

VARIANTS = ("1", "2", "l")


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
