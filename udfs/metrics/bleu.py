"""BLEU: the share of n-grams that a reference has, with a penalty for short paraphrases.

    BLEU = 100 · BP · exp(1/N Σ_{n=1..N} log p_n),   BP = min(1, exp(1 − r / m))

p_n = matching n-grams of the paraphrase / its n-grams, where each n-gram's matches are clipped to
its highest count in one reference; m = tokens of the paraphrase, r = tokens of the reference
closest in length. Sources: Papineni et al. 2002, *BLEU: a Method for Automatic Evaluation of
Machine Translation*; the numbers equal sacrebleu's (Post 2018, *A Call for Clarity in Reporting
BLEU Scores*).

Decided here, as in sacrebleu's command: the score of a sentence leaves out orders for which the
paraphrase is too short (``effective_order``); the score of a corpus does not. A corpus score comes
from the summed counts of all pairs. The k-th order without a match counts 1 / 2^k matches
(``exp``). The text is not normalised; ``char`` drops white space. ``zh-word`` counts the
segmenter's words of normalised text, which is sacrebleu's BLEU of segmented text, as Chong et al.
2024 (*MCTS*) print it. An empty paraphrase scores 0. Unit: 0–100.

Self-BLEU(S, P) = BLEU(P, reference = S) is high for a copy. Source: Sun and Zhou 2012, *Joint
Learning of a Dual SMT System for Paraphrase Generation*, where it is the second part of iBLEU.

iBLEU rewards a paraphrase close to the references and far from the source.

    iBLEU = BLEU − α · Self-BLEU

Source: Sun and Zhou 2012, *Joint Learning of a Dual SMT System for Paraphrase Generation*, which
writes β · BLEU − (1 − β) · Self-BLEU: β times the form above with α = (1 − β) / β.

Papers also report Self-iBLEU, here ``ibleu-free``: with the source as the reference it is (1 − α) ·
Self-BLEU, which ranks as Self-BLEU does, the copy first.

Decided here: α = 0.3; ``gaixie.research.comparison.compare`` finds the α that agrees best with
human scores. A corpus score applies the formula to the two corpus scores, over the rows that have a
source, a paraphrase and a reference. Unit: BLEU points, −100 · α to 100. Tokens and empty sentences
are as above.
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import numpy as np
from pydantic import Field, PositiveInt
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics import grams
from gaixie.udfs.metrics.grams import Overlap, Tokenizer
from gaixie.udfs.metrics.metric import Metric, Pairs, ReferenceMetric, free


@dataclass(frozen=True)
class BLEU(ReferenceMetric):
    """sacrebleu's BLEU of the paraphrase against its references.

    order: longest n-gram. segmenter: of zh-word, see text.segmenters.
    """

    tokenize: Tokenizer = "char"
    order: PositiveInt = 4
    segmenter: str = "jieba"

    name = "bleu"
    title = "BLEU"
    summary = "N-grams shared with the references, with a penalty for being too short."
    range = (0.0, 100.0)

    def counts(self, pairs: Pairs) -> Overlap:
        """Counts the n-grams that each paraphrase shares with its references."""
        self.check(pairs)
        columns = (pairs.paraphrase, *pairs.references)
        tokens = grams.tokenize_columns(columns, self.tokenize, self.segmenter)
        return grams.overlap(tokens, self.order)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        counts = self.counts(pairs)
        matches, totals = counts.matches.astype(np.float64), _totals(counts)
        missed = matches == 0
        matches[missed] = 0.5 ** missed.cumsum(axis=1)[missed]
        there = totals > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(there, np.log(matches / totals), 0.0)
            geometric_mean = np.exp(logs.sum(axis=1) / there.sum(axis=1))
            brevity = np.exp(np.minimum(1 - counts.closest / counts.length, 0.0))
        scores = np.where(counts.matches[:, 0] > 0, 100 * brevity * geometric_mean, 0.0)
        return np.where(counts.scored, scores, np.nan)

    def row_sums(self, pairs: Pairs, scores: np.ndarray | None = None) -> np.ndarray:
        """Returns matches and n-grams by order, length, closest length, and 1 for a scored row."""
        counts = self.counts(pairs)
        rest = (counts.length, counts.closest, counts.scored)
        return np.column_stack([counts.matches, _totals(counts), *rest]).astype(np.float64)

    def score_of_sums(self, sums: np.ndarray) -> np.ndarray:
        rows = sums.reshape(-1, sums.shape[-1])
        return np.array([self._corpus_score(row) for row in rows]).reshape(sums.shape[:-1])

    def _corpus_score(self, sums: np.ndarray) -> float:
        """Computes the BLEU of a corpus from its summed counts, as sacrebleu does."""
        from sacrebleu.metrics.bleu import BLEU as Sacrebleu

        matches, totals, rest = np.split(sums.astype(int), (self.order, 2 * self.order))
        length, closest, rows = rest
        counts = [*matches], [*totals], length, closest
        found = Sacrebleu.compute_bleu(*counts, smooth_method="exp", max_ngram_order=self.order)
        return found.score if rows else float("nan")

    def settings(self) -> Sequence[tuple[str, object]]:
        cut = grams.tokenizer_version(self.tokenize, self.segmenter)
        how = ("case", "mixed"), ("eff", "sentences"), ("tok", cut), ("order", self.order)
        return *how, ("smooth", "exp"), ("sacrebleu", version("sacrebleu"))


def _totals(counts: Overlap) -> np.ndarray:
    """Returns the number of n-grams of each paraphrase: int64, shape (rows, order)."""
    return np.maximum(counts.length[:, None] - np.arange(counts.matches.shape[1]), 0)


@dataclass(frozen=True)
class SelfBLEU(BLEU):
    """BLEU with the source as the only reference, with BLEU's settings."""

    name = "self-bleu"
    title = "Self-BLEU"
    summary = "N-grams that the paraphrase keeps from its source: 100 is a copy."
    higher_is_better = False
    needs_reference = False

    def counts(self, pairs: Pairs) -> Overlap:
        return super().counts(free(pairs))


@dataclass(frozen=True)
class IBLEU(Metric):
    """BLEU minus a share of Self-BLEU. alpha: that share, 0 to 1; the rest are BLEU's settings."""

    alpha: Annotated[float, Field(ge=0, le=1)] = 0.3
    tokenize: Tokenizer = "char"
    order: PositiveInt = 4
    segmenter: str = "jieba"

    name = "ibleu"
    title = "iBLEU"
    summary = "N-grams shared with the references, minus a share of those kept from the source."
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

    def row_sums(self, pairs: Pairs, scores: np.ndarray | None = None) -> np.ndarray:
        """Returns BLEU's sums followed by Self-BLEU's, for the rows that both score."""
        self.check(pairs)
        kept, copied = (self._bleu(kind).row_sums(pairs) for kind in (BLEU, SelfBLEU))
        return np.hstack([kept, copied]) * (kept[:, -1:] * copied[:, -1:])

    def score_of_sums(self, sums: np.ndarray) -> np.ndarray:
        kept, copied = np.split(sums, 2, axis=-1)
        return self._bleu().score_of_sums(kept) - self.alpha * self._bleu().score_of_sums(copied)

    def settings(self) -> Sequence[tuple[str, object]]:
        return ("alpha", self.alpha), *self._bleu().settings()

    def _bleu(self, kind: type[BLEU] = BLEU) -> BLEU:
        return kind(self.tokenize, self.order, self.segmenter)
