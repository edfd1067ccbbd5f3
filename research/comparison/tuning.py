"""The weight of a metric that is a sum of two parts, chosen by human scores: ParaScore's ω, iBLEU's α.

Source: Shen et al. 2022, *On the Evaluation Metrics for Paraphrase Generation*, which chooses them on
a tenth of each set. Report on the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gaixie.udfs.metrics.free import Free, free
from gaixie.udfs.metrics.ibleu import IBLEU
from gaixie.udfs.metrics.metric import Metric, Pairs
from gaixie.udfs.metrics.parascore import ParaScore

MEASURES = ("spearman", "pearson")


def weight_of(metric: Metric) -> str | None:
    """Name of the setting that is tuned: ``omega``, ``alpha``, or None."""
    metric = metric.metric if isinstance(metric, Free) else metric
    if isinstance(metric, ParaScore):
        return "omega"
    return "alpha" if isinstance(metric, IBLEU) else None


def tune(
    metric: Metric,
    pairs: Pairs,
    human: Sequence[float] | np.ndarray,
    candidates: Sequence[float],
    correlation: str = "spearman",
) -> tuple[float, float]:
    """(the weight among candidates that agrees best with human scores, its correlation with them).

    metric: ParaScore or iBLEU, or the reference-free reading of one. human: a score for each pair;
    pairs without one (NaN), or without a score, do not count. The smaller weight wins a tie. Raises
    ValueError for another correlation than spearman and pearson, and where none can be computed.
    """
    from scipy import stats

    if correlation not in MEASURES:
        raise ValueError(f"correlation {correlation!r}: expected {' or '.join(MEASURES)}")
    if isinstance(metric, Free):
        metric, pairs = metric.metric, free(pairs)
    name, ratings = weight_of(metric), np.asarray(human, np.float64)
    if not isinstance(metric, ParaScore | IBLEU):
        raise ValueError(f"{metric.name} has no weight to tune")
    kept, change = metric.parts(pairs)
    there = np.isfinite(ratings + kept + change)
    if there.sum() < 2 or np.ptp(ratings[there]) == 0:
        raise ValueError(f"{name} cannot be tuned: fewer than two pairs that differ in human score")
    measure = stats.spearmanr if correlation == "spearman" else stats.pearsonr
    found = []
    for weight in sorted(candidates):
        scores = (kept + weight * change)[there]
        if np.ptp(scores) > 0:
            found.append((float(measure(scores, ratings[there]).statistic), -weight))
    if not found:
        raise ValueError(f"{name} cannot be tuned: every pair has the same {metric.title}")
    best, weight = max(found)
    return -weight, best


def with_weight(metric: Metric, weight: float) -> Metric:
    """The metric with another weight."""
    if isinstance(metric, Free):
        return Free(with_weight(metric.metric, weight))
    of: Any = metric
    return replace(of, **{str(weight_of(metric)): weight})
