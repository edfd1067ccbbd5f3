"""Reads reviews with their sentiment, and paraphrases them by each word's k-th nearest word.

Source of the generators: Hailu, Yu & Fantaye 2020, *Intrinsic and Extrinsic Automatic Evaluation
Strategies for Paraphrase Generation Systems*: PG1, PG2 and PG3 replace a word by its nearest,
second and third nearest word in word2vec. Decided here: every word with a vector and at least two
characters is replaced; shorter words hold a Chinese sentence together. A neighbour is any other
word of the vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.neighbors import NearestNeighbors

from gaixie.udfs.metrics.word_vectors import WordVectors
from gaixie.udfs.metrics.words import lower_words
from gaixie.udfs.storage.text_tables import read_columns
from gaixie.udfs.text.splits import source_hash

PARTS = {"train": 0.7, "validation": 0.1, "test": 0.2}
"""Shares of the reviews; a hash of the text decides the part."""


class Reviews(NamedTuple):
    """words: each review's, in lower case. label: True for good. part: index into PARTS."""

    words: list[list[str]]
    label: np.ndarray
    part: np.ndarray


def read_reviews(name: str, limit: int = 0) -> Reviews:
    """Reads the distinct reviews of a table with columns label (0, 1) and review.

    limit: how many to keep, chosen by a hash of the text; 0 keeps all. Raises OSError, or
    ValueError with one line if a label has no reviews or is neither 0 nor 1.
    """
    rows = dict(_table(name))
    places = {text: source_hash(text, 0) / 2**64 for text in rows}
    texts = sorted(rows, key=lambda text: places[text])  # a limit takes equal shares of each part
    if limit and limit < len(texts):
        step = len(texts) / limit
        texts = [texts[int(k * step)] for k in range(limit)]
    label = np.array([rows[text] for text in texts], bool)
    if not 0 < label.sum() < len(label):
        raise ValueError(f"{name}: {len(label)} reviews of one label, expected both")
    edges = np.cumsum([*PARTS.values()])[:-1]
    part = np.searchsorted(edges, [places[text] for text in texts], side="right")
    if len({*part.tolist()}) < len(PARTS):
        raise ValueError(f"{name}: {len(label)} reviews are too few for {', '.join(PARTS)}")
    cut = lower_words(pa.array(texts, pa.string()))
    return Reviews([row or [] for row in cut], label, part)


def _table(name: str) -> Iterable[tuple[str, bool]]:
    for number, (label, review) in enumerate(read_columns(name, ["label", "review"]), 1):
        if label not in ("0", "1"):
            raise ValueError(f"{name}: column 'label': row {number} has {label!r}, expected 0 or 1")
        if review and review.strip():
            yield review.strip(), label == "1"


def neighbours(words: Sequence[str], vectors: WordVectors, most: int = 3) -> dict[str, list[str]]:
    """Returns each word's nearest other words, nearest first; leaves out words without vector."""
    known = [word for word in dict.fromkeys(words) if word in vectors.rows]
    rows, names = [vectors.rows[word] for word in known], [*vectors.rows]
    index = NearestNeighbors(n_neighbors=most + 1, metric="cosine").fit(vectors.matrix)
    near = index.kneighbors(vectors.matrix[rows], return_distance=False)
    others = ([k for k in found if k != own][:most] for own, found in zip(rows, near, strict=True))
    return {word: [names[k] for k in row] for word, row in zip(known, others, strict=True)}


def paraphrase(words: Sequence[str], near: dict[str, list[str]], rank: int) -> list[str]:
    """Replaces words by their neighbour of a rank, as PG1, PG2 and PG3 do for ranks 1, 2 and 3."""
    return [near[word][rank - 1] if len(word) > 1 and word in near else word for word in words]
