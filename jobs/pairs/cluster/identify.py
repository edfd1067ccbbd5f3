"""What says whether two sentences say the same: SPScore-zh's judged meaning, or a classifier of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics import identification
from gaixie.udfs.metrics.identification import Identification
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.spscore import SPScore

TIERS = ("core", "full")


class Identifier(Protocol):
    """It is sent to Spark's workers, and loads its model there, once in each."""

    @property
    def least(self) -> float:
        """Score from which on two sentences say the same."""

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """float32, shape (pairs,), in [0, 1]."""

    def describe(self) -> str:
        """Its name and what tells its versions apart."""


@dataclass(frozen=True)
class ByMeaning:
    """The judgement `meaning` of SPScore-zh, of tier core or full."""

    tier: str
    least: float

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        if not len(sources):
            return np.empty(0, np.float32)
        meaning = _metric(self.tier).judge(sources, paraphrases)["meaning"]
        return np.nan_to_num(meaning.to_numpy(np.float32), nan=0.0)

    def describe(self) -> str:
        return _metric(self.tier).signature()


@dataclass(frozen=True)
class ByClassifier:
    """The metric `identification` by a classifier's folder: the mean over both orders of the pair.

    The folder has to be at the same path on every host.
    """

    folder: str
    least: float

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        pairs = Pairs.of(pa.array(sources, pa.string()), pa.array(paraphrases, pa.string()))
        return Identification(self.folder).sentence_scores(pairs).astype(np.float32)

    def describe(self) -> str:
        return Identification(self.folder).signature()


def load_identifier(identify: str, min_meaning: float, min_probability: float) -> Identifier:
    """The identifier of a tier's name or a classifier's folder; loads it, so that a mistake shows here.

    Raises OSError or ValueError of one line where it cannot be loaded.
    """
    if identify in TIERS:
        _metric(identify)
        return ByMeaning(identify, min_meaning)
    identification.load_identifier(identify)
    return ByClassifier(identify, min_probability)


@cache
def _metric(tier: str) -> SPScore:
    return SPScore.load(tier)
