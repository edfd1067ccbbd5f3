"""WEEM4PG: how close the paraphrase's words are to the source's; shared words lower the score.

    WEEM4PG = [√N / N] · [Σ_i w_i / length(P)]

N = number of words that source and paraphrase share, w_i = cosine of the vector of the paraphrase's
word i with that of the nearest source word, length(P) = number of words of the paraphrase. The
second factor rewards the same meaning; the first, 1 / √N, rewards different words.

Source: word-embedding evaluation metric for paraphrase generation; Hailu, Yu & Fantaye 2020.
Decided here:

* N counts occurrences: a word that occurs twice in both counts twice.
* √N / N is undefined without a shared word. We set it to 1, as for N = 1: the factor falls as N
  grows, and 1 is its greatest value.
* A word without a vector has w = 1 if the source has the same word, otherwise 0.
* Words are in lower case, and punctuation does not count. Chinese: the segmenter's words of
  normalised text. English (such as PPDB's phrases): split at spaces.
* A side without words scores 0.

Unit: mean cosine, -1 to 1, in practice rarely below 0. A paraphrase of k words that equals its
source scores 1 / √k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics.metric import Metric, Pairs, signature
from gaixie.udfs.metrics.word_vectors import WordVectors, digest, load
from gaixie.udfs.metrics.words import is_word, segmenter_version, words

LANGUAGES = ("zh", "en")


@dataclass(frozen=True)
class WEEM4PG(Metric):
    """WEEM4PG with vectors from a file or folder (gaixie.udfs.metrics.word_vectors).

    segmenter: for Chinese; use the one that cut the words on which the vectors were trained.
    """

    vectors: str = ""
    language: str = "zh"
    segmenter: str = "jieba"

    name = "weem4pg"
    title = "WEEM4PG"
    summary = "Closeness of the paraphrase's words to the source's, lower for copied words."
    range = (-1.0, 1.0)
    higher_is_better = True

    def __post_init__(self) -> None:
        if not self.vectors:
            raise ValueError("weem4pg needs vectors: the path of a file of word vectors")
        self.check_setting("language", LANGUAGES)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        """Returns scores, shape (rows,). Raises what ``word_vectors.load`` raises."""
        vectors = load(self.vectors)
        rows = zip(self._words(pairs.source), self._words(pairs.paraphrase), strict=True)
        scores = [
            np.nan
            if source is None or paraphrase is None
            else score_of(source, paraphrase, vectors)
            for source, paraphrase in rows
        ]
        return np.array(scores, float)

    def signature(self) -> str:
        cut = segmenter_version(self.segmenter) if self.language == "zh" else "whitespace"
        settings = [("lang", self.language), ("seg", cut), ("vec", digest(self.vectors))]
        return signature("WEEM4PG", *settings)

    def _words(self, column: pa.Array) -> list[list[str] | None]:
        if self.language == "zh":
            rows = words(column, self.segmenter)
        else:
            rows = [None if text is None else text.split() for text in column.to_pylist()]
        return [None if row is None else [w.lower() for w in row if is_word(w)] for row in rows]


def score_of(source: Sequence[str], paraphrase: Sequence[str], vectors: WordVectors) -> float:
    """Computes the WEEM4PG of two sentences, given as words."""
    if not source or not paraphrase:
        return 0.0
    index, matrix = vectors
    counts = Counter(source)
    shared = sum((counts & Counter(paraphrase)).values())
    # Words that the source has get 1, whatever their vectors.
    others = [word for word in paraphrase if word not in counts]
    total = float(len(paraphrase) - len(others))
    rows = [index[word] for word in others if word in index]
    columns = [index[word] for word in counts if word in index]
    if rows and columns:
        nearest = (matrix[rows] @ matrix[columns].T).max(axis=1)
        if len(columns) < len(counts):
            nearest = np.maximum(nearest, 0.0)  # the nearest word may have no vector
        total += float(nearest.sum(dtype=np.float64))
    return total / len(paraphrase) / sqrt(max(shared, 1))
