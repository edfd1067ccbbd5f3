"""How well a metric agrees with people: correlations, and their intervals by bootstrap.

A resample draws source sentences with replacement, all candidates of a source together. It is kept
as the number of times that each row was drawn, and every statistic here takes such numbers as
weights: it is that of the sample in which each row stands so many times. No sort is repeated.

Sources: gaixie.udfs.metrics.bootstrap; Koehn 2004, *Statistical
Significance Tests for Machine Translation Evaluation* (paired bootstrap); Kendall 1945 (tau-b).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from gaixie.udfs.metrics import bootstrap

SAMPLES = 1_000


class Estimate(NamedTuple):
    """A statistic with its 95 % interval. NaN where it is not defined, a constant metric's."""

    value: float
    low: float
    high: float


def draw(groups: np.ndarray, samples: int = SAMPLES, seed: int = 0) -> np.ndarray:
    """Times that each row is drawn: int64, shape (1 + samples, rows).

    groups: number of the source of each row, shape (rows,). The first line is the sample itself:
    every row once.
    """
    names, of_row = np.unique(groups, return_inverse=True)
    times = [np.ones(len(of_row), np.int64)]
    for drawn in bootstrap.resamples(len(names), samples, seed):
        times.append(np.bincount(drawn, minlength=len(names))[of_row])
    return np.vstack(times)


def estimate(statistics: np.ndarray) -> Estimate:
    """From a statistic of the sample itself and of the resamples, in the order of ``draw``."""
    return Estimate(float(statistics[0]), *bootstrap.interval(statistics[1:]))


def p_value(first: np.ndarray, other: np.ndarray) -> float:
    """Two-sided, that two statistics of the same resamples differ by chance alone."""
    difference = (first - other)[1:]
    difference = difference[np.isfinite(difference)]
    if not len(difference):
        return float("nan")
    beyond = min((difference <= 0).sum(), (difference >= 0).sum())
    return float(min(1.0, 2 * (beyond + 1) / (len(difference) + 1)))


def statistics_of(
    scores: np.ndarray, human: np.ndarray, times: np.ndarray, labels: bool
) -> dict[str, np.ndarray]:
    """name -> statistic of each sample, shape (1 + samples,).

    scores: NaN where the metric has none; such rows are left out. human: shape (rows,), without
    NaN; 0 or 1 where labels. times: as from ``draw``.
    """
    there = ~np.isnan(scores)
    scores, human = scores[there], human[there]
    times = np.ascontiguousarray(times[:, there])
    kinds: dict[str, Callable] = (
        {"auc": auc, "average_precision": average_precision}
        if labels
        else {"pearson": pearson, "spearman": spearman, "kendall": kendall}
    )
    return {name: statistic(scores, human, times) for name, statistic in kinds.items()}


