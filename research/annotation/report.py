"""Finds careless annotators, measures agreement, and makes one rating for each pair."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from gaixie.research.annotation.tasks import FIELDS, IS_PARAPHRASE, RATINGS

LEAST_CHECKS, FAILED = 3, 1 / 3
"""Fewest attention pairs to judge somebody by; the share of failures that is no accident."""
LEAST_REPEATS, MOVED = 3, 1.25
"""Fewest repeated pairs to judge somebody by; a mean difference of both answers that is a sign."""
LEAST_PAIRS, UNLIKE = 10, 0.2
"""Fewest pairs to judge somebody by; a Spearman with the others below this is a sign."""


def tables_of(answers: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns, by question, the first answers to the sample: rows are pairs, columns annotators."""
    first = answers[answers["kind"] == "pair"]
    return {name: first.pivot(index="pair", columns="annotator", values=name) for name in FIELDS}


def annotators(plan: pd.DataFrame, answers: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Returns, by annotator, their tasks, checks, Spearman with the others, and signs of
    carelessness.

    There are three signs, each of which needs enough answers: wrong answers to attention pairs,
    different answers to repeated pairs, and no correlation with the mean of those who show no sign.
    The third is given to the least like the others first, and never when only two people are left:
    nobody can say which of two is right.
    """
    overall = tables_of(answers)["overall"]
    copy, unrelated = answers["kind"] == "copy", answers["kind"] == "unrelated"
    # An answer may be one step off the right one.
    changed = (answers[["structure", "synonyms"]] > 1).any(axis=1) | (answers["meaning"] < 4)
    same = (answers["meaning"] > 1) | (answers[IS_PARAPHRASE] == 1)
    failed = (copy & changed) | (unrelated & same)
    keyed = answers.set_index(["annotator", "pair"])
    first, again = (keyed[keyed["kind"] == kind][RATINGS] for kind in ("pair", "repeat"))
    moved = (again - first).abs().dropna().mean(axis=1)
    people: dict[str, dict[str, Any]] = {}
    for name in plan["annotator"].unique():
        own = answers["annotator"] == name
        twice = moved[moved.index.get_level_values(0) == name]
        people[name] = {
            "tasks": int((plan["annotator"] == name).sum()),
            "done": int(own.sum()),
            "checks": int((own & (copy | unrelated)).sum()),
            "failed": int((own & failed).sum()),
            "repeats": len(twice),
            "moved": float(twice.mean()),
            "spearman": _likeness(overall, name, overall.columns),
        }
        people[name]["careless"] = _signs(people[name])
    there = [str(name) for name in overall]
    while len(trusted := [name for name in there if not people[name]["careless"]]) > 2:
        like = {name: _likeness(overall, name, trusted) for name in trusted}
        worst = min(like, key=lambda name: like[name])
        if like[worst] >= UNLIKE:
            break
        people[worst]["careless"].append(f"Spearman with the others is {like[worst]:.2f}")
    return people


def _likeness(table: pd.DataFrame, name: str, others: Iterable[str]) -> float:
    """Returns Spearman with the mean of others; 0 if a side is constant, 1 if pairs are few."""
    rest = table[[other for other in others if other != name]].mean(axis=1)
    both = pd.DataFrame({"own": table.get(name), "rest": rest}).dropna()
    if len(both) < LEAST_PAIRS:
        return 1.0
    return float(np.nan_to_num(both["own"].corr(both["rest"], "spearman")))


def _signs(row: dict[str, Any]) -> list[str]:
    signs = []
    if row["checks"] >= LEAST_CHECKS and row["failed"] >= FAILED * row["checks"]:
        signs.append(f"failed {row['failed']} of {row['checks']} attention pairs")
    if row["repeats"] >= LEAST_REPEATS and row["moved"] >= MOVED:
        moved = f"{row['moved']:.1f} apart on average, of 5"
        signs.append(f"answered {row['repeats']} repeated pairs {moved}")
    return signs


def one_rating(answers: pd.DataFrame, careless: Collection[str], apart: float) -> pd.DataFrame:
    """Returns one rating for each rated pair, in the columns that research/fit_spscore.py reads.

    Ratings are medians over annotators who are not careless; is_paraphrase is their majority's, NaN
    at a tie. disputed: two answers to a question differ by more than ``apart``, or is_paraphrase is
    a tie. passes: the number of people whose answers count.
    """
    counted = (answers["kind"] == "pair") & ~answers["annotator"].isin(careless)
    by_pair = answers[counted].groupby("pair", sort=False)
    kept = by_pair[["source", "paraphrase", "group", "method", "origin", "pair_id", "spscore"]]
    table = kept.first().rename(columns={"method": "kind"})
    table["group"] = table["group"].fillna(table["source"])
    table = table.fillna({"kind": "rated", "origin": "human"}).astype({"spscore": float})
    table[FIELDS] = by_pair[FIELDS].median()
    table[IS_PARAPHRASE] = table[IS_PARAPHRASE].where(table[IS_PARAPHRASE] != 0.5)
    spread = by_pair[RATINGS].max() - by_pair[RATINGS].min()
    table["disputed"] = (spread > apart).any(axis=1) | table[IS_PARAPHRASE].isna()
    table["passes"] = by_pair.size()
    return table.reset_index(drop=True)


def outcome(table: pd.DataFrame, sample: int) -> dict[str, Any]:
    """Returns counts and means of the rated pairs. table: from ``one_rating``; sample: its size."""
    scored = table[["overall", "spscore"]].dropna()
    return {
        "sample": sample,
        "rated": len(table),
        "disputed": int(table["disputed"].sum()),
        "means": table[FIELDS].mean().to_dict(),
        "scored": len(scored),
        "spearman": scored.corr("spearman").iloc[0, 1] if len(scored) > 2 else np.nan,
    }
