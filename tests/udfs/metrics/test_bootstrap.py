"""Intervals by resampling groups; scores against several references; diversity by hand."""

import numpy as np
import pyarrow as pa
import pytest

from gaixie.udfs.metrics import Pairs, bootstrap, load_metric

SOURCE = ["他罹患疾病。", "今天天气很好", None, "我们去公园看花", "书"]
PARAPHRASE = ["他生病了。", "今天的天气不错", "无", "我们在公园里看花", ""]
FIRST = ["他得病了。", "今天天气不错", "有", None, "本书"]
SECOND = ["他病了。", "天气今天真好", "无", "去公园看花的是我们", None]
PAIRS = Pairs.of(SOURCE, PARAPHRASE, FIRST, SECOND)


@pytest.mark.parametrize(
    "spec",
    [
        *("bleu:order=2", "self-bleu", "ibleu:alpha=0.3", "rouge-l"),
        *("sari:tokenize=zh-word:deletion=precision", "hsk-easy", "pinc"),
    ],
)
def test_sums_make_the_corpus_score(spec):
    metric = load_metric(spec)
    sums = metric.row_sums(PAIRS)
    assert sums.shape[0] == len(PAIRS)
    assert metric.score_of_sums(sums.sum(axis=0)) == pytest.approx(metric.corpus_score(PAIRS))
    stacked = metric.score_of_sums(np.stack([sums.sum(axis=0), sums[:2].sum(axis=0)]))
    first_two = Pairs.of(SOURCE[:2], PARAPHRASE[:2], FIRST[:2], SECOND[:2])
    assert stacked.shape == (2,)
    assert stacked[1] == pytest.approx(metric.corpus_score(first_two))


def test_nothing_scored_is_nan():
    metric = load_metric("bleu")
    assert np.isnan(metric.score_of_sums(metric.row_sums(Pairs.of(["他"], [None], ["她"]))[0]))
    assert np.isnan(bootstrap.interval([np.nan, np.inf])).all()
    assert bootstrap.interval([np.nan, 2.0]) == (2.0, 2.0)


def test_a_person_is_scored_against_the_others():
    columns = [pa.array(column, pa.string()) for column in (FIRST, SECOND, PARAPHRASE)]
    sets = bootstrap.leave_one_out(pa.array(SOURCE), columns)
    assert [pairs.paraphrase for pairs in sets] == columns
    assert sets[1].references == (columns[0], columns[2])
    metric = load_metric("bleu")
    found = bootstrap.estimate(metric, sets, bootstrap.Resamples(range(5), 50))
    assert found.score == pytest.approx(np.mean([metric.corpus_score(pairs) for pairs in sets]))
    assert found.low <= found.score <= found.high
    with pytest.raises(ValueError, match="expected two or more"):
        bootstrap.leave_one_out(pa.array(SOURCE), columns[:1])


def test_resamples_keep_a_group_together():
    rows = np.array([[1.0], [10.0], [100.0]])
    sums = bootstrap.Resamples(["a", "b", "a"], 40).sums(rows)[:, 0]
    assert sums[0] == 111
    assert {*sums[1:]} == {20.0, 111.0, 202.0}  # b twice, both, a twice


def test_diversity_by_hand():
    source = pa.array(["abcd", "wxyz", "nobody"])
    same, other = pa.array(["abcd", "wxyz", None]), pa.array(["hijk", None, None])
    score, resamples = load_metric("self-bleu").sentence_scores, bootstrap.Resamples(range(3), 20)
    found = bootstrap.diversity(score, source, [same, other], resamples)
    # Row 1: a copy, 100, and a text that shares nothing, 0. Row 2: a copy. Row 3: no reference.
    assert [round(found[name].score, 6) for name in ("min", "mean", "max")] == [50, 75, 100]
