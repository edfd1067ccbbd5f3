"""ParaScore rewards a meaning close to the source or to a reference, and different wording.

    ParaScore(X, R, C) = max(Sim(X, C), Sim(R, C)) + ω · DS(X, C)
    DS(X, C) = γ                         where d > γ
               d · (γ + 1) / γ − 1       otherwise,      d = edits of X and C / length of the longer

X is the source, C the paraphrase and R the references, if any. Without references the score is
ParaScore.Free, Sim(X, C) + ω · DS(X, C). DS rises from −1 for a copy to γ, its maximum: more change
than γ is no better. ``threshold=False`` sets DS = d, the row "w/o threshold" of the paper's
ablation (Table 10).

Source: Shen et al. 2022, *On the Evaluation Metrics for Paraphrase Generation* (EMNLP), with its γ
of 0.35. The paper has no single ω: it tunes ω on a tenth of each data set, as
:mod:`gaixie.research.comparison.compare` does. The best ω depends on how far a model's similarities
spread; 0.05 is only this package's default.

Sim is BERTScore's F1. d is in characters, as in
:mod:`gaixie.udfs.metrics.edit_distance`. Unit: that of Sim, plus −ω to ωγ (0 to ω without
the threshold).
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.edit_distance import EditDistance
from gaixie.udfs.metrics.encoder import DEFAULT_MODEL
from gaixie.udfs.metrics.metric import Metric, Pairs


@dataclass(frozen=True)
class ParaScore(Metric):
    """The best similarity to source and references, plus the difference in wording.

    omega: weight of the difference. gamma: edit distance from which more is no better, above 0 up
    to 1. threshold: False for DS = d.
    """

    model: str = DEFAULT_MODEL
    omega: float = 0.05
    gamma: Annotated[float, Field(gt=0, le=1)] = 0.35
    threshold: bool = True

    name = "parascore"
    title = "ParaScore"
    summary = "Close in meaning to source or reference, and worded differently from the source."
    uses_reference = True

    def __post_init__(self) -> None:
        if self.threshold:
            self.describe(range=(-1 - self.omega, 1 + self.omega * self.gamma))
        else:
            self.describe(name="parascore-unthresholded", title="ParaScore w/o threshold")
            self.describe(range=(-1.0, 1 + self.omega))

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        kept, change = self.parts(pairs)
        return kept + self.omega * change

    def parts(self, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
        """Returns Sim and DS of each pair, (rows,) float64 each, which omega weighs."""
        sides = (pairs.source, *pairs.references)
        kept = BERTScore(self.model).compare(pairs.paraphrase, sides)[:, 2]
        change = EditDistance().sentence_scores(pairs)
        if self.threshold:
            below = change * (self.gamma + 1) / self.gamma - 1
            change = np.where(change > self.gamma, self.gamma, below)
        return kept, change

    def settings(self) -> Sequence[tuple[str, object]]:
        gamma = self.gamma if self.threshold else "none"
        how = ("omega", self.omega), ("gamma", gamma), ("sim", "bertscore")
        return *how, *BERTScore(self.model).settings()
