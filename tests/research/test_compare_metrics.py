"""research/compare_metrics.py on small sets: figures against scipy, weights, subsets, bad input."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import roc_auc_score

from gaixie.research.compare_metrics import SETTINGS, main
from gaixie.research.comparison.compare import subsets
from gaixie.research.comparison.datasets import Config
from gaixie.research.ratings.tables import source_share
from gaixie.udfs.metrics import load_metric
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.storage.settings import load_settings

METRICS = ["spscore", "self-bleu", "rouge-1", "rouge-1-free", "pinc", "edit-distance"]


@pytest.fixture(scope="module")
def graded(examples) -> pd.DataFrame:
    """Returns annotated examples; each source has its own paraphrase and its neighbour's."""
    rows = examples[["source", "paraphrase", "rated"]].rename(columns={"rated": "human"})
    other = rows.assign(paraphrase=np.roll(rows["paraphrase"], 1), human=0.0)
    table = pd.concat([rows, other], ignore_index=True)
    return table.assign(reference=np.roll(table["source"], 2), human=table["human"] / 5)


@pytest.fixture
def folder(tmp_path, graded) -> Path:
    """Writes a set of grades and a set of labels, with settings for them."""
    graded.to_json(tmp_path / "graded.jsonl", orient="records", lines=True, force_ascii=False)
    labels = graded.assign(human=(graded["human"] > 0.5).astype(int))
    labels.to_csv(tmp_path / "labels.csv", index=False)
    published = {"published": {"pinc": 0.5}, "published_extended": {"pinc": 0.25}}
    graded_set = {"name": "graded", "path": "graded.jsonl", "reference": "reference"}
    config = {
        "metrics": {"zh": METRICS},
        "samples": 50,
        "data_sets": [
            graded_set | {"extended": True} | published,
            {"name": "labels", "path": "labels.csv", "labels": True},
        ],
    }
    (tmp_path / "metrics.yaml").write_text(yaml.safe_dump(config), "utf-8")
    return tmp_path


def line_of(folder, *given) -> list[str]:
    line = ["--config", folder / "metrics.yaml", "--data", folder, "--output", folder / "out"]
    return [str(word) for word in [*line, *given]]


def change(folder, **changes) -> None:
    """Changes keys of the settings."""
    path = folder / "metrics.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text("utf-8")) | changes), "utf-8")


def compare(folder, *given) -> dict:
    assert main(line_of(folder, *given)) == 0
    return json.loads((folder / "out" / "comparison.json").read_text("utf-8"))


def rows_of(result: dict, name: str) -> dict[str, dict]:
    [each] = [each for each in result["data_sets"] if each["name"] == name]
    return {row["name"]: row for row in each["metrics"]}


def test_figures_of_the_definition(folder, graded, capsys):
    result = compare(folder)
    assert "comparison.md" in capsys.readouterr().out
    kept = graded[source_share(graded["source"], "tune") >= 0.1]
    pairs = Pairs.of(list(kept["source"]), list(kept["paraphrase"]), list(kept["reference"]))
    found = rows_of(result, "graded")
    assert set(found) == set(METRICS)
    for name in METRICS:
        scores = load_metric(name).sentence_scores(pairs)
        for kind, of in (("spearman", spearmanr), ("pearson", pearsonr)):
            expected = of(scores, kept["human"]).statistic
            assert found[name][kind][0] == pytest.approx(expected, abs=1e-9)
        low, high = found[name]["spearman"][1:]
        assert low < found[name]["spearman"][0] < high
    labels = rows_of(result, "labels")
    assert result["data_sets"][2]["left_out"] == {"rouge-1": "the set has no reference"}
    scores = load_metric("pinc").sentence_scores(pairs)
    expected = roc_auc_score(kept["human"] > 0.5, scores)
    assert labels["pinc"]["auc"][0] == pytest.approx(expected, abs=1e-9)

    report = (folder / "out" / "comparison.md").read_text("utf-8")
    shown = found["pinc"]["spearman"]
    for text in (
        "## graded-extended",
        f"| PINC | 0.500 | {shown[0]:.3f} [{shown[1]:.2f}, {shown[2]:.2f}] |",
        "SPScore-zh|v:",
    ):
        assert text in report


