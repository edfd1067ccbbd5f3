"""iBLEU rewards a paraphrase close to the references and far from the source.

    iBLEU = BLEU − α · Self-BLEU

Source: Sun and Zhou 2012, *Joint Learning of a Dual SMT System for Paraphrase Generation*, which
writes β · BLEU − (1 − β) · Self-BLEU: β times the form above with α = (1 − β) / β.

Self-iBLEU also uses the source as the reference:

    Self-iBLEU = Self-BLEU − α · Self-BLEU = (1 − α) · Self-BLEU

It is Self-BLEU on another scale and ranks as Self-BLEU does, the copy first: it says nothing about
how much a paraphrase changes. It is here because papers report it.

Decided here: α = 0.3; ``gaixie.research.comparison.scores`` finds the α that agrees best with human
scores. A corpus score applies the formula to the two corpus scores, over the rows that have a
source, a paraphrase and a reference. Unit: BLEU points, −100 · α to 100; Self-iBLEU 0
to 100 · (1 − α). Tokens and empty sentences are as in :mod:`gaixie.udfs.metrics.bleu`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, PositiveInt
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.bleu import BLEU, SelfBLEU
from gaixie.udfs.metrics.grams import Tokenizer
from gaixie.udfs.metrics.metric import Metric, Pairs

Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class IBLEU(Metric):
    """BLEU minus a share of Self-BLEU. alpha: that share, 0 to 1; the rest are BLEU's settings."""

    alpha: Share = 0.3
    tokenize: Tokenizer = "char"
    order: PositiveInt = 4
    segmenter: str = "jieba"

    name = "ibleu"
    title = "iBLEU"
    summary = "N-grams shared with the references, minus a share of those kept from the source."
    higher_is_better = True
    needs_reference = True

    def __post_init__(self) -> None:
        self.describe(range=(-100.0 * self.alpha, 100.0))

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        kept, change = self.parts(pairs)
        return kept + self.alpha * change

    def parts(self, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
        """Returns BLEU and −Self-BLEU of each pair, (rows,) float64 each, which alpha weighs."""
        self.check(pairs)
        return self._bleu().sentence_scores(pairs), -self._bleu(SelfBLEU).sentence_scores(pairs)

    def row_sums(self, pairs: Pairs) -> np.ndarray:
        """Returns BLEU's sums followed by Self-BLEU's, for the rows that both score."""
        self.check(pairs)
        kept, copied = (self._bleu(kind).row_sums(pairs) for kind in (BLEU, SelfBLEU))
        both = kept[:, -1:] * copied[:, -1:]
        return np.hstack([kept, copied]) * both

    def score_of_sums(self, sums: np.ndarray) -> np.ndarray:
        kept, copied = np.split(sums, 2, axis=-1)
        return self._bleu().score_of_sums(kept) - self.alpha * self._bleu().score_of_sums(copied)

    def settings(self) -> Sequence[tuple[str, object]]:
        return ("alpha", self.alpha), *self._bleu().settings()

    def _bleu(self, kind: type[BLEU] = BLEU) -> BLEU:
        return kind(self.tokenize, self.order, self.segmenter)


@dataclass(frozen=True)
class SelfIBLEU(SelfBLEU):
    """A share 1 − alpha of Self-BLEU, alpha 0 to 1."""

    alpha: Share = 0.3

    name = "self-ibleu"
    title = "Self-iBLEU"
    summary = "Self-BLEU times 1 − α: iBLEU with the source as the reference."

    def __post_init__(self) -> None:
        self.describe(range=(0.0, 100.0 * (1 - self.alpha)))

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        return (1 - self.alpha) * super().sentence_scores(pairs)

    def score_of_sums(self, sums: np.ndarray) -> np.ndarray:
        return (1 - self.alpha) * super().score_of_sums(sums)

    def settings(self) -> Sequence[tuple[str, object]]:
        return ("alpha", self.alpha), *super().settings()
