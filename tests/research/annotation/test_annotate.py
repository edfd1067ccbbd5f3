"""research/annotate.py must write blind sheets, compare raters and systems, and make ratings."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from gaixie.research.annotate import main
from gaixie.research.annotation.report import compare_systems, holm, signed_ranks
from gaixie.research.annotation.sampling import sample
from gaixie.research.annotation.sheets import CRITERIA, read_key
from gaixie.research.fitting.data import read_rated
from gaixie.research.ratings.rated import Rated, RatedTable

EXAMPLES = Path(__file__).parents[3] / "examples/pairs.jsonl"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Path:
    """Returns a table of the example pairs; their own ratings stand for the score."""
    table = pd.read_json(EXAMPLES, lines=True)
    table["spscore"] = table["rated"] / 5
    path = tmp_path_factory.mktemp("pairs") / "pairs.parquet"
    table[["source", "paraphrase", "origin", "spscore"]].to_parquet(path)
    return path


@pytest.fixture
def sheet(pairs, tmp_path) -> Path:
    line = ["draw", str(pairs), "--pairs", "40", "--output", str(tmp_path / "sheet")]
    assert main(line) == 0
    return tmp_path / "sheet"


def rate(sheet: Path, name: str, change=lambda row: 0) -> str:
    """Writes a rater's table: five times the score, and what the rater adds to it."""
    key = read_key(sheet)
    rows = pd.DataFrame({"id": key.index})
    overall = [np.clip(5 * row.spscore + change(row.Index), 0, 5) for row in key.itertuples()]
    rows[CRITERIA] = np.repeat(np.array(overall)[:, None], 5, axis=1)
    path = sheet.parent / f"{name}.tsv"
    rows.to_csv(path, sep="\t", index=False)
    return str(path)


def test_a_sheet_hides_where_a_pair_comes_from(sheet):
    shown = pd.read_csv(sheet / "sheet.tsv", sep="\t", quoting=3)
    assert [*shown] == ["id", "source", "paraphrase"]
    key = read_key(sheet)
    assert len(shown) == len(key) == 40
    assert (shown["paraphrase"] == key["paraphrase"]).all()
    assert not key["spscore"].is_monotonic_increasing


def test_strata_are_sampled_evenly(pairs):
    chosen, counts = sample(str(pairs), 40, 1)
    assert len(chosen["origin"].unique()) == 4
    assert chosen["source"].is_unique
    assert (counts["sampled"] >= np.minimum(2, counts["there are"])).all()


def test_the_sample_does_not_depend_on_the_order_of_rows(pairs, tmp_path):
    pd.read_parquet(pairs).sample(frac=1, random_state=3).to_csv(tmp_path / "p.csv", index=False)
    texts = [{*sample(str(path), 40, seed)[0]["paraphrase"]} for path, seed in (
        (pairs, 1), (tmp_path / "p.csv", 1), (pairs, 2)
    )]  # fmt: skip
    assert texts[0] == texts[1] != texts[2]


def test_agreement_offsets_and_ratings(sheet, tmp_path, capsys):
    """Bo is half a point kinder than Anna; Chen rates at random, here and there far off."""
    draw = np.random.default_rng(0)
    raters = [rate(sheet, "anna"), rate(sheet, "bo", lambda row: 0.5)]
    raters += [rate(sheet, "chen", lambda row: draw.uniform(-5, 5))]
    assert main(["report", str(sheet), *raters, "--output", str(tmp_path / "two")]) == 0
    told = json.loads((tmp_path / "two/annotation.json").read_text("utf-8"))
    likeness = {row["rater"]: row["spearman"] for row in told["criteria"]["overall"]["raters"]}
    assert min(likeness, key=likeness.__getitem__) == "chen"
    assert main(["report", str(sheet), *raters[:2], "--output", str(tmp_path / "rated")]) == 0
    told = json.loads((tmp_path / "rated/annotation.json").read_text("utf-8"))
    offsets = {row["rater"]: row["offset"] for row in told["criteria"]["overall"]["raters"]}
    assert offsets["bo"] == pytest.approx(-offsets["anna"])
    assert 0.3 < offsets["bo"] <= 0.5  # no rating is above 5
    assert told["criteria"]["overall"]["alpha"]["value"] > 0.85
    assert told["spscore"]["value"] > 0.99
    table = Rated(name="r", tables=[RatedTable(path="ratings.parquet")])
    rated = read_rated(table, tmp_path / "rated")
    assert len(rated) == 40
    assert set(rated["passes"]) == {2}
    assert rated[CRITERIA].to_numpy().max() <= 1


def test_systems_are_read_blindly_and_told_apart(tmp_path):
    sources = [f"第{k}个句子。" for k in range(30)]
    (tmp_path / "sources.txt").write_text("\n".join(sources) + "\n", "utf-8")
    for name in ("good", "bad"):
        (tmp_path / name).write_text("\n".join(f"{s}{name}" for s in sources) + "\n", "utf-8")
    systems = [f"{name}={tmp_path / name}" for name in ("good", "bad")]
    folder = tmp_path / "sheet"
    assert main(["blind", str(tmp_path / "sources.txt"), *systems, "--output", str(folder)]) == 0
    key = read_key(folder)
    assert "system" not in (folder / "sheet.tsv").read_text("utf-8")
    ratings = pd.DataFrame({"id": key.index, "quality": (key["system"] == "good") + 3.0})
    ratings.to_csv(tmp_path / "r.csv", index=False)
    line = ["report", str(folder), str(tmp_path / "r.csv"), "--criteria", "quality"]
    assert main([*line, "--output", str(tmp_path / "out")]) == 0
    told = json.loads((tmp_path / "out/annotation.json").read_text())["criteria"]["quality"]
    assert [(row["system"], row["mean"]) for row in told["systems"]] == [("good", 4), ("bad", 3)]
    assert (told["comparisons"][0]["wins"], told["comparisons"][0]["ties"]) == (30, 0)
    assert told["comparisons"][0]["holm"] < 0.001


def test_a_mean_is_over_items_and_a_deviation_over_ratings():
    """An item that ten people rated must weigh as much as an item that one person rated."""
    rows = [(0, f"r{k}", 5.0) for k in range(10)]
    rows += [(1, "r0", 1.0), (2, "r0", 3.0), (3, "r0", 3.0)]
    ratings = pd.DataFrame(rows, columns=["id", "rater", "x"])
    key = pd.DataFrame({"item": [1, 2, 1, 2], "system": [*"aabb"]})
    systems = compare_systems(ratings, key, "x")["systems"]
    assert [row["mean"] for row in systems] == [3, 3]
    assert [row["sd"] for row in systems] == pytest.approx([np.std([5] * 10 + [1], ddof=1), 0])


def test_holm_and_signed_ranks_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    # All six differences are positive; two of the 2^6 arrangements of signs are as extreme.
    assert signed_ranks(np.array([1.0, 2, 3, 4, 5, 6])) == pytest.approx(2 / 64)
    assert signed_ranks(np.zeros(4)) == 1
    apart = np.random.default_rng(0).normal(0.3, 1, 40)
    assert signed_ranks(apart) == pytest.approx(wilcoxon(apart).pvalue)


def test_a_mistake_is_one_line_that_names_the_file(sheet, tmp_path, refused):
    (tmp_path / "r.csv").write_text("id,overall\n0,6\n", "utf-8")
    line = ["report", sheet, tmp_path / "r.csv", "--criteria", "overall"]
    refused(main, [*line, "--output", tmp_path / "out"], "r.csv")
    assert not (tmp_path / "out").exists()
