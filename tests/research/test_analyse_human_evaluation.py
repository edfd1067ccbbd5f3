"""research/analyse_human_evaluation.py must give the figures worked out by hand."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from gaixie.research.analyse_human_evaluation import analyse, holm, main, signed_ranks


def ratings() -> pd.DataFrame:
    """Returns ratings by two annotators who agree: system c is far better; a and b are alike."""
    draw = np.random.default_rng(0)
    rows = []
    for item in range(40):
        hard = draw.integers(0, 2)
        for system, level in (("a", 2), ("b", 2), ("c", 4)):
            value = np.clip(level - hard + draw.integers(-1, 2), 0, 5)
            for annotator in ("x", "y"):
                own = int(np.clip(value + (draw.random() < 0.2), 0, 5))
                rows.append((f"s{item}", system, annotator, own, own if system == "c" else 3))
    return pd.DataFrame(rows, columns=["item", "system", "annotator", "meaning", "fluency"])


def test_holm_and_signed_ranks_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    # All six differences are positive; two of the 2^6 arrangements of signs are as extreme.
    assert signed_ranks(np.array([1.0, 2, 3, 4, 5, 6])) == pytest.approx(2 / 64)
    assert signed_ranks(np.zeros(4)) == 1
    apart = np.random.default_rng(0).normal(0.3, 1, 40)
    assert signed_ranks(apart) == pytest.approx(wilcoxon(apart).pvalue)


def test_systems_are_told_apart_where_they_differ():
    found = analyse(ratings(), "meaning")
    order = [row["system"] for row in found["systems"]]
    assert order[0] == "c"
    by_pair = {(row["first"], row["second"]): row for row in found["comparisons"]}
    assert [*by_pair] == [("c", order[1]), ("c", order[2]), (order[1], order[2])]
    assert by_pair["c", "a"]["holm"] < 0.001
    assert by_pair["c", "a"]["wins"] > by_pair["c", "a"]["losses"]
    alike = by_pair[order[1], order[2]]
    assert alike["wilcoxon"] > 0.05
    assert alike["low"] < 0 < alike["high"]
    assert alike["wins"] + alike["ties"] + alike["losses"] == alike["items"] == 40
    assert found["alpha"]["value"] > 0.8


def test_a_mean_is_over_items_and_a_deviation_over_answers():
    """An item that ten people rated must weigh as much as an item that one person rated."""
    rows = [("1", "a", str(k), 5) for k in range(10)] + [("2", "a", "0", 1)]
    rows += [("1", "b", "0", 3), ("2", "b", "0", 3)]
    table = pd.DataFrame(rows, columns=["item", "system", "annotator", "x"])
    systems = analyse(table, "x")["systems"]
    assert [row["mean"] for row in systems] == [3, 3]
    assert [row["sd"] for row in systems] == pytest.approx([np.std([5] * 10 + [1], ddof=1), 0])


def test_sheets_one_for_each_annotator(tmp_path):
    """Several sheets must join, with the criteria's average as a further criterion (MCTS, Table
    6)."""
    sheets = []
    for annotator, rows in ratings().groupby("annotator"):
        sheets.append(str(tmp_path / f"{annotator}.csv"))
        own = rows.drop(columns="annotator").assign(note="")
        own.to_csv(sheets[-1], index=False, encoding="utf-8-sig")
    assert main([*sheets, "--output", str(tmp_path / "out")]) == 0
    told = json.loads((tmp_path / "out/human_evaluation.json").read_text("utf-8"))
    assert [*told] == ["meaning", "fluency", "average"]
    best = [told[name]["systems"][0] for name in told]
    assert {row["system"] for row in best} == {"c"}
    assert best[2]["mean"] == pytest.approx((best[0]["mean"] + best[1]["mean"]) / 2)
    assert "annotators: x, y" in (tmp_path / "out/human_evaluation.md").read_text("utf-8")


def test_ranks(tmp_path):
    table = ratings()
    by = table.groupby(["item", "annotator"])["meaning"]
    table["rank"] = by.rank(method="min", ascending=False).astype(int)
    table[["item", "system", "annotator", "rank"]].to_csv(tmp_path / "r.tsv", sep="\t", index=False)
    line = [str(tmp_path / "r.tsv"), "--lower-is-better", "--output", str(tmp_path / "out")]
    assert main(line) == 0
    told = json.loads((tmp_path / "out/human_evaluation.json").read_text("utf-8"))["rank"]
    assert told["systems"][0]["system"] == told["comparisons"][0]["first"] == "c"
    assert told["systems"][0]["mean"] < 1.5
    assert told["comparisons"][0]["wins"] > told["comparisons"][0]["losses"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,system,x\n1,a,3\n1,b,good\n", "column 'x'"),
        ("item,system,x\n1,a,3\n1,a,4\n", "twice: 1, a, s"),
        ("item,x\n1,3\n", "no column 'system', it has: item, x"),
        ("item,system,x\n1,a,3\n", "expected two systems or more"),
    ],
)
def test_mistakes_are_one_line(tmp_path, refused, text, message):
    (tmp_path / "s.csv").write_text(text, "utf-8")
    refused(main, [tmp_path / "s.csv", "--output", tmp_path / "o"], message)
    assert not (tmp_path / "o").exists()
