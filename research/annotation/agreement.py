"""Measures agreement between people: Krippendorff's alpha with its interval.

Sources: Krippendorff 2011, *Computing Krippendorff's Alpha-Reliability*; the interval is a
percentile bootstrap over units (Efron & Tibshirani 1993, chapter 13).
"""

from __future__ import annotations

import numpy as np

from gaixie.udfs.metrics.bootstrap import interval, resamples


def krippendorff(answers: np.ndarray, samples: int = 1_000, seed: int = 0) -> dict[str, float]:
    """Returns ordinal alpha as value, low and high, with the numbers of units and of answers.

    answers: float64, shape (units, annotators), NaN where somebody did not answer. Alpha is 1 for
    perfect agreement, 0 for chance, and NaN if all answers are equal; for answers 0 and 1 it equals
    the nominal alpha. Only units with at least two answers count, because others say nothing about
    agreement.
    """
    given = (~np.isnan(answers)).sum(axis=1)
    answers, given = answers[given > 1], given[given > 1]
    sizes = {"units": len(answers), "answers": int(given.sum())}
    if not len(answers):
        return {"value": np.nan, "low": np.nan, "high": np.nan, **sizes}
    values = np.unique(answers[~np.isnan(answers)])
    counts = np.stack([(answers == value).sum(axis=1) for value in values], axis=1).astype(float)
    # Coincidences of a unit: pairs of answers by different people, divided by its answers minus 1.
    pairs = np.einsum("uc,uk->uck", counts, counts) - counts[:, :, None] * np.eye(len(values))
    pairs /= (given - 1)[:, None, None]
    drawn = [np.arange(len(answers)), *resamples(len(answers), samples, seed)]
    alphas = [_alpha(pairs[rows].sum(axis=0)) for rows in drawn]
    low, high = interval(alphas[1:])
    return {"value": alphas[0], "low": low, "high": high, **sizes}


def _alpha(coincidences: np.ndarray) -> float:
    totals = coincidences.sum(axis=1)
    places = np.cumsum(totals) - totals / 2
    difference = (places[:, None] - places) ** 2
    by_chance = (np.outer(totals, totals) * difference).sum()
    if by_chance <= 0:
        return float("nan")
    return float(1 - (totals.sum() - 1) * (coincidences * difference).sum() / by_chance)
