"""Bootstraps over groups: draws sources or documents with replacement, each with all its rows.

Source: Efron & Tibshirani 1993, *An Introduction to the Bootstrap*, chapter 13 (percentile
intervals).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """A figure and its 95 % interval. NaN where the figure is not defined."""

    score: float
    low: float
    high: float


def estimate_of(statistics: np.ndarray | Sequence[float]) -> Estimate:
    """Makes an estimate from the statistic of the sample, followed by those of its resamples."""
    return Estimate(float(statistics[0]), *interval(statistics[1:]))


def resamples(groups: int, samples: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Yields the numbers of the groups that each resample draws: int64, shape (groups,)."""
    generator = np.random.default_rng(seed)
    for _ in range(samples):
        yield generator.integers(groups, size=groups)


def interval(statistics: np.ndarray | Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % percentile interval of a statistic's values; NaN if none is finite."""
    values = np.asarray(statistics, np.float64)
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, (0.025, 0.975)) if len(values) else (np.nan, np.nan)
    return float(low), float(high)


def drawn_rows(
    groups: Sequence[Any] | np.ndarray, samples: int = 1000, seed: int = 0
) -> Iterator[np.ndarray]:
    """Yields the rows of each resample, in whole groups: int64. groups: the group of each row."""
    _, index = np.unique(np.asarray(groups), return_inverse=True)
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(index.max() + 2))
    members = [order[a:b] for a, b in pairwise(starts)]
    for drawn in resamples(len(members), samples, seed):
        yield np.concatenate([members[k] for k in drawn])


def bootstrap_interval(
    statistic: Callable[..., float],
    columns: tuple[np.ndarray, ...],
    groups: Sequence[Any] | np.ndarray,
    samples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Returns the 95 % percentile interval of statistic(*columns), resampling whole groups."""
    drawn = drawn_rows(groups, samples, seed)
    return interval([statistic(*(column[rows] for column in columns)) for rows in drawn])
