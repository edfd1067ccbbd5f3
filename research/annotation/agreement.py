"""Agreement of people: Krippendorff's alpha with its interval, weighted kappa, and who differs.

A table of answers has a row for each thing that was judged (a unit) and a column for each annotator:
float64, shape (units, annotators), NaN where somebody did not judge. Units with fewer than two answers say
nothing about agreement.

Sources: Krippendorff 2011, *Computing Krippendorff's Alpha-Reliability*; Cohen 1968 (weighted kappa);
the interval is a percentile bootstrap over units (Efron & Tibshirani 1993, chapter 13).
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import rankdata

from gaixie.udfs.metrics.bootstrap import interval, resamples

Level = Literal["nominal", "ordinal", "interval"]

SAMPLES = 1_000


class Alpha(NamedTuple):
    """Krippendorff's alpha: 1 is perfect, 0 what chance gives; NaN where no answers differ at all."""

    value: float
    low: float
    high: float
    """95 % interval over units."""
    units: int
    """With two answers or more."""
    answers: int
    """In these."""


class Kappa(NamedTuple):
    """Two annotators: Cohen's kappa with quadratic weights, over the units that both judged."""

    first: str
    second: str
    units: int
    value: float
    same: float
    """Share of equal answers."""


class WithRest(NamedTuple):
    """An annotator beside the mean of the others who judged the same units."""

    annotator: str
    units: int
    spearman: float
    difference: float
    """Mean of own answer less that of the others: above 0 where somebody is milder."""
    distance: float
    """Mean absolute difference."""


def krippendorff(
    answers: np.ndarray, level: Level = "ordinal", samples: int = SAMPLES, seed: int = 0
) -> Alpha:
    """alpha of a table of answers; samples 0: without an interval.

    The difference of two answers is that of the level: 0 or 1 (nominal), the answers that lie between
    them (ordinal), or the square of their distance (interval).
    """
    answers = np.asarray(answers, np.float64)
    counts_of = (~np.isnan(answers)).sum(axis=1)
    answers, counts_of = answers[counts_of > 1], counts_of[counts_of > 1]
    values = np.unique(answers[~np.isnan(answers)])
    if len(values) < 2:
        return Alpha(np.nan, np.nan, np.nan, len(answers), int(counts_of.sum()))
    counts = np.stack([(answers == value).sum(axis=1) for value in values], axis=1).astype(float)
    # Coincidences of each unit: pairs of answers from different people, over the unit's answers - 1.
    pairs = np.einsum("uc,uk->uck", counts, counts)
    pairs[:, range(len(values)), range(len(values))] -= counts
    of_unit = (pairs / (counts_of - 1)[:, None, None]).reshape(len(answers), -1)
    times = [np.ones(len(answers), np.int64)]
    times += [
        np.bincount(drawn, minlength=len(answers))
        for drawn in resamples(len(answers), samples, seed)
    ]
    sums = (np.stack(times).astype(float) @ of_unit).reshape(-1, len(values), len(values))
    alphas = np.array([_alpha(coincidences, values, level) for coincidences in sums])
    low, high = interval(alphas[1:]) if samples else (np.nan, np.nan)
    return Alpha(float(alphas[0]), low, high, len(answers), int(counts_of.sum()))


def _alpha(coincidences: np.ndarray, values: np.ndarray, level: Level) -> float:
    totals = coincidences.sum(axis=1)
    expected = np.outer(totals, totals)
    np.fill_diagonal(expected, totals * (totals - 1))
    difference = _differences(totals, values, level)
    by_chance = (expected * difference).sum()
    if by_chance <= 0:
        return float("nan")
    return float(1 - (totals.sum() - 1) * (coincidences * difference).sum() / by_chance)


def _differences(totals: np.ndarray, values: np.ndarray, level: Level) -> np.ndarray:
    """Squared difference of each two values: shape (values, values)."""
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    if level == "interval":
        return (values[:, None] - values[None, :]) ** 2
    middle = np.cumsum(totals) - totals / 2
    return (middle[:, None] - middle[None, :]) ** 2


def weighted_kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Cohen's kappa with quadratic weights: 1 - observed over expected squared distance.

    first, second: answers to the same units, NaN where there is none. NaN where no unit has both, or
    both always gave one same answer.
    """
    both = ~(np.isnan(first) | np.isnan(second))
    first, second = first[both], second[both]
    if not len(first):
        return float("nan")
    # The mean over all combinations of an answer of one and an answer of the other.
    expected = first.var() + second.var() + (first.mean() - second.mean()) ** 2
    return float(1 - ((first - second) ** 2).mean() / expected) if expected > 0 else float("nan")


def kappas(answers: np.ndarray, annotators: list[str]) -> list[Kappa]:
    """Of each two annotators who judged some unit both."""
    found = []
    for a, b in combinations(range(len(annotators)), 2):
        first, second = answers[:, a], answers[:, b]
        both = ~(np.isnan(first) | np.isnan(second))
        if both.any():
            same = float((first[both] == second[both]).mean())
            value = weighted_kappa(first, second)
            found.append(Kappa(annotators[a], annotators[b], int(both.sum()), value, same))
    return found


def with_the_rest(answers: np.ndarray, annotators: list[str]) -> list[WithRest]:
    """Each annotator beside the mean of the others."""
    found = []
    for k, annotator in enumerate(annotators):
        others = np.delete(answers, k, axis=1)
        count = (~np.isnan(others)).sum(axis=1)
        both = ~np.isnan(answers[:, k]) & (count > 0)
        own = answers[both, k]
        rest = np.nansum(others[both], axis=1) / np.maximum(count[both], 1)
        if len(own):
            apart = own - rest
            found.append(
                WithRest(
                    annotator,
                    len(own),
                    spearman(own, rest),
                    float(apart.mean()),
                    float(np.abs(apart).mean()),
                )
            )
    return found


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rho; NaN for fewer than three values or where one side is constant."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
