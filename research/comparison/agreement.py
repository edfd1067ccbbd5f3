"""Correlates a metric with human scores, on a sample and on its bootstrap resamples.

Sources: gaixie.udfs.metrics.bootstrap; Koehn 2004, *Statistical Significance Tests for Machine
Translation Evaluation* (paired bootstrap).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score

from gaixie.udfs.metrics.bootstrap import drawn_rows


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Returns Pearson's r; NaN if a side is constant."""
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) and np.ptp(y) else np.nan


STATISTICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "pearson": pearson,
    "spearman": lambda x, y: pearson(stats.rankdata(x), stats.rankdata(y)),
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
    "auc": lambda x, y: roc_auc_score(y, x),
    "average_precision": lambda x, y: average_precision_score(y, x),
}
CORRELATIONS = ("pearson", "spearman", "kendall")
CURVES = ("auc", "average_precision")
"""Statistics for human scores that are labels, 0 or 1."""


def draw(groups: np.ndarray, samples: int = 1_000, seed: int = 0) -> list[np.ndarray]:
    """Returns all rows, then the rows of each resample; resamples draw whole groups.

    groups: the source of each row, shape (rows,).
    """
    return [np.arange(len(groups)), *drawn_rows(groups, samples, seed)]


def statistics_of(
    scores: np.ndarray,
    human: np.ndarray,
    drawn: Sequence[np.ndarray],
    names: Sequence[str] = CORRELATIONS,
) -> dict[str, np.ndarray]:
    """Returns each statistic on the sample and its resamples, shape (1 + samples,), by name.

    An undefined value is NaN. scores: NaN where the metric has none; such rows are left out. human:
    shape (rows,), without NaN. drawn: from ``draw``.
    """
    there = ~np.isnan(scores)
    kept = [rows[there[rows]] for rows in drawn]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns if a side is constant
        return {
            name: np.array(
                [
                    STATISTICS[name](scores[rows], human[rows]) if len(rows) > 2 else np.nan
                    for rows in kept
                ]
            )
            for name in names
        }


def p_value(differences: np.ndarray) -> float:
    """Returns the two-sided p that a difference is 0, from its resampled values; NaN without
    any."""
    differences = differences[np.isfinite(differences)]
    if not len(differences):
        return float("nan")
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (beyond + 1) / (len(differences) + 1)))
