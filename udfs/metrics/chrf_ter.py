"""chrF and TER, which sacrebleu computes, sentence by sentence.

**chrF**: character n-grams shared with a reference, as F_β.

    chrF_β = 100 · (1 + β²) · P · R / (β² · P + R)

P and R = precision and recall of character n-grams, averaged over the orders that both sides have
(white space dropped), six orders, β = 2.
Source: Popović 2015, *chrF: character n-gram F-score for automatic MT evaluation*. With several
references, the best score counts; a corpus score comes from the summed counts of all pairs. An
empty paraphrase scores 0. Unit: 0–100.

**TER**, translation edit rate: the edits that turn the paraphrase into a reference.

    TER = 100 · edits / tokens of the references on average

An edit inserts, deletes or replaces a token, or shifts a run of tokens (Tercom's greedy search).
Source: Snover et al. 2006, *A Study of Translation Edit Rate with Targeted Human Annotation*. With
several references, the fewest edits count. A corpus divides the sum of all edits. Decided here:
``normalized`` and ``asian_support`` are on, so that Han characters are tokens; without them a
Chinese sentence is one token. Case does not count, punctuation does. An empty paraphrase scores 100
(an insertion for each token), an empty reference by convention 100, and two empty sides 0. Unit:
percent, 0 is best, no upper bound.

The text is not normalised.
"""

from abc import abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.metric import Pairs, ReferenceMetric, signature


class OfSacrebleu(ReferenceMetric):
    """A metric of sacrebleu."""

    @abstractmethod
    def sacrebleu(self) -> Any:
        """Returns sacrebleu's metric with the settings."""

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        metric, scores = self.sacrebleu(), np.full(len(pairs), np.nan)
        for row, sides in self._rows(pairs).items():
            scores[row] = metric.sentence_score(*sides).score
        return scores

    def corpus_score(self, pairs: Pairs, scores: np.ndarray | None = None) -> float:
        """Returns the score of the rows that have both sides; NaN if there are none."""
        if not (rows := self._rows(pairs).values()):
            return float("nan")
        paraphrases, references = zip(*rows, strict=True)
        return float(self.sacrebleu().corpus_score(paraphrases, [*zip_longest(*references)]).score)

    def _rows(self, pairs: Pairs) -> dict[int, tuple[str, list[str]]]:
        """Returns the paraphrase and the references of each row that has both."""
        self.check(pairs)
        columns = [column.to_pylist() for column in (pairs.paraphrase, *pairs.references)]
        rows = enumerate(zip(*columns, strict=True))
        sides = {n: (row[0], [text for text in row[1:] if text is not None]) for n, row in rows}
        return {n: side for n, side in sides.items() if side[0] is not None and side[1]}


@dataclass(frozen=True)
class ChrF(OfSacrebleu):
    """sacrebleu's chrF2, without words."""

    name = "chrf"
    title = "chrF"
    summary = "Character n-grams shared with the reference; recall counts more."
    range = (0.0, 100.0)

    def signature(self) -> str:
        return signature("chrF2", *self.settings())

    def settings(self) -> Sequence[tuple[str, object]]:
        orders = ("nc", 6), ("nw", 0), ("space", "no")
        return ("case", "mixed"), ("eff", "yes"), *orders, ("sacrebleu", version("sacrebleu"))

    def sacrebleu(self) -> Any:
        from sacrebleu.metrics.chrf import CHRF

        return CHRF()


@dataclass(frozen=True)
class TER(OfSacrebleu):
    """sacrebleu's TER of Chinese."""

    name = "ter"
    title = "TER"
    summary = "Edits and shifts that turn the paraphrase into the reference, per 100 tokens."
    range = (0.0, float("inf"))
    higher_is_better = False

    def settings(self) -> Sequence[tuple[str, object]]:
        how = ("case", "lc"), ("tok", "tercom"), ("norm", "yes"), ("punct", "yes"), ("asian", "yes")
        return *how, ("sacrebleu", version("sacrebleu"))

    def sacrebleu(self) -> Any:
        from sacrebleu.metrics.ter import TER as Sacrebleu

        return Sacrebleu(normalized=True, asian_support=True)
