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

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import xxhash
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.grams import is_word, segmenter_version, words
from gaixie.udfs.metrics.metric import Metric

VECTORS_FILE = "vectors.bin"


@dataclass(frozen=True)
class WEEM4PG(Metric):
    """WEEM4PG with vectors from a file or folder (see load_vectors).

    segmenter: for Chinese; use the one that cut the words on which the vectors were trained.
    """

    vectors: str
    language: Literal["zh", "en"] = "zh"
    segmenter: str = "jieba"

    name = "weem4pg"
    title = "WEEM4PG"
    summary = "Closeness of the paraphrase's words to the source's, lower for copied words."
    range = (-1.0, 1.0)

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """Returns scores, shape (rows,). Raises what ``load_vectors`` raises."""
        vectors = load_vectors(self.vectors)
        rows = zip(self._words(texts), self._words(paraphrases), strict=True)
        return np.array([score_of(*sides, vectors) for sides in rows], float)

    def settings(self) -> Sequence[tuple[str, object]]:
        cut = segmenter_version(self.segmenter) if self.language == "zh" else "whitespace"
        return ("lang", self.language), ("seg", cut), ("vec", vectors_digest(self.vectors))

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        rows = words(texts, self.segmenter) if self.language == "zh" else map(str.split, texts)
        return [[word.lower() for word in row if is_word(word)] for row in rows]


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


class WordVectors(NamedTuple):
    """Word vectors. rows: each word's row. matrix: float32, (words, dimensions), rows of length 1.

    A vector of zeros stays zero.
    """

    rows: Mapping[str, int]
    matrix: np.ndarray


@lru_cache(maxsize=2)
def load_vectors(path: str | Path) -> WordVectors:
    """Loads the vectors of a file or a folder, once in a process.

    It reads any word2vec file, binary (.bin) or text, gzipped or not, as gensim writes, or a folder
    with ``vectors.bin``.

    Raises FileNotFoundError, and ValueError if the file holds no word vectors.
    """
    from gensim.models import KeyedVectors

    file = _file(path)
    try:
        vectors = KeyedVectors.load_word2vec_format(str(file), binary=".bin" in file.suffixes)
        matrix = vectors.get_normed_vectors()
    except Exception as error:  # gensim's parser raises many kinds
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{file}: no word vectors could be read from it ({reason})") from error
    return WordVectors(vectors.key_to_index, matrix)


def vectors_digest(path: str | Path) -> str:
    """Returns 12 hexadecimal digits of a file's XXH3, for a signature."""
    with _file(path).open("rb") as file:
        return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()[:12]


def _file(path: str | Path) -> Path:
    if (file := Path(path).expanduser()).is_dir():
        file = file / VECTORS_FILE
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file; expected word vectors")
    return file
