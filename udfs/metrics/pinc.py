"""PINC, paraphrase in n-gram changes: the share of n-grams that the source does not have.

    PINC(S, P) = 1/N Σ_{n=1..N} 1 − |ngrams_n(S) ∩ ngrams_n(P)| / |ngrams_n(P)|

over *sets* of n-grams. Source: Chen and Dolan 2011, *Collecting Highly Parallel Data for Paraphrase
Evaluation*, section 4. High means reworded, but an unrelated sentence scores highest: use PINC only
with a measure of meaning.

Decided here: orders for which the paraphrase is too short are left out of the mean, so that at any
length a copy scores 0 and a paraphrase without a shared character 1. An empty paraphrase has
nothing new and scores 0. Tokens are BLEU's (:mod:`gaixie.udfs.metrics.bleu`); the text is not
normalised. A corpus scores the mean of its pairs. Unit: 0–1.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import PositiveInt
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.grams import SacrebleuTokenizer, overlap, tokenize_columns
from gaixie.udfs.metrics.metric import Metric, Pairs


@dataclass(frozen=True)
class PINC(Metric):
    """Share of n-grams up to ``order`` that are new."""

    tokenize: SacrebleuTokenizer = "char"
    order: PositiveInt = 4

    name = "pinc"
    title = "PINC"
    summary = "Share of the paraphrase's n-grams that its source does not have."
    range = (0.0, 1.0)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        tokens = tokenize_columns((pairs.paraphrase, pairs.source), self.tokenize)
        counts = overlap(tokens, self.order)
        new = (counts.distinct - counts.shared) / np.maximum(counts.distinct, 1)
        orders = np.maximum((counts.distinct > 0).sum(axis=1), 1)
        return np.where(counts.scored, new.sum(axis=1) / orders, np.nan)

    def settings(self) -> Sequence[tuple[str, object]]:
        return ("tok", self.tokenize), ("order", self.order)
