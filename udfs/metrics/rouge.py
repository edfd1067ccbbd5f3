"""ROUGE: n-grams (ROUGE-1, ROUGE-2) or a subsequence (ROUGE-L) shared with a reference, as F1.

    F1 = 2 · shared / (units of the paraphrase + units of the reference)

For ROUGE-N the units are n-grams and ``shared`` counts each as often as both sides have it; for
ROUGE-L the units are tokens and ``shared`` is the length of the longest common subsequence. Source:
Lin 2004, *ROUGE: A Package for Automatic Evaluation of Summaries*, sections 2 and 3.1.

Decided here:
- Chinese by character (``char``, white space dropped); ``word``, for English, is what the package
  rouge_score does without a stemmer: runs of lower-cased ASCII letters and digits.
- The numbers are those of rouge_score, given the same tokens. rouge-chinese by default counts *sets*
  of n-grams, so that a repeated one counts once, which is not Lin's definition; with
  ``exclusive=False`` it counts as here, and differs by the 1e-8 that it adds to a denominator.
- Each pair is one sentence: ROUGE-L is the sentence's, not the summary's union of several.
- Several references: the best. A side without units, an empty sentence say, scores 0.
- A corpus scores the mean of its pairs. The text is taken as it stands. Unit: 0–1.

The subsequence's length comes bit by bit (Hyyrö 2004, *Bit-Parallel LCS-length Computation
Revisited*): 64 characters of the paraphrase in one machine word.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numba import njit

from gaixie.udfs.metrics.grams import Tokens, find, overlap, table_size, tokenize_columns, tokenizer
from gaixie.udfs.metrics.metric import Pairs, ReferenceMetric, signature

SUMMARIES = {
    "1": "Characters or words shared with the reference, as F1.",
    "2": "Pairs of neighbours shared with the reference, as F1.",
    "l": "Longest common subsequence with the reference, as F1.",
}


def reference(paraphrase: str, reference: str, variant: str = "l", tokenize: str = "char") -> float:
    """ROUGE of one sentence against one reference."""
    a, b = tokenizer(tokenize)(paraphrase), tokenizer(tokenize)(reference)
    if variant == "l":
        shared, units = _plain_lcs(a, b), len(a) + len(b)
    else:
        n = int(variant)
        grams_a = Counter(tuple(a[i : i + n]) for i in range(len(a) - n + 1))
        grams_b = Counter(tuple(b[i : i + n]) for i in range(len(b) - n + 1))
        shared, units = (grams_a & grams_b).total(), grams_a.total() + grams_b.total()
    return 2 * shared / units if shared else 0.0


def _plain_lcs(a: list[str], b: list[str]) -> int:
    """Length of the longest common subsequence, by the table of all prefixes."""
    above = [0] * (len(b) + 1)
    for token in a:
        row = [0]
        for j, other in enumerate(b):
            row.append(above[j] + 1 if token == other else max(above[j + 1], row[j]))
        above = row
    return above[-1]


@dataclass(frozen=True)
class ROUGE(ReferenceMetric):
    """ROUGE-1, ROUGE-2 or ROUGE-L, by ``char`` or by ``word``. ValueError for any other setting."""

    variant: str = "l"
    tokenize: str = "char"

    range = (0.0, 1.0)
    higher_is_better = True

    def __post_init__(self) -> None:
        self.check_setting("variant", SUMMARIES)
        self.check_setting("tokenize", ("char", "word"))
        title, summary = f"ROUGE-{self.variant.upper()}", SUMMARIES[self.variant]
        self.describe(name=f"rouge-{self.variant}", title=title, summary=summary)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        self.check(pairs)
        tokens = tokenize_columns((pairs.paraphrase, *pairs.references), self.tokenize)
        best = np.full(len(pairs), np.nan)
        for reference in range(1, len(pairs.references) + 1):
            best = np.fmax(best, self._f1(tokens.columns(0, reference)))
        return best

    def signature(self) -> str:
        return signature(self.title, ("tok", self.tokenize), ("stat", "f1"), ("refs", "best"))

    def _f1(self, tokens: Tokens) -> np.ndarray:
        """F1 of the first column against the second."""
        if self.variant == "l":
            shared, n = common_subsequences(tokens.values, tokens.offsets), 1
        else:
            n = int(self.variant)
            shared = overlap(tokens, n).matches[:, n - 1]
        units = np.maximum(np.diff(tokens.offsets) - n + 1, 0).sum(axis=0)
        return np.where(tokens.present.all(axis=0), 2 * shared / np.maximum(units, 1), np.nan)


@njit(cache=True, nogil=True)
def common_subsequences(values, offsets):
    """Length of the longest common subsequence of the two columns of Tokens: int64, shape (rows,)."""
    rows = offsets.shape[1] - 1
    longest = 0
    for row in range(rows):
        longest = max(longest, offsets[0, row + 1] - offsets[0, row])
    table = np.empty(table_size(longest), np.int64)
    keys = np.empty(longest, np.uint32)
    names = np.empty(longest, np.int64)
    open_bits = np.empty(longest // 64 + 1, np.uint64)
    masks = np.empty(4096, np.uint64)
    lengths = np.zeros(rows, np.int64)
    for row in range(rows):
        a = values[offsets[0, row] : offsets[0, row + 1]]
        b = values[offsets[1, row] : offsets[1, row + 1]]
        mask = table_size(len(a)) - 1
        table[: mask + 1] = -1
        distinct = 0
        for i in range(len(a)):
            cell = find(a[i], table, mask, keys)
            if table[cell] < 0:
                table[cell] = distinct
                keys[distinct] = a[i]
                distinct += 1
            names[i] = table[cell]
        # Bit i of a token's mask: a has it at i.
        words = len(a) // 64 + 1
        if distinct * words > len(masks):
            masks = np.empty(distinct * words, np.uint64)
        masks[: distinct * words] = 0
        for i in range(len(a)):
            masks[names[i] * words + i // 64] |= np.uint64(1) << np.uint64(i % 64)
        # Bit i is 0 where the subsequence grows by one between the prefixes a[:i] and a[:i + 1].
        open_bits[:words] = ~np.uint64(0)
        for j in range(len(b)):
            name = table[find(b[j], table, mask, keys)]
            if name < 0:
                continue
            carry = np.uint64(0)
            for w in range(words):
                bits, here = open_bits[w], masks[name * words + w]
                total = bits + (bits & here)
                with_carry = total + carry
                carry = np.uint64(total < bits) | np.uint64(with_carry < total)
                open_bits[w] = with_carry | (bits & ~here)
        for i in range(len(a)):
            lengths[row] += not (open_bits[i // 64] >> np.uint64(i % 64)) & np.uint64(1)
    return lengths
