"""ROUGE: by hand, against rouge_score given the same tokens, and against rouge-chinese.

By hand: 2 · shared / (units of the paraphrase + units of the reference).
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_metrics import rouge
from rouge_score.rouge_scorer import RougeScorer

from gaixie.research.benchmarks.common import triples
from gaixie.udfs.metrics.grams import tokenizer
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.rouge import ROUGE

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the shared corpora in {DATA}")

GOLDEN = [
    # 今 天 天 气; 今天 天天 天气; 今天天气.
    ("今天天气很好", "今天天气不错", (8 / 12, 6 / 10, 8 / 12)),
    # All characters, 我们 们明 明天 and 早点 点出 出发 of 7 + 7, and one half as a subsequence.
    ("我们明天早点出发", "早点出发我们明天", (1.0, 12 / 14, 8 / 16)),
    ("哈哈哈", "哈哈", (4 / 5, 2 / 3, 4 / 5)),  # a repeated one counts as often as both have it
    ("春夏秋冬", "春秋", (4 / 6, 0.0, 4 / 6)),
    ("𠮷野家", "吉野家", (4 / 6, 2 / 4, 4 / 6)),
    ("好", "好", (1.0, 0.0, 1.0)),  # one character is no pair of neighbours
    ("今天", "外面", (0.0, 0.0, 0.0)),
    ("", "今天", (0.0, 0.0, 0.0)),
    ("", "", (0.0, 0.0, 0.0)),
]
VARIANTS = ("1", "2", "l")


@pytest.mark.parametrize(("paraphrase", "reference", "expected"), GOLDEN)
def test_golden(paraphrase, reference, expected):
    pairs = Pairs.of([None], [paraphrase], [reference])
    actual = tuple(ROUGE(v).sentence_scores(pairs)[0] for v in VARIANTS)
    assert actual == pytest.approx(expected)
    assert tuple(rouge(paraphrase, reference, v) for v in VARIANTS) == pytest.approx(expected)


# More than 64 characters, so that a subsequence runs over several machine words.
LONG = st.text("的一是 不", max_size=300)
TEXT = st.one_of(LONG, st.text(st.characters(codec="utf-8"), max_size=12))


@settings(max_examples=60)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4), st.sampled_from(VARIANTS))
def test_as_the_plain_definition(rows, variant):
    paraphrases, references = map(list, zip(*rows, strict=True))
    pairs = Pairs.of(references, paraphrases, references)
    scores = ROUGE(variant).sentence_scores(pairs)
    expected = [rouge(p, r, variant) for p, r in rows]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
    assert ((scores >= 0) & (scores <= 1)).all()
    mirrored = ROUGE(variant).sentence_scores(Pairs.of(paraphrases, references, paraphrases))
    np.testing.assert_array_equal(scores, mirrored)


def test_a_sentence_of_many_different_characters():
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 1_500)))
    pairs = Pairs.of([None, None], [text, "一"], [text[::2], "一"])
    np.testing.assert_allclose(ROUGE("l").sentence_scores(pairs), [1500 / 2250, 1])


def test_the_best_of_several_references():
    pairs = Pairs.of([None] * 3, ["春夏", "春夏", None], ["春", None, "春"], ["春夏", "秋", "春"])
    np.testing.assert_allclose(ROUGE("1").sentence_scores(pairs), [1, 0, np.nan])
    assert ROUGE("1").corpus_score(pairs) == 0.5


class Split:
    def tokenize(self, text):
        return tokenizer("char")(text)


def by_rouge_score(rows, tokens):
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=tokens)
    scores = [scorer.score(reference, paraphrase) for paraphrase, reference in rows]
    return {v: [s[f"rouge{v.upper()}"].fmeasure for s in scores] for v in VARIANTS}


def assert_as_rouge_score(rows, tokenize, tokens):
    paraphrases, references = map(list, zip(*rows, strict=True))
    pairs = Pairs.of([None] * len(rows), paraphrases, references)
    for variant, expected in by_rouge_score(rows, tokens).items():
        actual = ROUGE(variant, tokenize).sentence_scores(pairs)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_words_are_rouge_scores():
    rows = [
        ("It's 3.5 miles to THE house, no?", "It is three miles to the house."),
        ("the the the cat", "the cat the"),
        ("", "the"),
        ("中文 cat", "a cat"),
    ]
    assert_as_rouge_score(rows, "word", None)


@needs_data
def test_as_rouge_score_on_real_pairs():
    assert_as_rouge_score([(p, r) for _, p, r in triples(DATA, 600)], "char", Split())


def test_names_and_settings():
    assert [ROUGE(v).name for v in VARIANTS] == ["rouge-1", "rouge-2", "rouge-l"]
    assert ROUGE("l", "word").signature().startswith("ROUGE-L|tok:word|stat:f1|refs:best|v:")
    with pytest.raises(ValueError, match="variant '3': expected one of 1, 2, l"):
        ROUGE("3")
    with pytest.raises(ValueError, match="tokenize 'zh': expected one of char, word"):
        ROUGE(tokenize="zh")
    with pytest.raises(ValueError, match="rouge-l needs a reference"):
        ROUGE().sentence_scores(Pairs.of(["春"], ["夏"]))
