"""SARI compares what a simplification adds, keeps and deletes with what the references do.

    SARI = 100 · (F_add + F_keep + F_delete) / 3

Each F is over n-grams of one order; the score is the mean over orders 1–4. In one sentence, let o
and p be an n-gram's counts in source and paraphrase, and r the sum of its counts in the R
references:

              the paraphrase does      the references do      both do
    add       1 if p > 0 and o = 0     1 if r > 0 and o = 0   the lesser
    keep      min(R·o, R·p)            min(R·o, r)            the lesser
    delete    max(R·o − R·p, 0)        max(R·o − r, 0)        the lesser

Precision = what both do / what the paraphrase does, recall = what both do / what the references do,
each a sum over the n-grams of a sentence, or of all sentences of a corpus.

Source: Xu, Napoles, Pavlick, Chen & Callison-Burch 2016, *Optimizing Statistical Machine
Translation for Text Simplification*, as corrected by EASSE (Alva-Manchego et al. 2019): sums of
counts (the authors' Python script takes a mean of ratios over distinct n-grams); source and
paraphrase tokenised alike; F1 order by order, as in the authors' experiments (the equations print
F1 of mean precision and mean recall); 0 / 0 = 0 (other scripts say 1). So a paraphrase that equals
source and reference scores 100 / 3, not 100: nothing is added or deleted.
Decided here:

* Deletions count by F1, as in EASSE by default and in Chong et al. 2024, *MCTS*, who use EASSE on
  words, here ``tokenize="zh-word"``. ``deletion="precision"`` takes only precision, P_delete, as Xu
  et al. do.
* Texts are lower-cased, as in EASSE by default, and otherwise unchanged.
* ``tokenize``: ``char``, every character but spaces; ``zh-word``, the segmenter's words of
  normalised text; ``13a``, sacrebleu's words for English.

Unit: 0 to 100. A corpus score comes from summed counts, not from the mean of its sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.grams import tokenizer, tokenizer_version
from gaixie.udfs.metrics.metric import Metric, Pairs, ratio
from gaixie.udfs.metrics.words import lower_words

ORDERS = (1, 2, 3, 4)
Deletion = Literal["precision", "f1"]
DELETIONS = get_args(Deletion)


@dataclass(frozen=True)
class SARI(Metric):
    """SARI against all references of a row. segmenter: for zh-word, see text.segmenters."""

    tokenize: Literal["char", "zh-word", "13a"] = "char"
    deletion: Deletion = "f1"
    segmenter: str = "jieba"

    name = "sari"
    title = "SARI"
    summary = "N-grams added, kept and deleted as in the references."
    range = (0.0, 100.0)
    higher_is_better = True
    needs_reference = True

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        rows, sums = self._statistics(pairs)
        scores = np.full(len(pairs), np.nan)
        scores[rows] = score_of(sums, self.deletion)
        return scores

    def row_sums(self, pairs: Pairs) -> np.ndarray:
        """Returns each row's statistics as a flat row, followed by 1 for a scored row."""
        rows, sums = self._statistics(pairs)
        whole = np.zeros((len(pairs), len(ORDERS) * 9 + 1))
        whole[rows, :-1] = sums.reshape(len(rows), len(ORDERS) * 9)
        whole[rows, -1] = 1
        return whole

    def score_of_sums(self, sums: np.ndarray) -> np.ndarray:
        statistics = sums[..., :-1].reshape(*sums.shape[:-1], len(ORDERS), 3, 3)
        return np.where(sums[..., -1] > 0, score_of(statistics, self.deletion), np.nan)

    def settings(self) -> Sequence[tuple[str, object]]:
        cut = tokenizer_version(self.tokenize, self.segmenter)
        return ("case", "lc"), ("tok", cut), ("del", self.deletion)

    def _statistics(self, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows with a source, a paraphrase and a reference, and their statistics."""
        self.check(pairs)
        columns = [
            tokens(column, self.tokenize, self.segmenter)
            for column in (pairs.source, pairs.paraphrase, *pairs.references)
        ]
        present = np.array([[row is not None for row in column] for column in columns], bool)
        rows = np.flatnonzero(present[0] & present[1] & present[2:].any(axis=0))
        source, paraphrase, *references = ([column[row] for row in rows] for column in columns)
        return rows, statistics(source, paraphrase, *references)


def tokens(column: pa.Array, tokenize: str, segmenter: str) -> list[list[str] | None]:
    """Returns the tokens of each text, in lower case; None for a null."""
    if tokenize == "zh-word":
        return lower_words(column, segmenter)
    cut = tokenizer(tokenize)
    return [None if text is None else cut(text.lower()) for text in column.to_pylist()]


Tokens = Sequence[str]


def statistics(
    source: Sequence[Tokens | None],
    paraphrase: Sequence[Tokens | None],
    *references: Sequence[Tokens | None],
) -> np.ndarray:
    """Returns the sums of every row: float64, shape (rows, 4 orders, 3 operations, 3 sums).

    Operations: add, keep, delete. Sums: in both, of the paraphrase, of the references.
    """
    rows = len(source)
    sentences = [row or () for column in (source, paraphrase, *references) for row in column]
    times = np.zeros(rows, np.int64)
    for column in references:
        times += np.array([row is not None for row in column], bool)
    ids: dict[str, int] = {}
    token = np.array([ids.setdefault(t, len(ids)) for row in sentences for t in row], np.int64)
    sentence = np.repeat(np.arange(len(sentences)), [len(row) for row in sentences])
    row, side = sentence % max(rows, 1), np.minimum(sentence // max(rows, 1), 2)

    sums = np.zeros((rows, len(ORDERS), 3, 3))
    name = row  # of the n-gram that begins here: equal for equal ones of one row
    for order, n in enumerate(ORDERS):
        starts = np.flatnonzero(sentence[: max(len(token) - n + 1, 0)] == sentence[n - 1 :])
        keys = name[starts] * len(ids) + token[starts + n - 1]
        _, first, names = np.unique(keys, return_index=True, return_inverse=True)
        name = np.zeros(len(token), np.int64)
        name[starts] = names
        cells = len(first)
        counts = np.bincount(side[starts] * cells + names, minlength=3 * cells).reshape(3, cells)
        of_row = row[starts[first]]
        scale = times[of_row]
        o, p, r = counts[0] * scale, counts[1] * scale, counts[2]
        added, wanted = (p > 0) & (o == 0), (r > 0) & (o == 0)
        kept, keep = np.minimum(o, p), np.minimum(o, r)
        deleted, delete = np.maximum(o - p, 0), np.maximum(o - r, 0)
        for operation, (done, right) in enumerate(
            ((added, wanted), (kept, keep), (deleted, delete))
        ):
            for k, values in enumerate((np.minimum(done, right), done, right)):
                sums[:, order, operation, k] = np.bincount(of_row, values, rows)
    return sums


def score_of(sums: np.ndarray, deletion: str = "f1") -> np.ndarray:
    """Computes SARI from statistics, shape (…, 4, 3, 3) to (…,)."""
    both, done, right = np.moveaxis(sums, -1, 0)
    precision, recall = ratio(both, done, 0.0), ratio(both, right, 0.0)
    scores = ratio(2 * precision * recall, precision + recall, 0.0)
    if deletion == "precision":
        scores[..., 2] = precision[..., 2]
    return 100 * scores.mean(axis=(-1, -2))