def test_weights_are_chosen_where_nothing_is_reported(folder, graded):
    """A weight must be tuned only on rows that are not reported, and not where it is given.

    Human scores follow iBLEU with alpha 0.7 on a tenth of the sources, and its opposite elsewhere.
    """
    sides = [list(graded[name]) for name in ("source", "paraphrase", "reference")]
    scores = load_metric("ibleu:alpha=0.7").sentence_scores(Pairs.of(*sides))
    tenth = source_share(graded["source"], "tune") < 0.1
    table = graded.assign(human=np.where(tenth, scores, -scores))
    table.to_json(folder / "graded.jsonl", orient="records", lines=True, force_ascii=False)
    result = compare(folder, "--sets", "graded", "--metrics", "ibleu,ibleu:alpha=0,bleu")
    signatures, rows = result["data_sets"][0]["signatures"], rows_of(result, "graded")
    assert "|alpha:0.7|" in signatures["ibleu"]
    assert rows["ibleu"]["spearman"][0] == pytest.approx(-1)
    assert rows["ibleu"]["rows"] == (~tenth).sum()
    assert "|alpha:0.0|" in signatures["ibleu:alpha=0"]
    assert rows["ibleu:alpha=0"]["title"] == "iBLEU (alpha=0)"
    assert rows["ibleu:alpha=0"]["spearman"] == rows["bleu"]["spearman"]


def test_attribution_by_hand():
    """Subsets and correlations must equal those worked out by hand.

    Candidates 0 and 1 of source a diverge alike and differ in meaning (S_sim); 1 and 2 are alike in
    meaning and diverge by 0.2 (S_div1, d = 0.32). Candidates 3 and 4 of source b are in S_sim too.
    """
    human = [1.0, 0.2, 0.6, 0.1, 0.6]
    table = pd.DataFrame({"source": [*"aaabb"], "human": human})
    divergence = np.array([0.30, 0.32, 0.52, 0.50, 0.51])
    similarity = np.array([0.9, 0.6, 0.62, 0.3, 0.7])
    metric = np.array([0.7, 0.4, 0.9, 0.6, 0.5])
    found = subsets(divergence, similarity, table, {"m": metric})
    assert [part["pairs"] for part in found.values()] == [2, 1, 0]
    # Human scores differ by 0.8 and -0.5, the metric's by 0.3 and 0.1: the metric has the second
    # pair in the wrong order. r is Σ ab / √(Σ a² Σ b²), with each pair in both orders.
    r = (0.8 * 0.3 - 0.5 * 0.1) / np.sqrt((0.8**2 + 0.5**2) * (0.3**2 + 0.1**2))
    assert found["S_sim"]["pearson"]["m"].score == pytest.approx(r)


def test_the_metrics_of_the_settings_exist():
    config = load_settings(Config, SETTINGS)
    for spec in {spec for specs in config.metrics.values() for spec in specs}:
        load_metric(spec, model=config.encoder, vectors=config.word_vectors)


def test_a_mistake_is_one_line(folder, refused):
    change(folder, data_sets=[{"name": "x", "path": "graded.jsonl", "human": "grade"}])
    refused(main, line_of(folder), "graded.jsonl")
    assert not (folder / "out").exists()


def test_a_set_that_the_encoder_learned_from_is_marked_and_cut_by_length(folder):
    """The row of tier full gets a mark, is not the best, and is not tested."""
    (folder / "graded.jsonl").rename(folder / "bq_para.dev.jsonl")
    change(folder, data_sets=[{"name": "graded", "path": "bq_para.dev.jsonl", "lengths": [30]}])
    result = compare(folder, "--metrics", "spscore:tier=full,spscore,pinc", "--limit", "60")
    whole, *parts = result["data_sets"]
    names = [f"graded, {part}" for part in ("1 to 30 characters", "over 30 characters")]
    assert [part["name"] for part in parts] == names
    assert sum(part["rows"] for part in parts) == whole["rows"]
    rows = rows_of(result, "graded")
    assert [row for row in rows.values() if row["learned"]] == [rows["spscore-full"]]
    assert rows["spscore-full"]["title"] == "SPScore-zh full †"
    assert rows["spscore-full"]["p"] is rows["spscore"]["p"] is None
    assert rows["pinc"]["p"] > 0


@pytest.mark.torch
def test_a_model_that_is_not_there_leaves_its_metrics_out(folder, capsys):
    change(folder, metrics={"zh": ["pinc", "similarity"]}, encoder=str(folder / "none"))
    result = compare(folder)
    [row] = rows_of(result, "labels").values()
    assert row["name"] == "pinc"
    assert "make_encoder.py" in result["data_sets"][0]["left_out"]["similarity"]
    assert "similarity: left out" in capsys.readouterr().err
