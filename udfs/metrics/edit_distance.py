"""Normalised edit distance: how much of a pair has to be typed anew.

    distance(S, P) = insertions, deletions and substitutions that make P of S / max(|S|, |P|)

with the fewest operations, each of one character. Source: Levenshtein 1966, *Binary Codes Capable
of Correcting Deletions, Insertions, and Reversals*; divided by the longer side as in ParaScore (Shen
et al. 2022, *On the Evaluation Metrics for Paraphrase Generation*), whose diversity is made of it.

Decided here: every code point counts, white space too; the text is taken as it stands. Two empty
sentences have distance 0. High means reworded, and says nothing of the meaning. A corpus scores the
mean of its pairs. Unit: 0–1. The distances are RapidFuzz's, on one core.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from gaixie.udfs.metrics.metric import Metric, Pairs, signature


def plain(source: str, paraphrase: str) -> float:
    """Normalised edit distance of one pair, by the table of all prefixes."""
    above = list(range(len(paraphrase) + 1))
    for i, a in enumerate(source, 1):
        row = [i]
        for j, b in enumerate(paraphrase, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
        above = row
    return above[-1] / max(len(source), len(paraphrase), 1)


@dataclass(frozen=True)
class EditDistance(Metric):
    """Levenshtein distance in characters over the length of the longer side."""

    name = "edit-distance"
    title = "Edit distance"
    summary = "Characters to change, over the length of the longer side."
    range = (0.0, 1.0)
    higher_is_better = True

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        sides = (side.fill_null("").to_pylist() for side in (pairs.source, pairs.paraphrase))
        scores = cpdist(*sides, scorer=Levenshtein.normalized_distance, dtype=np.float64, workers=1)
        there = np.asarray(pairs.source.is_valid()) & np.asarray(pairs.paraphrase.is_valid())
        return np.where(there, scores, np.nan)

    def signature(self) -> str:
        return signature("EditDistance", ("norm", "longer"), ("rapidfuzz", version("rapidfuzz")))
