"""Agreement between people: Krippendorff's alpha with its interval, and weighted kappa.

A table of answers has a row for each thing that was judged (a unit) and a column for each
annotator: float64, NaN where somebody did not judge. Units with fewer than two answers say nothing
about agreement.

Sources: Krippendorff 2011, *Computing Krippendorff's Alpha-Reliability*; Cohen 1968 (weighted
kappa); the interval is a percentile bootstrap over units (Efron & Tibshirani 1993, chapter 13).
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd

from gaixie.udfs.metrics.bootstrap import interval, resamples

Level = Literal["nominal", "ordinal", "interval"]


def krippendorff(
    answers: np.ndarray, level: Level = "ordinal", samples: int = 1_000, seed: int = 0
) -> dict[str, float]:
    """alpha of a table of answers, shape (units, annotators): value, low, high, units, answers.

    1 is perfect agreement, 0 is chance, NaN where all answers are equal. low, high: the 95 %
    interval over units, NaN without samples. units: those with two answers or more; answers: their
    number in these units. Two answers differ by 0 or 1 (nominal), by the answers that lie between
    them (ordinal), or by their squared distance (interval).
    """
    given = (~np.isnan(answers)).sum(axis=1)
    answers, given = answers[given > 1], given[given > 1]
    sizes = {"units": len(answers), "answers": int(given.sum())}
    values = np.unique(answers[~np.isnan(answers)])
    if len(values) < 2:
        return {"value": np.nan, "low": np.nan, "high": np.nan, **sizes}
    counts = np.stack([(answers == value).sum(axis=1) for value in values], axis=1).astype(float)
    # Coincidences of a unit: pairs of answers of different people, over its answers less 1.
    pairs = np.einsum("uc,uk->uck", counts, counts) - counts[:, :, None] * np.eye(len(values))
    pairs /= (given - 1)[:, None, None]
    alphas = [_alpha(pairs.sum(axis=0), values, level)]
    for drawn in resamples(len(answers), samples, seed):
        times = np.bincount(drawn, minlength=len(answers)).astype(float)
        alphas.append(_alpha(np.tensordot(times, pairs, 1), values, level))
    low, high = interval(alphas[1:])
    return {"value": alphas[0], "low": low, "high": high, **sizes}


def _alpha(coincidences: np.ndarray, values: np.ndarray, level: Level) -> float:
    totals = coincidences.sum(axis=1)
    places = np.cumsum(totals) - totals / 2 if level == "ordinal" else values
    difference = (places[:, None] - places) ** 2
    if level == "nominal":
        difference = 1.0 - np.eye(len(values))
    by_chance = (np.outer(totals, totals) * difference).sum()
    if by_chance <= 0:
        return float("nan")
    return float(1 - (totals.sum() - 1) * (coincidences * difference).sum() / by_chance)


def kappas(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Each two annotators (columns) who judged some unit both: first, second, units, value, same.

    value: Cohen's kappa with quadratic weights, NaN where both always gave one same answer. same:
    share of equal answers.
    """
    from sklearn.metrics import cohen_kappa_score

    found = []
    for first, second in combinations(table.columns, 2):
        both = table[[first, second]].dropna().astype(int)
        if len(both):
            answers = both.to_numpy()
            scale = range(int(answers.min()), int(answers.max()) + 1)
            value = (
                cohen_kappa_score(both[first], both[second], labels=[*scale], weights="quadratic")
                if len(scale) > 1
                else np.nan
            )
            same = float((both[first] == both[second]).mean())
            row = {"first": first, "second": second, "units": len(both)}
            found.append(row | {"value": float(value), "same": same})
    return found
