"""TER: by hand, and sacrebleu's own score with its settings."""

import math

import numpy as np
import pytest
from sacrebleu.metrics.ter import TER as Sacrebleu

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.ter import TER


@pytest.mark.parametrize(
    ("paraphrase", "references", "expected"),
    [
        ("今天天气很好", ["今天天气很好"], 0),
        ("今天天气很好", ["今天天气不错"], 100 * 2 / 6),  # 很好 -> 不错
        ("早点出发我们明天", ["我们明天早点出发"], 100 * 1 / 8),  # one shift
        ("今天天气", ["天气"], 100 * 2 / 2),  # 今天 goes, of a reference of two
        ("今天天气", ["今天天", "今天天气很好"], 100 * 1 / 4.5),  # fewest edits, mean length
        ("今天", [""], 100),
        ("", ["今天"], 100),
        ("", [""], 0),
    ],
)
def test_golden(paraphrase, references, expected):
    pairs = Pairs.of([None], [paraphrase], *([r] for r in references))
    assert TER().sentence_scores(pairs)[0] == pytest.approx(expected)
    assert TER().corpus_score(pairs) == pytest.approx(expected)


def test_a_corpus_divides_the_sum_of_all_edits():
    pairs = Pairs.of([None] * 3, ["今天天气很好", "春", None], ["今天天气不错", "春", "夏"])
    assert TER().corpus_score(pairs) == pytest.approx(100 * 2 / 7)


@pytest.mark.parametrize(
    "settings",
    [{}, {"no_punct": True, "case_sensitive": True}, {"normalized": False, "asian_support": False}],
)
def test_as_sacrebleu(settings):
    paraphrases = ["The Cat sat here, again.", "他把书放在桌上，走了。", "晚上见"]
    references = [["A cat sits here.", "书被他放在桌上。", "明天晚上见"], ["Cats sit.", None, ""]]
    sacrebleu = Sacrebleu(**({"normalized": True, "asian_support": True} | settings))
    expected = [
        sacrebleu.sentence_score(p, [r for r in row if r is not None]).score
        for p, *row in zip(paraphrases, *references, strict=True)
    ]
    pairs = Pairs.of([None] * 3, paraphrases, *references)
    np.testing.assert_array_equal(TER(**settings).sentence_scores(pairs), expected)
    corpus = sacrebleu.corpus_score(paraphrases, references).score
    assert TER(**settings).corpus_score(pairs) == corpus


def test_rows_without_a_side():
    pairs = Pairs.of([None] * 3, ["春", None, "春"], ["春", "春", None])
    np.testing.assert_array_equal(TER().sentence_scores(pairs), [0, np.nan, np.nan])
    assert math.isnan(TER().corpus_score(Pairs.of([None], [None], ["春"])))


def test_signature():
    expected = "TER|case:lc|tok:tercom|norm:yes|punct:yes|asian:yes|sacrebleu:"
    assert TER().signature().startswith(expected)
    with pytest.raises(ValueError, match="ter needs a reference"):
        TER().sentence_scores(Pairs.of(["春"], ["夏"]))
