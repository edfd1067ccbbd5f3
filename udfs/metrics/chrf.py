"""chrF: character n-grams shared with a reference, as F_β.

    chrF_β = 100 · (1 + β²) · P · R / (β² · P + R)

P and R = precision and recall of character n-grams, averaged over the orders that both sides have
(white space dropped); with ``word_order`` above 0, orders of words join them (chrF++ is 2).
Sources: Popović 2015, *chrF: character n-gram F-score for automatic MT evaluation*; Popović 2017,
*chrF++: words helping character n-grams*.

sacrebleu computes the score, sentence by sentence. With several references, the best score counts;
a corpus score comes from the summed counts of all pairs. The text is not normalised. An empty
paraphrase scores 0. Unit: 0–100.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from gaixie.udfs.metrics.by_sacrebleu import BySacrebleu
from gaixie.udfs.metrics.metric import signature

if TYPE_CHECKING:
    from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True)
class ChrF(BySacrebleu):
    """sacrebleu's chrF. Raises ValueError for orders or a β that leave nothing to count."""

    char_order: int = 6
    word_order: int = 0
    beta: int = 2

    name = "chrf"
    title = "chrF"
    summary = "Character n-grams shared with the reference; recall counts more."
    range = (0.0, 100.0)
    higher_is_better = True

    def __post_init__(self) -> None:
        if self.char_order < 1 or self.word_order < 0:
            orders = f"{self.char_order} and {self.word_order}"
            raise ValueError(f"char_order must be at least 1 and word_order 0, not {orders}")
        if self.beta < 1:
            raise ValueError(f"beta must be at least 1, not {self.beta}")

    def signature(self) -> str:
        return signature(
            f"chrF{self.beta}{'+' * self.word_order}",
            ("case", "mixed"),
            ("eff", "yes"),
            ("nc", self.char_order),
            ("nw", self.word_order),
            ("space", "no"),
            ("sacrebleu", version("sacrebleu")),
        )

    def sacrebleu(self) -> CHRF:
        from sacrebleu.metrics.chrf import CHRF

        return CHRF(self.char_order, self.word_order, self.beta)
