"""What came of an annotation: who is careless, how far people agree, one rating for each pair.

Somebody is careless who shows one of four signs, each of which needs enough answers: attention
pairs answered wrong, repeated pairs answered otherwise, one answer all the way down, no relation
with what the others say.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import numpy as np
import pandas as pd

from gaixie.research.annotation.agreement import Level, kappas, krippendorff
from gaixie.research.annotation.tasks import FIELDS, IS_PARAPHRASE, RATINGS

LEVELS: tuple[Level, ...] = ("ordinal", "interval", "nominal")
THIRD = "third"
"""The annotator who decides disputed pairs."""
LEAST_CHECKS, FAILED = 3, 1 / 3
"""Attention pairs that say something, and the share of them that nobody fails by accident."""
LEAST_REPEATS, MOVED = 3, 1.25
"""Repeated pairs that say something, and the mean distance of both answers that is too far."""
LEAST_PAIRS, SAME, UNLIKE = 10, 0.9, 0.2
"""Pairs that say something, and the signs: a share of equal answers, a low Spearman."""


def tables_of(answers: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By question, the first answers to the sample: rows are pairs, columns annotators."""
    first = answers[answers["kind"] == "pair"]
    return {name: first.pivot(index="pair", columns="annotator", values=name) for name in FIELDS}


