"""ROUGE: n-grams (ROUGE-1, ROUGE-2) or a subsequence (ROUGE-L) shared with a reference, as F1.

    F1 = 2 · shared / (units of the paraphrase + units of the reference)

For ROUGE-N the units are n-grams and ``shared`` counts each as often as both sides have it. For
ROUGE-L the units are tokens and ``shared`` is the length of the longest common subsequence. Source:
Lin 2004, *ROUGE: A Package for Automatic Evaluation of Summaries*, sections 2 and 3.1.

Decided here:
- Chinese is split into characters (``char``, white space dropped). ``word``, for English, does what
  the package rouge_score does without a stemmer: runs of lower-cased ASCII letters and digits.
- Given the same tokens, the numbers equal rouge_score's. By default rouge-chinese counts *sets* of
  n-grams, so a repeated one counts once, which is not Lin's definition. With ``exclusive=False`` it
  counts as here, except for the 1e-8 that it adds to a denominator.
- Each pair is one sentence: ROUGE-L is sentence-level, not the union over a summary's sentences.
- With several references, the best counts. A side without units (an empty sentence) scores 0.
- A corpus scores the mean of its pairs. The text is not normalised. Unit: 0–1.

RapidFuzz finds the subsequences, with tokens as its characters.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic.dataclasses import dataclass
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cpdist

from gaixie.udfs.metrics.grams import Tokens, overlap, tokenize_columns
from gaixie.udfs.metrics.metric import Pairs, ReferenceMetric
from gaixie.udfs.text.code_points import CodePoints, to_strings

SUMMARIES = {
    "1": "Characters or words shared with the reference, as F1.",
    "2": "Pairs of neighbours shared with the reference, as F1.",
    "l": "Longest common subsequence with the reference, as F1.",
}


@dataclass(frozen=True)
class ROUGE(ReferenceMetric):
    """ROUGE-1, ROUGE-2 or ROUGE-L, by ``char`` or by ``word``."""

    variant: Literal["1", "2", "l"] = "l"
    tokenize: Literal["char", "word"] = "char"

    range = (0.0, 1.0)

    def __post_init__(self) -> None:
        title, summary = f"ROUGE-{self.variant.upper()}", SUMMARIES[self.variant]
        self.describe(name=f"rouge-{self.variant}", title=title, summary=summary)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        self.check(pairs)
        tokens = tokenize_columns((pairs.paraphrase, *pairs.references), self.tokenize)
        columns = range(1, len(tokens.offsets))
        return np.fmax.reduce([self._f1(tokens.columns(0, column)) for column in columns])

    def settings(self) -> Sequence[tuple[str, object]]:
        return ("tok", self.tokenize), ("stat", "f1"), ("refs", "best")

    def _f1(self, tokens: Tokens) -> np.ndarray:
        """Returns the F1 of the first column against the second."""
        if self.variant == "l":
            sides = [to_strings(CodePoints(tokens.values, offsets)) for offsets in tokens.offsets]
            shared, n = cpdist(*sides, scorer=LCSseq.similarity, dtype=np.int64), 1
        else:
            n = int(self.variant)
            shared = overlap(tokens, n).matches[:, n - 1]
        units = np.maximum(np.diff(tokens.offsets) - n + 1, 0).sum(axis=0)
        return np.where(tokens.present.all(axis=0), 2 * shared / np.maximum(units, 1), np.nan)
