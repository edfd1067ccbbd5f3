"""TER, translation edit rate: the edits that turn the paraphrase into a reference.

    TER = 100 · edits / tokens of the references on average

An edit inserts, deletes or replaces a token, or shifts a run of tokens. Source: Snover et al. 2006,
*A Study of Translation Edit Rate with Targeted Human Annotation*.

sacrebleu computes the score, sentence by sentence, with Tercom's greedy search for shifts. With
several references, the fewest edits count. A corpus divides the sum of all edits. Decided here:
``normalized`` and ``asian_support`` are on, so that Han characters are tokens; without them a
Chinese sentence is one token. Case does not count, punctuation does.
An empty paraphrase scores 100 (an insertion for each token), an empty reference by convention 100,
and two empty sides 0. Unit: percent, 0 is best, no upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from gaixie.udfs.metrics.by_sacrebleu import BySacrebleu
from gaixie.udfs.metrics.metric import signature


@dataclass(frozen=True)
class TER(BySacrebleu):
    """sacrebleu's TER of Chinese."""

    name = "ter"
    title = "TER"
    summary = "Edits and shifts that turn the paraphrase into the reference, per 100 tokens."
    range = (0.0, float("inf"))
    higher_is_better = False

    def signature(self) -> str:
        own = ("case", "lc"), ("tok", "tercom"), ("norm", "yes"), ("punct", "yes"), ("asian", "yes")
        return signature("TER", *own, ("sacrebleu", version("sacrebleu")))

    def sacrebleu(self) -> Any:
        from sacrebleu.metrics.ter import TER as Sacrebleu

        return Sacrebleu(normalized=True, asian_support=True)
