"""BLEU and ROUGE as ParaScore's code calls them: by hand, and near the paper's figures."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from gaixie.udfs.metrics import Pairs, load_metric

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def score(spec, paraphrase, *references):
    columns = [[reference] for reference in references]
    return load_metric(spec).sentence_scores(Pairs.of([None], [paraphrase], *columns))[0]


def test_by_hand():
    # a and b match as words of one letter, nothing longer does: 0.1 of 2, 1 and 1 n-grams.
    expected = (2 / 3 * 0.1 / 2 * 0.1 * 0.1) ** (1 / 4)
    assert score("bleu-as-called:tokenize=word", "a b cat", "a dog b") == pytest.approx(expected)
    # Of 今 天 天, 今 and 天 match once each: a character serves as reference only once.
    expected = (2 / 3 * 0.1 / 2 * 0.1 * 0.1) ** (1 / 4)
    assert score("bleu-as-called", "今天天", "今天") == pytest.approx(expected)
    # Distinct characters: 今 天 of 今 天 and 今 天 好.
    found = score("rouge-1-as-called", "今天天", "今天好")
    assert found == pytest.approx(2 * 1 * (2 / 3) / (1 + 2 / 3), abs=1e-6)
    assert score("rouge-1-as-called", "今天", "好", "今天") == pytest.approx(1, abs=1e-6)
    assert score("rouge-l-as-called", "", "今天") == 0
    assert np.isnan(score("bleu-as-called", None, "今天"))


FIGURES = {
    # published: 0.253
    ("twitter_para", "rouge-l-as-called-free:tokenize=word", "spearman"): 0.263,
    # published: 0.127
    ("bq_para", "bleu-as-called", "pearson"): 0.113,
}


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the shared corpora in {DATA}")
@pytest.mark.parametrize(("name", "spec", "kind"), FIGURES)
def test_published(name, spec, kind):
    """Our figures must stay; they are within 0.02 of the paper's Tables 1 and 2, on the part of
    each set that is available."""
    with (DATA / f"{name}.dev.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    columns = [[row[key] for row in rows] for key in ("source", "candidate", "reference")]
    scores = load_metric(spec).sentence_scores(Pairs.of(*columns))
    of = pearsonr if kind == "pearson" else spearmanr
    found = of(scores, [row["human"] for row in rows]).statistic
    assert found == pytest.approx(FIGURES[name, spec, kind], abs=0.001)
