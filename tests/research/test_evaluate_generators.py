"""Generators: neighbours and paraphrases by hand, four networks that learn, a run that resumes."""

import json

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch", reason="the networks are of torch")

from gaixie.research.evaluate_generators import by_review, main, neighbours, paraphrase
from gaixie.udfs.metrics.weem4pg import load_vectors

WORDS = {
    **{"满意": (1.0, 0.0, 0.0), "高兴": (0.9, 0.1, 0.0), "开心": (0.8, 0.2, 0.0)},
    **{"失望": (-1.0, 0.0, 0.1), "难过": (-0.9, 0.1, 0.1), "糟糕": (-0.8, 0.2, 0.1)},
    **{"房间": (0.0, 1.0, 0.0), "酒店": (0.0, 0.9, 0.1), "好": (0.7, 0.1, 0.9)},
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    rows = [f"{word} {' '.join(map(str, vector))}" for word, vector in WORDS.items()]
    path.write_text(f"{len(rows)} 3\n" + "\n".join(rows) + "\n", "utf-8")
    return str(path)


def test_the_kth_nearest_word(vectors):
    near = neighbours(["满意", "房间", "无", "好"], load_vectors(vectors))
    assert near["满意"] == ["高兴", "开心", "好"]
    assert near["房间"][0] == "酒店"
    assert "无" not in near
    words = ["房间", "让", "人", "满意", "好"]
    assert paraphrase(words, near, 1) == ["酒店", "让", "人", "高兴", "好"]  # one character stays
    assert paraphrase(words, near, 2)[3] == "开心"


def test_by_review_as_in_table_3():
    """Scores must correlate with the probability of the label over the test reviews alone."""
    score, noise = np.random.default_rng(0).normal(size=(2, 60))
    scores = {"PG1": {"weem4pg": score}}
    test = np.arange(20, 60)
    [row] = by_review(scores, {("PG1", "CNN"): score[test] + noise[test]}, test, 50)
    assert (row["generator"], row["network"], row["metric"]) == ("PG1", "CNN", "weem4pg")
    expected = stats.spearmanr(score[test], score[test] + noise[test]).statistic
    assert row["spearman"]["score"] == pytest.approx(expected)
    assert row["spearman"]["low"] < expected < row["spearman"]["high"]


def test_the_command(vectors, tmp_path):
    """One word decides the label of each review."""
    rng, rows = np.random.default_rng(0), ["label,review"]
    for number in range(240):
        word = rng.choice([["失望", "难过", "糟糕"], ["满意", "高兴", "开心"]][number % 2])
        rows.append(f"{number % 2},{number}号{rng.choice(['房间', '酒店'])}让人{word}")
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(rows) + "\n", "utf-8")
    line = ["--reviews", str(path), "--vectors", vectors, "--output", str(tmp_path)]
    line += ["--seeds", "1", "--samples", "20"]
    assert main(line) == 0
    result = json.loads((tmp_path / "generators.json").read_text("utf-8"))
    assert max(result["accuracy"].values()) > 0.9
    assert {row["generator"] for row in result["by_review"]} == {"PG1", "PG2", "PG3"}
    assert len(result["by_review"]) == 3 * 4 * 2
    assert result["intrinsic"]["original"]["pinc"]["score"] == 0
    assert result["intrinsic"]["PG1"]["pinc"]["score"] > 0.2
    assert "Table 3" in (tmp_path / "generators.md").read_text("utf-8")


def test_a_mistake_is_one_line_that_names_the_file(tmp_path, vectors, refused):
    path = tmp_path / "reviews.csv"
    path.write_text("label,review\n2,好\n", "utf-8")
    line = ["--reviews", path, "--vectors", vectors, "--output", tmp_path / "out"]
    refused(main, line, str(path))
