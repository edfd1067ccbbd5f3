"""ParaScore: similar in meaning, to the source or to a reference, and worded otherwise.

    ParaScore(X, R, C) = max(Sim(X, C), Sim(R, C)) + ω · DS(X, C)
    DS(X, C) = γ                         where d > γ
               d · (γ + 1) / γ − 1       otherwise,      d = edits of X and C / length of the longer

with X the source, C the paraphrase and R the references, if any: without them the score is
ParaScore.Free, Sim(X, C) + ω · DS(X, C). DS runs from −1 for a copy to γ, and stays there: more
change than γ is no better.

Source: Shen et al. 2022, *On the Evaluation Metrics for Paraphrase Generation* (EMNLP), with its ω
of 0.05 and γ of 0.35. The best ω depends on the model, whose similarities may spread less or more:
``tune_omega`` finds it from pairs with human scores.

Sim is BERTScore's F1, or the cosine of sentence vectors. d is in characters, as in
:mod:`gaixie.udfs.metrics.edit_distance`. Unit: that of Sim, plus −ω to ωγ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.edit_distance import EditDistance
from gaixie.udfs.metrics.encoder import DEFAULT_MODEL
from gaixie.udfs.metrics.metric import Metric, Pairs, settings_of, signature
from gaixie.udfs.metrics.similarity import SentenceSimilarity

SIMILARITIES = ("bertscore", "sentence")


def reference(similarities: Sequence[float], distance: float, omega: float, gamma: float) -> float:
    """ParaScore of the similarities to source and references, and the normalised edit distance."""
    diversity = gamma if distance > gamma else distance * (gamma + 1) / gamma - 1
    return max(similarities) + omega * diversity


@dataclass(frozen=True)
class ParaScore(Metric):
    """Best similarity to source and references, plus what the wording differs.

    omega: weight of the difference. gamma: edit distance from which more is no better, above 0 up
    to 1. similarity: ``bertscore`` or ``sentence``. layer, device, precision: see ``Encoder``.
    """

    model: str = DEFAULT_MODEL
    omega: float = 0.05
    gamma: float = 0.35
    similarity: str = "bertscore"
    layer: int | None = None
    device: str = "auto"
    precision: str = "float32"

    name = "parascore"
    title = "ParaScore"
    summary = "Close in meaning to source or reference, and worded otherwise than the source."
    range = (-1.05, 1.0175)  # at the defaults
    higher_is_better = True
    uses_reference = True

    def __post_init__(self) -> None:
        self.check_setting("similarity", SIMILARITIES)
        if not 0 < self.gamma <= 1:
            raise ValueError(f"gamma {self.gamma}: expected above 0, at most 1")

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        return self.similarities(pairs) + self.omega * self.diversity(pairs)

    def similarities(self, pairs: Pairs) -> np.ndarray:
        """Sim of each pair, the best of source and references: (rows,) float64."""
        metric, sides = self._similarity(), (pairs.source, *pairs.references)
        if isinstance(metric, BERTScore):
            return metric.compare(pairs.paraphrase, sides)[:, 2]
        return np.fmax.reduce(
            [metric.sentence_scores(Pairs(side, pairs.paraphrase)) for side in sides]
        )

    def diversity(self, pairs: Pairs) -> np.ndarray:
        """DS of each pair: (rows,) float64, −1 to gamma."""
        distance = EditDistance().sentence_scores(pairs)
        below = distance * (self.gamma + 1) / self.gamma - 1
        return np.where(distance > self.gamma, self.gamma, below)

    def _similarity(self) -> BERTScore | SentenceSimilarity:
        kind = BERTScore if self.similarity == "bertscore" else SentenceSimilarity
        return kind(self.model, layer=self.layer, device=self.device, precision=self.precision)

    def signature(self) -> str:
        own = ("omega", self.omega), ("gamma", self.gamma), ("sim", self.similarity)
        return signature(self.title, *own, *settings_of(self._similarity().signature()))


def tune_omega(
    metric: ParaScore,
    pairs: Pairs,
    human: Sequence[float],
    candidates: Sequence[float],
    correlation: str = "spearman",
) -> tuple[float, float]:
    """(the ω among candidates that agrees best with human scores, its correlation with them).

    human: a score for each pair; pairs without one (NaN), or without a score, do not count. The
    smaller ω wins a tie. Tune on one part of the data and report on another. Raises ValueError for
    another correlation than spearman and pearson, and where none can be computed.
    """
    from scipy import stats

    measures = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}
    if correlation not in measures:
        raise ValueError(f"correlation {correlation!r}: expected {' or '.join(measures)}")
    ratings = np.asarray(human, np.float64)
    similarity, diversity = metric.similarities(pairs), metric.diversity(pairs)
    there = np.isfinite(ratings + similarity + diversity)
    if there.sum() < 2 or np.ptp(ratings[there]) == 0:
        raise ValueError("omega cannot be tuned: fewer than two pairs that differ in human score")
    correlations = []
    for omega in sorted(candidates):
        scores = (similarity + omega * diversity)[there]
        correlations.append(
            (float(measures[correlation](scores, ratings[there]).statistic), -omega)
        )
    best, omega = max(correlations)
    return -omega, best
