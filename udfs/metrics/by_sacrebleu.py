"""Wraps a metric of sacrebleu as a Metric, for chrF and TER."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from gaixie.udfs.metrics.metric import Pairs, ReferenceMetric

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacrebleuMetric


class BySacrebleu(ReferenceMetric):
    """A metric of sacrebleu."""

    @abstractmethod
    def sacrebleu(self) -> SacrebleuMetric:
        """Returns sacrebleu's metric with the settings."""

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        self.check(pairs)
        metric, scores = self.sacrebleu(), np.full(len(pairs), np.nan)
        for row, (paraphrase, references) in enumerate(_rows(pairs)):
            if paraphrase is not None and references:
                scores[row] = metric.sentence_score(paraphrase, references).score
        return scores

    def corpus_score(self, pairs: Pairs) -> float:
        """Returns the score of the rows that have both sides; NaN if there are none."""
        self.check(pairs)
        rows = [(p, references) for p, references in _rows(pairs) if p is not None and references]
        if not rows:
            return float("nan")
        most = max(len(references) for _, references in rows)
        streams: Any = [[r[k] if k < len(r) else None for _, r in rows] for k in range(most)]
        return self.sacrebleu().corpus_score([p for p, _ in rows], streams).score


def _rows(pairs: Pairs) -> list[tuple[str | None, list[str]]]:
    """Returns each row's paraphrase and its references that are not null."""
    references = zip(*(column.to_pylist() for column in pairs.references), strict=True)
    present = ([text for text in row if text is not None] for row in references)
    return list(zip(pairs.paraphrase.to_pylist(), present, strict=True))
