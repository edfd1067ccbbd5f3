"""How well a metric agrees with people: correlations, and their intervals by bootstrap.

A resample draws source sentences with replacement, all candidates of a source together. It is kept
as the number of times that each row was drawn, and every statistic here takes such numbers as
weights: it is that of the sample in which each row stands so many times. No sort is repeated.

Sources: gaixie.udfs.metrics.bootstrap; Koehn 2004, *Statistical Significance Tests for Machine
Translation Evaluation* (paired bootstrap); Kendall 1945 (tau-b).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gaixie.udfs.metrics import bootstrap

SAMPLES = 1_000
BLOCK = 1_024
"""Rows that Kendall's tau compares with all others at a time."""


def draw(groups: np.ndarray, samples: int = SAMPLES, seed: int = 0) -> np.ndarray:
    """Times that each row is drawn: int64, shape (1 + samples, rows).

    groups: the source of each row, shape (rows,). The first line is the sample itself: every row
    once.
    """
    names, of_row = np.unique(groups, return_inverse=True)
    times = [np.ones(len(of_row), np.int64)]
    for drawn in bootstrap.resamples(len(names), samples, seed):
        times.append(np.bincount(drawn, minlength=len(names))[of_row])
    return np.vstack(times)


def p_value(differences: np.ndarray) -> float:
    """Two-sided p that a difference is 0, from its values in resamples; NaN where there are
    none."""
    differences = differences[np.isfinite(differences)]
    if not len(differences):
        return float("nan")
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (beyond + 1) / (len(differences) + 1)))


def statistics_of(
    scores: np.ndarray, human: np.ndarray, times: np.ndarray, labels: bool
) -> dict[str, np.ndarray]:
    """name -> statistic of each sample, shape (1 + samples,).

    scores: NaN where the metric has none; such rows are left out. human: shape (rows,), without
    NaN; 0 or 1 where labels. times: as from ``draw``.
    """
    there = ~np.isnan(scores)
    scores, human, times = scores[there], human[there], times[:, there].astype(float)
    kinds: dict[str, Callable] = (
        {"auc": auc, "average_precision": average_precision}
        if labels
        else {"pearson": pearson, "spearman": spearman, "kendall": kendall}
    )
    nothing = np.full(len(times), np.nan)
    return {
        name: statistic(scores, human, times) if len(scores) else nothing
        for name, statistic in kinds.items()
    }


def pearson(x: np.ndarray, y: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Pearson's r of each line of times, shape (samples,). x, y: (rows,), or of each sample."""
    total = times.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = (side - (times * side).sum(axis=1, keepdims=True) / total for side in (x, y))
        xx, yy, xy = ((times * product).sum(axis=1) for product in (x * x, y * y, x * y))
        return np.where((xx > 1e-12 * total[:, 0]) & (yy > 0), xy / np.sqrt(xx * yy), np.nan)


def spearman(x: np.ndarray, y: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Spearman's rho of each line of times: float64, shape (samples,)."""
    return pearson(_mid_ranks(x, times), _mid_ranks(y, times), times)


def kendall(x: np.ndarray, y: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Kendall's tau-b of each line of times: float64, shape (samples,)."""
    concordant = np.zeros(len(times))
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        signs = np.sign(x[rows, None] - x) * np.sign(y[rows, None] - y)
        concordant += (times[:, rows] * (times @ signs.T)).sum(axis=1) / 2
    untied = [
        _pairs(times.sum(axis=1)) - _pairs(_runs(side, times)[0]).sum(axis=1) for side in (x, y)
    ]
    scale = np.sqrt(untied[0] * untied[1])
    return np.divide(concordant, scale, out=np.full(len(times), np.nan), where=scale > 0)


def auc(x: np.ndarray, labels: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Area under the ROC curve of each line of times: float64, shape (samples,)."""
    hits, misses = (_runs(x, times * (labels == label))[0] for label in (1, 0))
    area = (hits * (misses.cumsum(axis=1) - misses / 2)).sum(axis=1)
    whole = hits.sum(axis=1) * misses.sum(axis=1)
    return np.divide(area, whole, out=np.full(len(times), np.nan), where=whole > 0)


def average_precision(x: np.ndarray, labels: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Average precision of each line of times, as scikit-learn has it: float64, (samples,)."""
    hits, both = (_runs(-x, times * weight)[0] for weight in (labels == 1, np.ones(len(x))))
    precision = hits.cumsum(axis=1) / np.maximum(both.cumsum(axis=1), 1)
    whole = hits.sum(axis=1)
    area = (hits * precision).sum(axis=1)
    return np.divide(area, whole, out=np.full(len(times), np.nan), where=whole > 0)


def _pairs(count: np.ndarray) -> np.ndarray:
    return count * (count - 1) / 2


def _runs(x: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Copies of each different x, the least first: (samples, values); the value of each row."""
    values, of_row = np.unique(x, return_inverse=True)
    starts = np.searchsorted(x[order := np.argsort(x, kind="stable")], values)
    return np.add.reduceat(times[:, order], starts, axis=1), of_row


def _mid_ranks(x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Mean rank of the copies of each row in each sample, 1 the least: (samples, rows)."""
    copies, of_row = _runs(x, times)
    return (copies.cumsum(axis=1) - (copies - 1) / 2)[:, of_row]