def annotators(plan: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """A row for each annotator: tasks and checks, and how their answers relate to the others'."""
    overall = tables_of(answers)["overall"]
    copy, unrelated = answers["kind"] == "copy", answers["kind"] == "unrelated"
    # One step of the scale is forgiven.
    changed = (answers[["structure", "synonyms"]] > 1).any(axis=1) | (answers["meaning"] < 4)
    same = (answers["meaning"] > 1) | (answers[IS_PARAPHRASE] == 1)
    failed = (copy & changed) | (unrelated & same)
    first = answers[answers["kind"] == "pair"].set_index(["annotator", "pair"])[RATINGS]
    again = answers[answers["kind"] == "repeat"].set_index(["annotator", "pair"])[RATINGS]
    moved = (again - first).abs().dropna().mean(axis=1)
    rows = {}
    for name in plan["annotator"].unique():
        own = answers["annotator"] == name
        rest = overall.drop(columns=name, errors="ignore").mean(axis=1)
        apart = (overall[name] - rest).dropna() if name in overall else pd.Series(dtype=float)
        rows[name] = {
            "tasks": int((plan["annotator"] == name).sum()),
            "done": int(own.sum()),
            "checks": int((own & (copy | unrelated)).sum()),
            "failed": answers["kind"][own & failed].value_counts().to_dict(),
            "repeats": len(twice := moved[moved.index.get_level_values(0) == name]),
            "moved": twice.mean(),
            "spearman": _spearman(overall[name], rest) if len(apart) else np.nan,
            "milder": apart.mean(),
            "apart": apart.abs().mean(),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _spearman(own: pd.Series, rest: pd.Series, least: int = 3) -> float:
    """Over the pairs that both have; NaN for fewer than so many, or where one side is constant."""
    both = pd.concat([own, rest], axis=1).dropna()
    if len(both) < least or (both.nunique() < 2).any():
        return float("nan")
    return float(both.iloc[:, 0].corr(both.iloc[:, 1], "spearman"))


def find_careless(people: pd.DataFrame, answers: pd.DataFrame) -> dict[str, list[str]]:
    """Who is careless, and the reasons. people: of ``annotators``."""
    tables = tables_of(answers)
    mean = cast(pd.DataFrame, sum(tables[name] for name in RATINGS)) / len(RATINGS)
    reasons: dict[str, list[str]] = {name: [] for name in people.index}
    for key, row in people.iterrows():
        name = cast(str, key)
        failed = sum(row["failed"].values())
        if row["checks"] >= LEAST_CHECKS and failed >= FAILED * row["checks"]:
            kinds = " and ".join(f"{count} {kind}" for kind, count in row["failed"].items())
            reasons[name].append(f"failed {failed} of {row['checks']} attention pairs ({kinds})")
        if row["repeats"] >= LEAST_REPEATS and row["moved"] >= MOVED:
            moved = f"{row['moved']:.1f} apart on average, of 5"
            reasons[name].append(f"answered {row['repeats']} repeated pairs {moved}")
        flat = [question for question in RATINGS if _one_answer(tables[question], name)]
        if 2 * len(flat) >= len(RATINGS):
            asked = f"gave one answer to {SAME:.0%} of the pairs or more, to: {', '.join(flat)}"
            reasons[name].append(asked)
    # The least like the others goes first; of two people nobody can say which is right.
    while len(trusted := [name for name in mean.columns if not reasons[name]]) > 2:
        rest = {name: mean[[other for other in trusted if other != name]] for name in trusted}
        like = {
            name: _spearman(mean[name], others.mean(axis=1), LEAST_PAIRS)
            for name, others in rest.items()
        }
        worst = min(like, key=lambda name: (np.nan_to_num(like[name], nan=1.0), name))
        if not like[worst] < UNLIKE:
            break
        reasons[worst].append(f"Spearman with the others is {like[worst]:.2f}")
    return {name: why for name, why in reasons.items() if why}


def _one_answer(table: pd.DataFrame, name: str) -> bool:
    """Whether somebody gave one answer to a question where the others' answers vary."""
    if name not in table or table[name].count() < LEAST_PAIRS:
        return False
    own = table[name].value_counts(normalize=True).max()
    others = table.drop(columns=name).stack().value_counts(normalize=True).max()
    return bool(own >= SAME and not others >= SAME)


def agreement(answers: pd.DataFrame, samples: int) -> dict[str, dict[str, Any]]:
    """By question: alpha by level, and the kappa of each two annotators."""
    tables = tables_of(answers)
    alphas = {
        name: {
            level: krippendorff(table.to_numpy(float), level, samples)
            for level in (LEVELS if name in RATINGS else ("nominal",))
        }
        for name, table in tables.items()
    }
    return {"alpha": alphas, "kappa": {name: kappas(table) for name, table in tables.items()}}


def adjudicate(answers: pd.DataFrame, careless: Collection[str], apart: float) -> pd.DataFrame:
    """One rating for each pair that somebody rated, in the columns that research/fit_spscore.py
    takes.

    Ratings are medians over those who are not careless; is_paraphrase is the majority's, NaN at a
    tie. disputed: two answers to a question differ by more than ``apart``, or is_paraphrase is a
    tie. passes: people whose answers count. The answers of THIRD stand in place of all others;
    decided_by says so.
    """
    counted = (answers["kind"] == "pair") & ~answers["annotator"].isin(careless)
    third = answers["annotator"] == THIRD
    by_pair = answers[counted & ~third].groupby("pair", sort=False)
    kept = by_pair[["source", "paraphrase", "group", "method", "origin", "pair_id", "spscore"]]
    table = kept.first().rename(columns={"method": "kind"})
    table["group"] = table["group"].fillna(table["source"])
    table = table.fillna({"kind": "rated", "origin": "human"}).astype({"spscore": float})
    table[FIELDS] = by_pair[FIELDS].median()
    table[IS_PARAPHRASE] = table[IS_PARAPHRASE].where(table[IS_PARAPHRASE] != 0.5)
    spread = by_pair[RATINGS].max() - by_pair[RATINGS].min()
    table["disputed"] = (spread > apart).any(axis=1) | table[IS_PARAPHRASE].isna()
    table["passes"], table["decided_by"] = by_pair.size(), "median"
    decided = answers[third].set_index("pair")[FIELDS]
    decided = decided[decided.index.isin(table.index)]
    table.loc[decided.index, FIELDS] = decided
    table.loc[decided.index, "decided_by"] = THIRD
    table.loc[decided.index, "passes"] += 1
    return table.reset_index(names="pair")


def outcome(table: pd.DataFrame, sample: int, waiting: int) -> dict[str, Any]:
    """What became of the sample. table: rated pairs; waiting: number left to a third person."""
    decided = table["decided_by"] == THIRD
    pairs = {
        "in the sample": sample,
        "without an answer that counts": sample - len(table) - waiting,
        "disputed, left to a third person": waiting,
        "disputed, the median taken": int((table["disputed"] & ~decided).sum()),
        "decided by a third person": int(decided.sum()),
        "rated": len(table),
    }
    spearman = table["overall"].corr(table["spscore"], "spearman")
    scored = int(table["spscore"].count())
    return {
        "pairs": pairs,
        "means": table[FIELDS].mean().to_dict(),
        "scored": scored,
        "spearman": spearman if scored > 2 else None,
    }
