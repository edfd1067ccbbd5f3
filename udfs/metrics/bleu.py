"""BLEU: n-grams of the paraphrase that a reference has, and a penalty for being too short.

    BLEU = 100 · BP · exp(1/N Σ_{n=1..N} log p_n),   BP = min(1, exp(1 − r / m))

p_n = n-grams of the paraphrase that match, each at most as often as the reference with the most of
it has it, / n-grams of the paraphrase; m = its tokens, r = tokens of the reference closest in
length. Sources: Papineni et al. 2002, *BLEU: a Method for Automatic Evaluation of Machine
Translation*; the numbers are those of sacrebleu (Post 2018, *A Call for Clarity in Reporting BLEU
Scores*).

Decided here, and as sacrebleu's own command does: the score of a sentence leaves out orders for
which the paraphrase is too short (``effective_order``), that of a corpus does not. A corpus score
comes from the counts of all pairs together. The text is taken as it stands; ``char`` drops white
space. ``zh-word`` counts the words of the segmenter, of normalised text: sacrebleu's BLEU of text that
was cut before, as Chong et al. 2024 (*MCTS*) print it. An empty paraphrase scores 0. Unit: 0–100.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from math import exp, log

import numpy as np

from gaixie.udfs.metrics.grams import (
    TOKENIZERS,
    Overlap,
    Tokens,
    overlap,
    tokenize_columns,
    tokenizer,
)
from gaixie.udfs.metrics.metric import Pairs, ReferenceMetric, signature
from gaixie.udfs.metrics.words import segmenter_version

SMOOTHING = ("exp", "floor", "add-k", "none")
"""sacrebleu's methods for an order without a match, with its default values: the k-th such order
counts 1 / 2^k matches; 0.1 matches; one match and one n-gram more for every order above 1; none."""


def reference(
    paraphrase: str, references: list[str], tokenize: str = "char", order: int = 4
) -> float:
    """BLEU of one sentence, smoothed as ``exp`` does."""
    cut = tokenizer(tokenize)
    tokens, others = cut(paraphrase), [cut(reference) for reference in references]
    logs, smoothing, any_match = [], 1, False
    for n in range(1, min(order, len(tokens)) + 1):
        clip: Counter[tuple[str, ...]] = Counter()
        for other in others:
            clip |= _grams(other, n)
        matches = sum((_grams(tokens, n) & clip).values())
        any_match |= matches > 0
        if not matches:
            smoothing *= 2
        logs.append(log((matches or 1 / smoothing) / (len(tokens) - n + 1)))
    if not any_match:
        return 0.0
    closest = min((abs(len(other) - len(tokens)), len(other)) for other in others)[1]
    return 100 * min(1.0, exp(1 - closest / len(tokens))) * exp(sum(logs) / len(logs))


def _grams(tokens: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


@dataclass(frozen=True)
class BLEU(ReferenceMetric):
    """sacrebleu's BLEU of the paraphrase against its references.

    tokenize: one of TOKENIZERS. order: longest n-gram. smooth: one of SMOOTHING. segmenter: of
    zh-word, see text.segmenters. Raises ValueError for any other.
    """

    tokenize: str = "char"
    order: int = 4
    smooth: str = "exp"
    segmenter: str = "jieba"

    name = "bleu"
    title = "BLEU"
    summary = "N-grams shared with the references, with a penalty for being too short."
    range = (0.0, 100.0)
    higher_is_better = True

    def __post_init__(self) -> None:
        self.check_setting("tokenize", TOKENIZERS)
        self.check_setting("smooth", SMOOTHING)
        if self.order < 1:
            raise ValueError(f"order must be at least 1, not {self.order}")

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        return self.sentence_scores_of(self._tokens(pairs))

    def corpus_score(self, pairs: Pairs) -> float:
        """BLEU of all pairs together, from the sums of their counts, as sacrebleu has it."""
        return self.corpus_score_of(self._tokens(pairs))

    def sentence_scores_of(self, tokens: Tokens) -> np.ndarray:
        """Scores of the first column of tokens against all others together."""
        counts = overlap(tokens, self.order)
        return np.where(counts.scored, self._scores(counts), np.nan)

    def row_sums(self, pairs: Pairs) -> np.ndarray:
        """N-grams that match and n-grams, by order; length, that of the closest, and 1 for a scored row."""
        return self.row_sums_of(self._tokens(pairs))

    def score_of_sums(self, sums: np.ndarray) -> np.ndarray:
        rows = sums.reshape(-1, sums.shape[-1])
        return np.array([self._corpus_score(row) for row in rows]).reshape(sums.shape[:-1])

    def corpus_score_of(self, tokens: Tokens) -> float:
        """Score of the first column of tokens as a corpus against all others together."""
        return self._corpus_score(self.row_sums_of(tokens).sum(axis=0))

    def row_sums_of(self, tokens: Tokens) -> np.ndarray:
        """``row_sums`` of the first column of tokens against all others together."""
        counts = overlap(tokens, self.order)
        rest = (counts.length, counts.closest, counts.scored)
        return np.column_stack([counts.matches, _totals(counts), *rest]).astype(np.float64)

    def _corpus_score(self, sums: np.ndarray) -> float:
        from sacrebleu.metrics.bleu import BLEU as Sacrebleu

        matches, totals, (length, closest, rows) = np.split(sums, (self.order, 2 * self.order))
        if not rows:
            return float("nan")
        return Sacrebleu.compute_bleu(
            matches.astype(int).tolist(),
            totals.astype(int).tolist(),
            int(length),
            int(closest),
            smooth_method=self.smooth,
            max_ngram_order=self.order,
        ).score

    def signature(self) -> str:
        return signature(self.title, *self.settings())

    def settings(self) -> list[tuple[str, object]]:
        """What stands in the signature."""
        cut = self.tokenize
        if cut == "zh-word":
            cut = f"{cut}-{segmenter_version(self.segmenter)}"
        return [
            ("case", "mixed"),
            ("eff", "sentences"),
            ("tok", cut),
            ("order", self.order),
            ("smooth", self.smooth),
            ("sacrebleu", version("sacrebleu")),
        ]

    def _tokens(self, pairs: Pairs) -> Tokens:
        self.check(pairs)
        columns = (pairs.paraphrase, *pairs.references)
        return tokenize_columns(columns, self.tokenize, self.segmenter)

    def _scores(self, counts: Overlap) -> np.ndarray:
        """Scores of sentences; 0 where nothing matches."""
        matches, totals = counts.matches.astype(np.float64), _totals(counts)
        if self.smooth == "add-k":
            matches[:, 1:] += 1
            totals[:, 1:] += 1
        else:
            missed = matches == 0
            if self.smooth == "exp":
                matches[missed] = 0.5 ** missed.cumsum(axis=1)[missed]
            elif self.smooth == "floor":
                matches[missed] = 0.1
        there = totals > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(there, np.log(matches / totals), 0.0)
            geometric_mean = np.exp(logs.sum(axis=1) / there.sum(axis=1))
            brevity = np.exp(np.minimum(1 - counts.closest / counts.length, 0.0))
        return np.where(counts.matches[:, 0] > 0, 100 * brevity * geometric_mean, 0.0)


def _totals(counts: Overlap) -> np.ndarray:
    """N-grams of each paraphrase: int64, shape (rows, order)."""
    return np.maximum(counts.length[:, None] - np.arange(counts.matches.shape[1]), 0)
