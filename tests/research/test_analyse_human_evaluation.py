"""research/analyse_human_evaluation.py: Likert and ranking sheets, against figures worked by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from gaixie.research import analyse_human_evaluation as script
from gaixie.research.annotation.systems import (
    analyse,
    holm,
    signed_ranks,
    with_average,
)
from gaixie.research.comparison.agreement import p_value


def ratings(seed: int = 0, items: int = 40) -> pd.DataFrame:
    """Three systems, of which c is the best by far and a and b are alike; two annotators who agree."""
    draw = np.random.default_rng(seed)
    rows = []
    for item in range(items):
        hard = draw.integers(0, 2)
        for system, level in (("a", 2), ("b", 2), ("c", 4)):
            value = np.clip(level - hard + draw.integers(-1, 2), 0, 5)
            for annotator in ("x", "y"):
                own = int(np.clip(value + (draw.random() < 0.2), 0, 5))
                rows.append((f"s{item}", system, annotator, own, own if system == "c" else 3))
    return pd.DataFrame(rows, columns=["item", "system", "annotator", "meaning", "fluency"])


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_signed_ranks_by_hand():
    # All of six differences positive: two of the 2^6 arrangements of signs are so extreme.
    assert signed_ranks(np.array([1.0, 2, 3, 4, 5, 6])) == pytest.approx(2 / 64)
    assert signed_ranks(np.zeros(4)) == 1
    apart = np.random.default_rng(0).normal(0.3, 1, 40)
    assert signed_ranks(apart) == pytest.approx(wilcoxon(apart).pvalue)


def test_bootstrap_p_by_hand():
    assert p_value(np.array([1.0] * 99)) == pytest.approx(2 / 100)
    assert p_value(np.array([-1.0, 1.0])) == 1


def test_systems_are_told_apart_where_they_differ():
    found = analyse(ratings(), "meaning", False, 300)
    best, *others = found["systems"]
    assert (best["system"], best["place"], best["best"], best["worst"]) == ("c", 1, 1, 1)
    assert {(row["best"], row["worst"]) for row in others} == {(2, 3)}
    by_pair = {(row["first"], row["second"]): row for row in found["comparisons"]}
    order = [row["system"] for row in found["systems"]]
    assert [*by_pair] == [("c", order[1]), ("c", order[2]), (order[1], order[2])]
    assert by_pair["c", "a"]["holm"] < 0.001
    assert by_pair["c", "a"]["bootstrap"] < 0.01
    assert by_pair["c", "a"]["wins"] > by_pair["c", "a"]["losses"]
    alike = by_pair[order[1], order[2]]
    assert alike["wilcoxon"] > 0.05
    assert alike["low"] < 0 < alike["high"]
    assert alike["wins"] + alike["ties"] + alike["losses"] == alike["items"] == 40
    assert found["alpha"]["ordinal"]["value"] > 0.8
    [kappa] = found["kappa"]
    assert kappa["value"] > 0.8
    assert kappa["units"] == 120


def test_a_mean_is_over_items_not_over_answers():
    """An item that ten people rated weighs as much as one that a single one did."""
    rows = [("1", "a", str(k), 5) for k in range(10)] + [("2", "a", "0", 1)]
    rows += [("1", "b", "0", 3), ("2", "b", "0", 3)]
    table = pd.DataFrame(rows, columns=["item", "system", "annotator", "x"])
    found = analyse(table, "x", False, 50)["systems"]
    assert [row["mean"] for row in found] == [3, 3]
    assert [row["place"] for row in found] == [1.5, 1.5]


def test_standard_deviations_and_the_average_of_criteria():
    """MCTS, Table 6: of all answers to a criterion, and of their mean."""
    rows = [
        ("1", "a", "x", 1, 3),
        ("2", "a", "x", 3, 5),
        ("1", "b", "x", 5, 5),
        ("2", "b", "x", 5, 5),
    ]
    columns = ["item", "system", "annotator", "meaning", "fluency"]
    table = with_average(pd.DataFrame(rows, columns=columns))
    found = analyse(table, "average", False, 20)["systems"]
    assert [(row["system"], row["mean"]) for row in found] == [("b", 5), ("a", 3)]
    assert [row["sd"] for row in found] == pytest.approx([0, 2**0.5])


def test_likert_sheets_one_for_each_annotator(tmp_path, capsys):
    sheets = []
    for annotator, rows in ratings().groupby("annotator"):
        sheets.append(tmp_path / f"{annotator}.csv")
        rows.drop(columns="annotator").assign(note="").to_csv(
            sheets[-1], index=False, encoding="utf-8-sig"
        )
    line = ["likert", *map(str, sheets), "--output", str(tmp_path / "out"), "--samples", "100"]
    assert script.main(line) == 0
    told = json.loads((tmp_path / "out/human_evaluation.json").read_text("utf-8"))
    assert [*told] == ["meaning", "fluency", "average"]
    assert told["meaning"]["systems"][0]["system"] == "c"
    page = (tmp_path / "out/human_evaluation.md").read_text("utf-8")
    assert "## fluency: each two systems" in page
    assert "meaning: x, y" in capsys.readouterr().out


@pytest.mark.parametrize("wide", [True, False])
def test_ranking_sheets(tmp_path, wide):
    table = ratings()
    key = ["item", "annotator"]
    table["rank"] = table.groupby(key)["meaning"].rank(method="min", ascending=False).astype(int)
    line = [
        "ranking",
        str(tmp_path / "r.tsv"),
        "--output",
        str(tmp_path / "out"),
        "--samples",
        "100",
    ]
    if wide:
        table = table.pivot(index=key, columns="system", values="rank").reset_index()
        line += ["--systems", "a", "b", "c"]
    table.to_csv(tmp_path / "r.tsv", sep="\t", index=False)
    assert script.main(line) == 0
    told = json.loads((tmp_path / "out/human_evaluation.json").read_text("utf-8"))["rank"]
    assert told["lower_is_better"]
    assert told["systems"][0]["system"] == "c"
    assert told["systems"][0]["mean"] < 1.5
    assert told["comparisons"][0]["first"] == "c"
    assert told["comparisons"][0]["wins"] > told["comparisons"][0]["losses"]


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (
            "item,system,x\n1,a,3\n1,b,9\n",
            [],
            "row 2: x is '9', expected a whole number from 0 to 5",
        ),
        (
            "item,system,x\n1,a,3\n1,a,4\n",
            [],
            "row 2: item '1', system 'a' and annotator 's' stand in an earlier row",
        ),
        ("item,system,x\n1,,3\n", [], "row 1: system is empty"),
        ("item,x\n1,3\n", [], "s.csv: no column 'system', it has: item, x"),
        ("item,system,x\n1,a,3\n", [], "one system, 'a'; expected two or more"),
        ("item,system,x\n1,a,\n1,b,\n", [], "s.csv: no answers"),
        ("item,system\n1,a\n", [], "s.csv: columns none beside item, system, annotator"),
        (
            "item,system,x\n1,a,3\n1,b,4\n",
            ["--scale", "5", "1"],
            "--scale 5 1: expected the lowest",
        ),
        ("item,system,x\n1,a,3\n1,b,4\n", ["--criteria", "y"], "s.csv: no column 'y'"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, capsys, text, given, message):
    (tmp_path / "s.csv").write_text(text, "utf-8")
    line = ["likert", str(tmp_path / "s.csv"), "--output", str(tmp_path / "o"), *given]
    assert script.main(line) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "o").exists()