def pearson(x: np.ndarray, y: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Pearson's r of each line of times: float64, shape (samples,)."""
    if not len(x):
        return np.full(len(times), np.nan)
    x, y = x - x.mean(), y - y.mean()  # keeps the sums of squares exact enough
    sums = times.astype(float) @ np.column_stack([np.ones(len(x)), x, y, x * y, x * x, y * y])
    n, sx, sy, sxy, sxx, syy = sums.T
    variances = (n * sxx - sx**2, n * syy - sy**2)
    varied = (variances[0] > 1e-12 * n * sxx) & (variances[1] > 1e-12 * n * syy)  # else rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(varied, (n * sxy - sx * sy) / np.sqrt(variances[0] * variances[1]), np.nan)


def spearman(x: np.ndarray, y: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Spearman's rho of each line of times: float64, shape (samples,)."""
    if not len(x):
        return np.full(len(times), np.nan)
    return _spearman(*_order(x), *_order(y), times)


def kendall(x: np.ndarray, y: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Kendall's tau-b of each line of times: float64, shape (samples,)."""
    if not len(x):
        return np.full(len(times), np.nan)
    order, ends = _order(x)
    return _kendall(order, ends, np.unique(y, return_inverse=True)[1], times)


def auc(x: np.ndarray, labels: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Area under the ROC curve of each line of times: float64, shape (samples,)."""
    order, ends = _order(x)
    return _curves(order, ends, labels > 0, times)[0]


def average_precision(x: np.ndarray, labels: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Average precision of each line of times, as scikit-learn has it: float64, shape (samples,)."""
    order, ends = _order(-x)
    return _curves(order, ends, labels > 0, times)[1]


def _order(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows from the least x up, where each run of equal x ends in it)."""
    order = np.argsort(x, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(x[order]) != 0, True)) + 1
    return order, ends


@njit(cache=True, nogil=True)
def _mid_ranks(order, ends, times, ranks):
    """Mean rank of the copies of each row, 1 the least; returns the number of copies of all."""
    below, start = 0, 0
    for end in ends:
        here = 0
        for k in range(start, end):
            here += times[order[k]]
        for k in range(start, end):
            ranks[order[k]] = below + (here + 1) / 2
        below += here
        start = end
    return below


@njit(cache=True, nogil=True)
def _spearman(order_x, ends_x, order_y, ends_y, times):
    rhos = np.empty(len(times))
    ranks_x, ranks_y = np.empty((2, len(order_x)))
    for sample in range(len(times)):
        row_times = times[sample]
        total = _mid_ranks(order_x, ends_x, row_times, ranks_x)
        _mid_ranks(order_y, ends_y, row_times, ranks_y)
        middle = (total + 1) / 2
        xy, xx, yy = 0.0, 0.0, 0.0
        for row in range(len(row_times)):
            dx, dy = ranks_x[row] - middle, ranks_y[row] - middle
            xy += row_times[row] * dx * dy
            xx += row_times[row] * dx * dx
            yy += row_times[row] * dy * dy
        rhos[sample] = xy / np.sqrt(xx * yy) if xx * yy > 0 else np.nan
    return rhos


@njit(cache=True, nogil=True)
def _kendall(order, ends, y, times):
    """y: number of each row's value among the distinct ones. A tree of sums counts rows below."""
    taus = np.empty(len(times))
    values = y.max() + 1
    tree, of_value = np.empty((2, values + 1), np.int64)
    for sample in range(len(times)):
        row_times = times[sample]
        tree[:] = 0
        of_value[:] = 0
        before, concordant, ties_x, start = 0, 0, 0, 0
        for end in ends:
            here = 0
            for k in range(start, end):
                row = order[k]
                if row_times[row] == 0:
                    continue
                below = _sum_below(tree, y[row])
                above = before - below - of_value[y[row]]
                concordant += row_times[row] * (below - above)
                here += row_times[row]
            for k in range(start, end):
                row = order[k]
                if row_times[row]:
                    _add(tree, y[row], row_times[row])
                    of_value[y[row]] += row_times[row]
            ties_x += here * (here - 1) // 2
            before += here
            start = end
        ties_y = 0
        for count in of_value:
            ties_y += count * (count - 1) // 2
        pairs = before * (before - 1) // 2
        scale = float(pairs - ties_x) * float(pairs - ties_y)
        taus[sample] = concordant / np.sqrt(scale) if scale > 0 else np.nan
    return taus


@njit(cache=True, nogil=True)
def _sum_below(tree, value):
    total = 0
    while value > 0:
        total += tree[value]
        value -= value & -value
    return total


@njit(cache=True, nogil=True)
def _add(tree, value, times):
    node = value + 1
    while node < len(tree):
        tree[node] += times
        node += node & -node


@njit(cache=True, nogil=True)
def _curves(order, ends, labels, times):
    """(area under ROC of scores that rise, average precision of scores that fall) in this order."""
    areas, precisions = np.empty((2, len(times)))
    for sample in range(len(times)):
        row_times = times[sample]
        hits, misses, area, precision, start = 0, 0, 0.0, 0.0, 0
        for end in ends:
            hit, miss = 0, 0
            for k in range(start, end):
                row = order[k]
                if labels[row]:
                    hit += row_times[row]
                else:
                    miss += row_times[row]
            area += hit * (misses + miss / 2)
            hits += hit
            misses += miss
            if hit:
                precision += hit * hits / (hits + misses)
            start = end
        areas[sample] = area / (hits * misses) if hits and misses else np.nan
        precisions[sample] = precision / hits if hits else np.nan
    return areas, precisions
