"""Reference-free form of a metric: the source takes the place of the reference.

    X.Free(S, P) = X(S, P, reference = S)

Source: Shen et al. 2022, *On the Evaluation Metrics for Paraphrase Generation* (ParaScore), section
2.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gaixie.udfs.metrics.metric import Metric, Pairs


@dataclass(frozen=True)
class Free(Metric):
    """The reference-free form of a metric. It ignores any references."""

    metric: Metric
    needs_reference = False

    def __post_init__(self) -> None:
        of = self.metric
        summary = f"{of.summary.rstrip('.')}, with the source as the reference."
        self.describe(name=f"{of.name}-free", title=f"{of.title}.Free", summary=summary)
        self.describe(range=of.range, higher_is_better=of.higher_is_better)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        return self.metric.sentence_scores(free(pairs))

    def corpus_score(self, pairs: Pairs) -> float:
        return self.metric.corpus_score(free(pairs))

    def signature(self) -> str:
        return f"{self.metric.signature()}|ref:source"


def free(pairs: Pairs) -> Pairs:
    """Returns the pairs with the source as their only reference."""
    return replace(pairs, references=(pairs.source,))
