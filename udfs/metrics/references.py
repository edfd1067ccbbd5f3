"""Scores a corpus against several references, with intervals, and measures how people differ.

A system is scored against all references of a source together. A person is scored against the
others: each column of references in turn is the paraphrase, and the mean over the columns is the
score of "a person", the gold row of Chong et al. 2024, *MCTS*, Table 5. With BLEU it says how much
the references have in common; for candidates, this is the Self-BLEU of Zhu et al. 2018, *Texygen*.

Diversity over references follows Dou et al. 2022, *Improving Large-scale Paraphrase Acquisition and
Generation*: the lowest, highest and mean score of each source's references.

Intervals are percentiles of a bootstrap over sources (gaixie.udfs.metrics.bootstrap). Equal seeds
draw equal resamples for every system and metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics.bootstrap import Estimate, estimate_of, resamples
from gaixie.udfs.metrics.metric import Metric, Pairs, ratio


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
    there = ~np.isnan(scores)
    sums = resamples.sums(np.column_stack([np.where(there, scores, 0.0), there]))
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
    scores = np.full((len(references), len(source)), np.nan)
    for row, column in zip(scores, references, strict=True):
        kept = np.flatnonzero(np.asarray(column.is_valid()))
        row[kept] = score(Pairs(source.take(pa.array(kept)), column.take(pa.array(kept))))
    there = ~np.isnan(scores).all(axis=0)
    estimates = {}
    for name, of in (("min", np.nanmin), ("mean", np.nanmean), ("max", np.nanmax)):
        column = np.full(len(source), np.nan)
        column[there] = of(scores[:, there], axis=0)
        estimates[name] = mean_of(column, resamples)
    return estimates
