"""Self-BLEU: BLEU of the paraphrase against its own source. High means copied.

    Self-BLEU(S, P) = BLEU(P, reference = S)

Source: Sun and Zhou 2012, *Joint Learning of a Dual SMT System for Paraphrase Generation*, where it
is the second part of iBLEU. Everything else, including the unit (0–100), is as in
:mod:`gaixie.udfs.metrics.bleu`. References are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

from gaixie.udfs.metrics.bleu import BLEU
from gaixie.udfs.metrics.free import free
from gaixie.udfs.metrics.grams import Overlap
from gaixie.udfs.metrics.metric import Pairs


@dataclass(frozen=True)
class SelfBLEU(BLEU):
    """BLEU with the source as the only reference, with BLEU's settings."""

    name = "self-bleu"
    title = "Self-BLEU"
    summary = "N-grams that the paraphrase keeps from its source: 100 is a copy."
    higher_is_better = False
    needs_source = True
    needs_reference = False

    def counts(self, pairs: Pairs) -> Overlap:
        return super().counts(free(pairs))
