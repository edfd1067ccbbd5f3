"""Bootstraps any statistic over groups: draws sources with replacement, each with all its rows.

udfs/metrics/bootstrap.py says what an interval is, and bootstraps the scores of metrics.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gaixie.udfs.metrics.bootstrap import interval, resamples


def drawn_rows(
    groups: Sequence[Any] | np.ndarray, samples: int = 1000, seed: int = 0
) -> Iterator[np.ndarray]:
    """Yields the rows of each resample, in whole groups: int64. groups: the group of each row."""
    _, index, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    members = np.split(np.argsort(index, kind="stable"), np.cumsum(sizes)[:-1])
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
