"""Self-BLEU: BLEU of the paraphrase against its own source. High means copied.

    Self-BLEU(S, P) = BLEU(P, reference = S)

Source: Sun and Zhou 2012, *Joint Learning of a Dual SMT System for Paraphrase Generation*, where it
is the second part of iBLEU. Everything else, and the unit (0–100), is as in :mod:`gaixie.udfs.metrics.bleu`;
references are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gaixie.udfs.metrics import bleu
from gaixie.udfs.metrics.metric import Pairs


def reference(source: str, paraphrase: str, tokenize: str = "char", order: int = 4) -> float:
    """Self-BLEU of one pair, smoothed as ``exp`` does."""
    return bleu.reference(paraphrase, [source], tokenize, order)


@dataclass(frozen=True)
class SelfBLEU(bleu.BLEU):
    """BLEU with the source as the only reference, with BLEU's settings."""

    name = "self-bleu"
    title = "Self-BLEU"
    summary = "N-grams that the paraphrase keeps of its source: 100 is a copy."
    higher_is_better = False
    needs_source = True
    needs_reference = False

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        return super().sentence_scores(replace(pairs, references=(pairs.source,)))

    def corpus_score(self, pairs: Pairs) -> float:
        return super().corpus_score(replace(pairs, references=(pairs.source,)))

    def row_sums(self, pairs: Pairs) -> np.ndarray:
        return super().row_sums(replace(pairs, references=(pairs.source,)))
