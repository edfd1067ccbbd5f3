"""chrF: by hand, and sacrebleu's own score with its settings."""

import math

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from gaixie.udfs.metrics.chrf import ChrF
from gaixie.udfs.metrics.metric import Pairs

# Precision and recall are equal: 4/6, 3/5, 2/4, 1/3, 0/2, 0/1, and so is any F of them.
HALF = 100 * (4 / 6 + 3 / 5 + 2 / 4 + 1 / 3) / 6


@pytest.mark.parametrize(
    ("paraphrase", "references", "expected"),
    [
        ("今天天气很好", ["今天天气很好"], 100),
        ("今天天气很好", ["今天天气不错"], HALF),
        ("今天天气很好", ["今天天气不错", "今天天气很好"], 100),  # the best
        # One order: P = 1/1, R = 1/2, F = 5 · 1 · 1/2 / (4 · 1 + 1/2).
        ("今", ["今天"], 100 * 2.5 / 4.5),
        ("𠮷 野", ["𠮷野"], 100),
        ("今天", ["外面"], 0),
        ("", ["今天"], 0),
        ("", [""], 0),
    ],
)
def test_golden(paraphrase, references, expected):
    pairs = Pairs.of([None], [paraphrase], *([r] for r in references))
    assert ChrF().sentence_scores(pairs)[0] == pytest.approx(expected)
    assert ChrF().corpus_score(pairs) == pytest.approx(expected)


@pytest.mark.parametrize("settings", [(6, 0, 2), (4, 2, 1)])
def test_as_sacrebleu(settings):
    paraphrases = ["The cat sat here.", "他把书放在桌上，走了。", "晚上见"]
    references = [["A cat sits here.", "书被他放在桌上。", "明天晚上见"], ["Cats sit.", None, ""]]
    sacrebleu = CHRF(*settings)
    expected = [
        sacrebleu.sentence_score(p, [r for r in row if r is not None]).score
        for p, *row in zip(paraphrases, *references, strict=True)
    ]
    pairs = Pairs.of([None] * 3, paraphrases, *references)
    np.testing.assert_array_equal(ChrF(*settings).sentence_scores(pairs), expected)
    corpus = sacrebleu.corpus_score(paraphrases, references).score
    assert ChrF(*settings).corpus_score(pairs) == corpus


def test_rows_without_a_side():
    references = ["春", "春", None, None], [None, None, None, "春"]
    pairs = Pairs.of([None] * 4, ["春", None, "春", "春"], *references)
    np.testing.assert_allclose(ChrF().sentence_scores(pairs), [100, np.nan, np.nan, 100])
    assert ChrF().corpus_score(pairs) == pytest.approx(100)
    assert math.isnan(ChrF().corpus_score(Pairs.of([None], [None], ["春"])))


def test_settings():
    signature = ChrF(word_order=2).signature()
    assert signature.startswith("chrF2++|case:mixed|eff:yes|nc:6|nw:2|space:no|sacrebleu:")
    with pytest.raises(ValueError, match="char_order must be at least 1 and word_order 0, not 0"):
        ChrF(char_order=0)
    with pytest.raises(ValueError, match="beta must be at least 1, not 0"):
        ChrF(beta=0)
    with pytest.raises(ValueError, match="chrf needs a reference"):
        ChrF().corpus_score(Pairs.of(["春"], ["夏"]))
