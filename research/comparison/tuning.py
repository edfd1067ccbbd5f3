"""Chooses the weight of a metric that sums two parts by human scores: ParaScore's ω, iBLEU's α.

Source: Shen et al. 2022, *On the Evaluation Metrics for Paraphrase Generation*, section 5.1, which
chooses the weight on a tenth of each set. Report figures on the rest only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from gaixie.udfs.metrics.ibleu import IBLEU
from gaixie.udfs.metrics.metric import Free, Metric, Pairs, free
from gaixie.udfs.metrics.parascore import ParaScore


def weight_of(metric: Metric) -> str | None:
    """Returns the name of the setting to tune: ``omega``, ``alpha``, or None."""
    metric = metric.metric if isinstance(metric, Free) else metric
    if isinstance(metric, ParaScore):
        return "omega"
    return "alpha" if isinstance(metric, IBLEU) else None


def tune(
    metric: Metric,
    pairs: Pairs,
    human: Sequence[float] | np.ndarray,
    candidates: Sequence[float],
) -> tuple[float, float]:
    """Returns (the candidate that agrees best with human scores, its Spearman with them).

    metric: ParaScore or iBLEU, or the reference-free form of one. human: a score for each pair;
    pairs with NaN there, or without a metric score, are ignored. The smaller weight wins a tie.
    Raises ValueError if no correlation can be computed.
    """
    if isinstance(metric, Free):
        metric, pairs = metric.metric, free(pairs)
    of: Any = metric
    kept, change = of.parts(pairs)
    ratings = np.asarray(human, np.float64)
    there = np.isfinite(ratings + kept + change)
    found = []
    for weight in sorted(candidates):
        scores = (kept + weight * change)[there]
        if len(scores) > 1 and np.ptp(scores) > 0 and np.ptp(ratings[there]) > 0:
            agreement = stats.spearmanr(scores, ratings[there]).statistic
            found.append((float(agreement), -weight))
    if not found:
        raise ValueError(f"{weight_of(metric)} cannot be tuned: all scores are the same")
    best, weight = max(found)
    return -weight, best


def with_weight(metric: Metric, weight: float) -> Metric:
    """Returns the metric with another weight."""
    if isinstance(metric, Free):
        return Free(with_weight(metric.metric, weight))
    of: Any = metric
    return replace(of, **{str(weight_of(metric)): weight})
