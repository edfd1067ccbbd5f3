"""Scores by a metric of sacrebleu, in the common form: what chrF and TER share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gaixie.udfs.metrics.metric import Pairs

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacrebleuMetric


def sentence_scores(metric: SacrebleuMetric, pairs: Pairs) -> np.ndarray:
    """Scores by a metric of sacrebleu: float64, shape (rows,), NaN without a side."""
    scores = np.full(len(pairs), np.nan)
    for row, (paraphrase, references) in enumerate(_rows(pairs)):
        if paraphrase is not None and references:
            scores[row] = metric.sentence_score(paraphrase, references).score
    return scores


def corpus_score(metric: SacrebleuMetric, pairs: Pairs) -> float:
    """Score of the rows that have both sides, by a metric of sacrebleu; NaN if there are none."""
    rows = [(p, references) for p, references in _rows(pairs) if p is not None and references]
    if not rows:
        return float("nan")
    most = max(len(references) for _, references in rows)
    streams: Any = [[r[k] if k < len(r) else None for _, r in rows] for k in range(most)]
    return metric.corpus_score([p for p, _ in rows], streams).score


def _rows(pairs: Pairs) -> list[tuple[str | None, list[str]]]:
    """The paraphrase and the references that are there, row by row."""
    references = zip(*(column.to_pylist() for column in pairs.references), strict=True)
    present = ([text for text in row if text is not None] for row in references)
    return list(zip(pairs.paraphrase.to_pylist(), present, strict=True))
