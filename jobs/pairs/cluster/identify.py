"""Says whether two sentences say the same: by SPScore-zh's judged meaning, or a classifier of
pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gaixie.udfs.metrics import identification
from gaixie.udfs.metrics.identification import Identification
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.spscore import SPScoreZh

TIERS = ("core", "full")


@dataclass(frozen=True)
class Identifier:
    """Is sent to Spark's workers, and loads its model there, once in each.

    metric: SPScore-zh's `meaning`, or `identification` by a classifier, whose folder has to be at
    the same path on every host."""

    metric: SPScoreZh | Identification
    least: float
    """Score from which on two sentences say the same."""

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """Returns float32, shape (pairs,), in [0, 1]."""
        if not len(sources):
            return np.empty(0, np.float32)
        scores = self.metric.sentence_scores(Pairs.of(sources, paraphrases))
        return np.nan_to_num(scores, nan=0.0).astype(np.float32)

    def describe(self) -> str:
        """Returns the model's name and what tells its versions apart."""
        if isinstance(self.metric, Identification):
            return self.metric.signature()
        model, segmenter = self.metric.loaded()
        return model.signature(segmenter)


def load_identifier(identify: str, min_meaning: float, min_probability: float) -> Identifier:
    """Returns the identifier of a tier's name or a classifier's folder, once it has loaded.

    Raises OSError or ValueError of one line where it cannot be loaded.
    """
    if identify in TIERS:
        metric = SPScoreZh("meaning", identify)
        metric.loaded()
        return Identifier(metric, min_meaning)
    identification.load_identifier(identify)
    return Identifier(Identification(identify), min_probability)
