"""Normalised edit distance: the share of characters that must be edited.

    distance(S, P) = insertions, deletions and substitutions that turn S into P / max(|S|, |P|)

This counts the fewest such edits of one character each. Source: Levenshtein 1966, *Binary Codes
Capable of Correcting Deletions, Insertions, and Reversals*; divided by the longer side as in
ParaScore (Shen et al. 2022, *On the Evaluation Metrics for Paraphrase Generation*), which computes
its diversity from it.

Decided here: every code point counts, including white space; the text is not normalised. Two empty
sentences have distance 0. A high distance means reworded and says nothing about the meaning. A
corpus scores the mean of its pairs. Unit: 0–1. RapidFuzz computes whole columns, on one core.
"""

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
from pydantic.dataclasses import dataclass
from rapidfuzz.distance.Levenshtein import normalized_distance
from rapidfuzz.process import cpdist

from gaixie.udfs.metrics.metric import Metric, signature


@dataclass(frozen=True)
class EditDistance(Metric):
    """Levenshtein distance in characters over the length of the longer side."""

    name = "edit-distance"
    title = "Edit distance"
    summary = "Characters to change, divided by the length of the longer side."
    range = (0.0, 1.0)

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        return cpdist(texts, paraphrases, scorer=normalized_distance, dtype=np.float64, workers=1)

    def signature(self) -> str:
        return signature("EditDistance", *self.settings())

    def settings(self) -> Sequence[tuple[str, object]]:
        return ("norm", "longer"), ("rapidfuzz", version("rapidfuzz"))
