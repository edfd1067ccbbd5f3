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

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.grams import gram_counts, tokenize_columns, tokenizer_version
from gaixie.udfs.metrics.metric import Metric, Pairs, ratio

ORDERS = (1, 2, 3, 4)


@dataclass(frozen=True)
class SARI(Metric):
    """SARI against all references of a row. segmenter: for zh-word, see text.segmenters."""

    tokenize: Literal["char", "zh-word", "13a"] = "char"
    deletion: Literal["precision", "f1"] = "f1"
    segmenter: str = "jieba"

    name = "sari"
    title = "SARI"
    summary = "N-grams added, kept and deleted as in the references."
    range = (0.0, 100.0)
    needs_reference = True

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        return self.score_of_sums(self.row_sums(pairs))

    def row_sums(self, pairs: Pairs, scores: np.ndarray | None = None) -> np.ndarray:
        """Returns each row's statistics as a flat row, followed by 1; a row without a source, a
        paraphrase or a reference is 0.

        The statistics have the shape (4 orders, 3 operations, 3 sums). Operations: add, keep,
        delete. Sums: in both, of the paraphrase, of the references.
        """
        self.check(pairs)
        columns = (pairs.source, pairs.paraphrase, *pairs.references)
        tokens = tokenize_columns(columns, self.tokenize, self.segmenter, lower=True)
        times = tokens.present[2:].sum(axis=0)
        sums = np.zeros((len(pairs), len(ORDERS), 3, 3))
        for order, row, (source, paraphrase, *references) in gram_counts(tokens, len(ORDERS)):
            o, p, r = source * times[row], paraphrase * times[row], np.sum(references, axis=0)
            sides = (
                ((p > 0) & (o == 0), (r > 0) & (o == 0)),
                (np.minimum(o, p), np.minimum(o, r)),
                (np.maximum(o - p, 0), np.maximum(o - r, 0)),
            )
            for operation, (done, right) in enumerate(sides):
                for k, values in enumerate((np.minimum(done, right), done, right)):
                    np.add.at(sums[:, order, operation, k], row, values)
        scored = tokens.present[:2].all(axis=0) & (times > 0)
        flat = sums.reshape(len(pairs), len(ORDERS) * 9)
        return np.column_stack([flat * scored[:, None], scored])

    def score_of_sums(self, sums: np.ndarray) -> np.ndarray:
        statistics = sums[..., :-1].reshape(*sums.shape[:-1], len(ORDERS), 3, 3)
        return np.where(sums[..., -1] > 0, score_of(statistics, self.deletion), np.nan)

    def settings(self) -> Sequence[tuple[str, object]]:
        cut = tokenizer_version(self.tokenize, self.segmenter)
        return ("case", "lc"), ("tok", cut), ("del", self.deletion)


def score_of(sums: np.ndarray, deletion: str = "f1") -> np.ndarray:
    """Computes SARI from statistics, shape (…, 4, 3, 3) to (…,)."""
    both, done, right = np.moveaxis(sums, -1, 0)
    precision, recall = ratio(both, done, 0.0), ratio(both, right, 0.0)
    scores = ratio(2 * precision * recall, precision + recall, 0.0)
    if deletion == "precision":
        scores[..., 2] = precision[..., 2]
    return 100 * scores.mean(axis=(-1, -2))
