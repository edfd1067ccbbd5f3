from itertools import product

import numpy as np
import pytest
from scipy.stats import spearmanr
from tiny_models import tiny_bert

from gaixie.research.comparison.compare import tuned
from gaixie.udfs.metrics.bleu import IBLEU
from gaixie.udfs.metrics.metric import Free, Pairs, free
from gaixie.udfs.metrics.parascore import ParaScore

PARAPHRASES = ["今天的天气不错", "我不知道", "我不清楚", "好好好知"]
REFERENCES = ["天气今天很好", "我不清楚", "你在北京吗", "好"]
SOURCES = ["今天天气很好", "我不知道", "你去北京了吗", "好好好好", *REFERENCES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("tuning") / "bert")


@pytest.mark.parametrize("kind", ["parascore", "parascore-free", "ibleu"])
def test_finds_the_weight_that_made_the_scores(folder, kind):
    metric, made = ParaScore(folder), ParaScore(folder, 0.2)
    if kind == "ibleu":
        metric, made = IBLEU(), IBLEU(alpha=0.2)
    sources, paraphrases = zip(*product(SOURCES, PARAPHRASES), strict=True)
    pairs = Pairs.of(sources, paraphrases, REFERENCES * len(SOURCES))
    human = made.sentence_scores(free(pairs) if kind == "parascore-free" else pairs)
    metric = Free(metric) if kind == "parascore-free" else metric
    found = tuned(metric, pairs, np.append(np.nan, human[1:])).sentence_scores(pairs)
    assert spearmanr(found, human).statistic == pytest.approx(1)
    assert spearmanr(metric.sentence_scores(pairs), human).statistic < 1


def test_takes_the_smaller_of_equals(folder):
    pairs = Pairs.of(["好", "我"], ["好好好好", "不知道"])  # both have the same diversity
    human = ParaScore(folder).parts(pairs)[0]
    assert tuned(ParaScore(folder), pairs, human).omega == 0
