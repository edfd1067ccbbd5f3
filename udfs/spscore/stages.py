"""The rule of stages: the score and the origin of a pair decide when the curriculum trains on it.

Training starts with low scores, which are easy: stage 1 begins at the lowest cut point, and stage 3
holds the best pairs; stage 0 is below the cut. Cut points are per origin, because at the same score
LLM pairs are better than back-translations, and those better than pairs of a parallel corpus
(*Chinese Sentence Paraphrasing*, section 3). They are quantiles of a run's scores, or scores.

A pair that changes much may score well although its meaning differs. So stages 2 and 3 may also
require a least judged meaning; a pair below it is at most in stage 1. ``stage`` of udfs/spark.py is
the same rule as a Spark expression, which jobs/scoring/sorting.py writes as the column ``stage``.
"""

from collections.abc import Mapping, Sequence

import numpy as np

ORIGINS = ("parallel", "back_translation", "llm", "human")
STAGES = (0, 1, 2, 3)

DEFAULT_QUANTILES = {
    "parallel": (0.25, 0.5, 0.75),
    "back_translation": (0.4, 0.6, 0.8),
    "llm": (0.4, 0.6, 0.8),
    "human": (0.4, 0.6, 0.8),
}
"""Where stages 1, 2 and 3 begin in a run, unless conf/score.yaml says otherwise: of the origin's
pairs whose meaning is at least DEFAULT_MIN_MEANING, this share scores lower.

Of WMT's translations this keeps 58 %, in three stages of about equal size. The paper keeps 52 % of
the parallel pairs (8.9 of 17 million) and 41 % of the others (0.55 of 1.34 million)."""

DEFAULT_MIN_MEANING = 0.5

RATED_CUTS = {
    "parallel": (0.25, 0.49, 0.61),
    "back_translation": (0.25, 0.49, 0.61),
    "llm": (0.26, 0.40, 0.48),
    "human": (0.23, 0.45, 0.56),
}
"""Scores of tier core that correspond to a rating of 1.25, 2.4 and 3.0 of 5 in each origin (the
model's card has the table). They need no run, but few real translations reach stages 2 and 3.

No back-translation was rated, so back-translations take the scores of parallel pairs."""

RATED_MIN_MEANING = {"parallel": 0.8, "back_translation": 0.8, "llm": 0.65, "human": 0.8}
"""Least meaning in stages 2 and 3 under RATED_CUTS. The model's card says how many pairs that lost
meaning reach these stages anyway."""

SCORE_BINS = 10_000
"""Quantiles come from score counts in bins of 1 / SCORE_BINS: exact to one bin, and the same
however the rows are spread over machines."""


def stage(
    score: np.ndarray,
    cuts: Sequence[float],
    meaning: np.ndarray | None = None,
    min_meaning: float = 0.0,
) -> np.ndarray:
    """Returns the stage of each score, int8: how many of the three ascending cut points it reaches.

    NaN reaches none. If meaning is below min_meaning, the stage is at most 1.
    """
    score = np.asarray(score, np.float32)
    stages = np.zeros(score.shape, np.int8)
    for cut in cuts:
        stages += score >= np.float32(cut)
    if meaning is None:
        return stages
    lost = np.asarray(meaning, np.float32) < np.float32(min_meaning)
    return np.where(lost, np.minimum(stages, 1), stages).astype(np.int8)


def quantile(bins: Mapping[int, int], share: float) -> float:
    """Returns the lowest score below which at least `share` of the pairs lie.

    bins: how many pairs have each score times SCORE_BINS, rounded (udfs/spark.py).
    The score is the first float32 of the next bin, so that a cut there never divides a bin; behind
    the last bin, it is above every score. It is 0 if share is 0, and NaN if nothing was counted.
    """
    total = sum(bins.values())
    if total == 0:
        return float("nan")
    if share <= 0:
        return 0.0
    below = 0
    for index in sorted(bins):
        below += bins[index]
        if below >= share * total:
            edge = (index + 0.5) / SCORE_BINS
            cut = np.float32(edge)
            return float(cut if float(cut) >= edge else np.nextafter(cut, np.float32(2)))
    return 1.0
