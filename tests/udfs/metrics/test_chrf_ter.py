"""chrF and TER must equal values by hand; sacrebleu computes them."""

import pytest

from gaixie.udfs.metrics.chrf_ter import TER, ChrF
from gaixie.udfs.metrics.metric import Pairs

# Precision and recall of n-grams are equal: 4/6, 3/5, 2/4, 1/3, 0/2, 0/1, and so is any F of them.
HALF = 100 * (4 / 6 + 3 / 5 + 2 / 4 + 1 / 3) / 6
GOLDEN = [
    (ChrF, "今天天气很好", ["今天天气不错"], HALF),
    (ChrF, "今天天气很好", ["今天天气不错", "今天天气很好"], 100),  # the best
    # One order: P = 1/1, R = 1/2, F = 5 · 1 · 1/2 / (4 · 1 + 1/2).
    (ChrF, "今", ["今天"], 100 * 2.5 / 4.5),
    (ChrF, "", ["今天"], 0),
    (TER, "今天天气很好", ["今天天气不错"], 100 * 2 / 6),  # 很好 -> 不错
    (TER, "早点出发我们明天", ["我们明天早点出发"], 100 * 1 / 8),  # one shift
    (TER, "今天天气", ["今天天", "今天天气很好"], 100 * 1 / 4.5),  # fewest edits, mean length
    (TER, "今天", [""], 100),
    (TER, "", [""], 0),
]


@pytest.mark.parametrize(("metric", "paraphrase", "references", "expected"), GOLDEN)
def test_golden(metric, paraphrase, references, expected):
    columns = [[reference, None] for reference in references]
    pairs = Pairs.of([None] * 2, [paraphrase, "一"], *columns)  # a row without references
    assert metric().sentence_scores(pairs)[0] == pytest.approx(expected)
    assert metric().corpus_score(pairs) == pytest.approx(expected)


def test_a_corpus_divides_the_sum_of_all_edits():
    pairs = Pairs.of([None] * 3, ["今天天气很好", "春", None], ["今天天气不错", "春", "夏"])
    assert TER().corpus_score(pairs) == pytest.approx(100 * 2 / 7)
