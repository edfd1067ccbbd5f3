"""Bootstraps over groups: draws sources or documents with replacement, each with all its rows.

Source: Efron & Tibshirani 1993, *An Introduction to the Bootstrap*, chapter 13 (percentile
intervals). Equal seeds draw equal resamples for every system and metric.

A system is scored against all references of a source together. A person is scored against the
others: each column of references in turn is the paraphrase, and the mean over the columns is the
score of "a person", the gold row of Chong et al. 2024, *MCTS*, Table 5. With BLEU it says how much
the references have in common; for candidates, this is the Self-BLEU of Zhu et al. 2018, *Texygen*.
Diversity over references follows Dou et al. 2022, *Improving Large-scale Paraphrase Acquisition and
Generation*: the lowest, highest and mean score of each source's references.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics.metric import Metric, Pairs, ratio, sums_of


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


class Resamples:
    """Resamples of the rows of a table, whole groups at a time.

    groups: what the rows are grouped by, usually the sources, shape (rows,).
    """

    def __init__(self, groups: Sequence[Any], samples: int = 1000, seed: int = 0):
        _, self._group = np.unique(np.asarray(groups), return_inverse=True)
        self._count, self._samples, self._seed = int(self._group.max()) + 1, samples, seed

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """Sums (rows, k) over all rows, then over each resample: (1 + samples, k)."""
        grouped = np.zeros((self._count, rows.shape[1]))
        np.add.at(grouped, self._group, rows)
        sums = np.empty((1 + self._samples, rows.shape[1]))
        sums[0] = grouped.sum(axis=0)
        drawn = resamples(self._count, self._samples, self._seed)
        for row, groups in zip(sums[1:], drawn, strict=True):
            row[:] = np.bincount(groups, minlength=self._count) @ grouped
        return sums


def estimate(metric: Metric, sets: Sequence[Pairs], resamples: Resamples) -> Estimate:
    """Estimates the corpus score, or its mean over sets of the same rows (``leave_one_out``)."""
    scores = [metric.score_of_sums(resamples.sums(metric.row_sums(pairs))) for pairs in sets]
    return estimate_of(np.mean(scores, axis=0))


def mean_of(scores: np.ndarray, resamples: Resamples) -> Estimate:
    """Estimates the mean of sentence scores, shape (rows,); a row with NaN does not count."""
    sums = resamples.sums(sums_of(scores))
    return estimate_of(ratio(sums[:, 0], sums[:, 1]))


def leave_one_out(source: pa.Array, references: Sequence[pa.Array]) -> list[Pairs]:
    """Returns Pairs with each column of references as the paraphrase, and the others as references.

    Raises ValueError if there are fewer than two columns.
    """
    if len(references) < 2:
        raise ValueError("one column of references, expected two or more to leave one of them out")
    return [
        Pairs(source, paraphrase, tuple(other for j, other in enumerate(references) if j != k))
        for k, paraphrase in enumerate(references)
    ]


def diversity(
    score: Callable[[Pairs], np.ndarray],
    source: pa.Array,
    references: Sequence[pa.Array],
    resamples: Resamples,
) -> dict[str, Estimate]:
    """Returns ``min``, ``mean`` and ``max`` of a source's references, as means over sources.

    score: ``Metric.sentence_scores`` of a metric that needs no reference.
    """
    scores = np.stack([score(Pairs(source, column)) for column in references])
    means = ratio(np.nansum(scores, axis=0), (~np.isnan(scores)).sum(axis=0))
    found = {"min": np.fmin.reduce(scores), "mean": means, "max": np.fmax.reduce(scores)}
    return {name: mean_of(column, resamples) for name, column in found.items()}
