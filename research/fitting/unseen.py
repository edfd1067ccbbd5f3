"""What a fitted model makes of sets that nothing was fitted on: written counterparts, and
entailment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from gaixie.research.pair_encoder.sets import KINDS, held_out
from gaixie.research.ratings.tables import read_json_lines
from gaixie.udfs.metrics.bootstrap import bootstrap_interval
from gaixie.udfs.spscore import SPScore

SAMPLES = 500


def unseen_figures(model: SPScore, data: Path) -> dict[str, Any]:
    """Figures of the card; those whose set is not in the folder are left out."""
    figures: dict[str, Any] = {}
    if (data / "written_broken.jsonl").is_file():
        figures["counterparts"] = counterparts(model, data)
    if (data / "ocnli.train.tsv").is_file():
        figures["entailment"] = entailment(model, data / "ocnli.train.tsv")
    return figures


def counterparts(model: SPScore, data: Path) -> list[dict[str, Any]]:
    """How often ``spscore`` of a written paraphrase (S2 to S4) beats that of its counterpart.

    Of the held-out groups without a rated pair: shares of each kind, 95 % intervals by group.
    """
    rated = {str(row["group"]) for row in read_json_lines(data / "written_rated.jsonl")}
    groups = [
        row
        for row in read_json_lines(data / "written_groups.jsonl")
        if held_out(row["group"]) and str(row["group"]) not in rated
    ]
    broken = {row["group"]: row for row in read_json_lines(data / "written_broken.jsonl")}
    groups = [row for row in groups if row["group"] in broken]
    sources = [row["texts"][0] for row in groups]
    good = np.stack([model.score(sources, [row["texts"][k] for row in groups]) for k in (2, 3, 4)])
    table = []
    for kind in KINDS:
        bad = model.score(sources, [broken[row["group"]][kind] for row in groups])
        wins = (good > bad).mean(0)
        low, high = bootstrap_interval(np.mean, (wins,), list(range(len(wins))), SAMPLES)
        share = float(wins.mean())
        table.append({"kind": kind, "groups": len(wins), "share": share, "low": low, "high": high})
    return table


def entailment(model: SPScore, path: Path) -> dict[str, float]:
    """AUC of ``meaning`` for entailment against contradiction (OCNLI, which nothing is fitted
    on)."""
    names = ["premise", "hypothesis", "label"]
    table = pd.read_csv(path, sep="\t", quoting=3, names=names, dtype=str)
    table = table[table["label"].isin(["entailment", "contradiction"])]
    judged = model.judge(table["premise"].tolist(), table["hypothesis"].tolist())
    auc = roc_auc_score(table["label"] == "entailment", judged["meaning"])
    return {"pairs": len(table), "auc": float(auc)}
