"""Annotators who do not read, and how that shows.

Four signs, each of which needs enough answers to be one: attention pairs answered wrong, the same pair
answered otherwise the second time, one answer all the way down, and no relation with what the others say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from gaixie.research.annotation.agreement import spearman
from gaixie.research.annotation.answers import repeats_of, table_of
from gaixie.research.annotation.plan import CHECKS, IS_PARAPHRASE, RATINGS, SCALE

LEAST_CHECKS = 3
"""Attention pairs, and repeated ones, from which on they say something."""
FAILED = 1 / 3
"""Share of attention pairs from which on somebody is careless."""
MOVED = 1.25
"""Mean difference between the first and the second answer to the same question."""
LEAST_PAIRS = 10
"""Pairs from which on an annotator's answers are compared with those of others."""
SAME = 0.9
"""Share of equal answers to a question about different pairs."""
UNLIKE = 0.2
"""Spearman with the mean of the others, of the mean of all ratings."""


class Careless(NamedTuple):
    annotator: str
    reasons: list[str]


def failures(answers: pd.DataFrame) -> pd.DataFrame:
    """The attention pairs that were answered: annotator, kind, failed.

    Of a copy nothing changed and all meaning is kept; of two unrelated sentences none is. One step of the
    scale is forgiven.
    """
    rows = answers[answers["kind"].isin(CHECKS)]
    copy = (rows["structure"] > 1) | (rows["synonyms"] > 1) | (rows["meaning"] < SCALE - 1)
    unrelated = (rows["meaning"] > 1) | (rows[IS_PARAPHRASE] == 1)
    failed = np.where(rows["kind"] == "copy", copy, unrelated).astype(bool)
    return rows[["annotator", "kind"]].assign(failed=failed)


def find_careless(answers: pd.DataFrame, annotators: list[str]) -> list[Careless]:
    """Who is careless, and why; in the order of annotators."""
    reasons: dict[str, list[str]] = {annotator: [] for annotator in annotators}
    checks, repeats = failures(answers), repeats_of(answers)
    tables = {name: table_of(answers, name, annotators) for name in RATINGS}
    for k, annotator in enumerate(annotators):
        own = checks[checks["annotator"] == annotator]
        if len(own) >= LEAST_CHECKS and own["failed"].mean() >= FAILED:
            kinds = own[own["failed"]]["kind"].value_counts()
            what = " and ".join(f"{count} {kind}" for kind, count in kinds.items())
            reasons[annotator].append(
                f"failed {own['failed'].sum()} of {len(own)} attention pairs ({what})"
            )
        twice = repeats[repeats["annotator"] == annotator]
        if len(twice) >= LEAST_CHECKS:
            moved = float(twice[list(RATINGS)].to_numpy().mean())
            if moved >= MOVED:
                reasons[annotator].append(
                    f"answered {len(twice)} repeated pairs {moved:.1f} apart on average, of {SCALE}"
                )
        reasons[annotator] += _one_answer(tables, k)
    _unlike_the_others(tables, annotators, reasons)
    return [Careless(annotator, why) for annotator, why in reasons.items() if why]


def _one_answer(tables: dict[str, np.ndarray], k: int) -> list[str]:
    """One answer all the way down, to questions where the others' answers vary."""
    names = []
    for name, table in tables.items():
        own, others = table[:, k], np.delete(table, k, axis=1)
        own, others = own[~np.isnan(own)], others[~np.isnan(others)]
        if len(own) >= LEAST_PAIRS and _largest_share(own) >= SAME:
            if not len(others) or _largest_share(others) < SAME:
                names.append(name)
    if 2 * len(names) < len(tables):
        return []
    return [f"gave one answer to {SAME:.0%} of the pairs or more, to: {', '.join(names)}"]


def _largest_share(values: np.ndarray) -> float:
    return float(np.unique(values, return_counts=True)[1].max() / len(values))


def _unlike_the_others(
    tables: dict[str, np.ndarray], annotators: list[str], reasons: dict[str, list[str]]
) -> None:
    """Adds who has nothing in common with the others, the least like them first, then without them.

    Of two annotators nobody can say which is right, so three must be left.
    """
    mean = np.mean(list(tables.values()), axis=0)
    looked: set[int] = set()
    while True:
        trusted = [k for k, name in enumerate(annotators) if not reasons[name]]
        like: dict[int, tuple[float, int]] = {}
        for k in range(len(annotators)):
            others = [other for other in trusted if other != k]
            if k not in looked and len(others) > 1:
                like[k] = _likeness(mean[:, k], mean[:, others])
        like = {k: found for k, found in like.items() if found[0] < UNLIKE}
        if not like:
            return
        worst = min(like, key=lambda k: like[k])
        looked.add(worst)
        rho, pairs = like[worst]
        reasons[annotators[worst]].append(
            f"Spearman with the others is {rho:.2f}, on {pairs} pairs"
        )


def _likeness(own: np.ndarray, others: np.ndarray) -> tuple[float, int]:
    """(Spearman with the mean of others, pairs); NaN for too few pairs."""
    count = (~np.isnan(others)).sum(axis=1)
    both = ~np.isnan(own) & (count > 0)
    if both.sum() < LEAST_PAIRS:
        return float("nan"), int(both.sum())
    rest = np.nansum(others[both], axis=1) / count[both]
    return spearman(own[both], rest), int(both.sum())
