"""Evaluates generators: metrics score their paraphrases, and networks classify them.

As in the paper (section 4.3, Table 3), a network learns from the original reviews and reads the
paraphrases of the test part. The metric's score of each paraphrase is then correlated, review by
review, with the network's probability of the review's own label.

PG1, PG2 and PG3 replace a word by its nearest, second and third nearest word in word2vec.

Source: Hailu, Yu & Fantaye 2020, *Intrinsic and Extrinsic Automatic Evaluation Strategies for
Paraphrase Generation Systems*. Decided here: the probability is used; the paper does not say
whether it uses that or the predicted label. Every word with a vector and at least two characters
is replaced; shorter words hold a Chinese sentence together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy import stats
from sklearn.neighbors import NearestNeighbors

from gaixie.research.comparison.agreement import draw, statistics_of
from gaixie.research.generators.classifiers import (
    NETWORKS,
    numbered,
    of_label,
    train,
    vocabulary,
)
from gaixie.research.ratings.tables import numbers_of, read_table
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics import Metric, Pairs
from gaixie.udfs.metrics.bootstrap import estimate_of
from gaixie.udfs.metrics.weem4pg import WordVectors, load_vectors
from gaixie.udfs.metrics.words import lower_words
from gaixie.udfs.text.splits import source_hash

ORIGINAL = "original"
GENERATORS = (ORIGINAL, "PG1", "PG2", "PG3")
Scores = dict[str, dict[str, np.ndarray]]
"""Score of each review, by generator and metric."""
TESTS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}


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
    table = read_table(Path(name), ["label", "review"])
    labels = numbers_of(
        table["label"], f"{name}: column 'label'", "0 or 1", lambda x: (x == 0) | (x == 1)
    )
    reviews = table["review"].fillna("").str.strip()
    rows = {text: label == 1 for text, label in zip(reviews, labels, strict=True) if text}
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


def neighbours(words: Sequence[str], vectors: WordVectors, most: int = 3) -> dict[str, list[str]]:
    """Returns each word's nearest other words, nearest first; leaves out words without vector."""
    known = [word for word in dict.fromkeys(words) if word in vectors.rows]
    rows, names = [vectors.rows[word] for word in known], [*vectors.rows]
    index = NearestNeighbors(n_neighbors=most + 1, metric="cosine").fit(vectors.matrix)
    near = index.kneighbors(vectors.matrix[rows], return_distance=False)
    others = (
        [k for k in found if k != word][:most] for word, found in zip(rows, near, strict=True)
    )
    return {word: [names[k] for k in row] for word, row in zip(known, others, strict=True)}


def paraphrase(words: Sequence[str], near: dict[str, list[str]], rank: int) -> list[str]:
    """Replaces words by their neighbour of a rank, as PG1, PG2 and PG3 do for ranks 1, 2 and 3."""
    return [near[word][rank - 1] if len(word) > 1 and word in near else word for word in words]


def generate(reviews: Reviews, vectors: str) -> dict[str, list[list[str]]]:
    """Returns the words of all reviews as each generator writes them; ORIGINAL changes nothing."""
    near = neighbours([word for row in reviews.words for word in row], load_vectors(vectors))
    written = {ORIGINAL: reviews.words}
    for rank, name in enumerate(GENERATORS[1:], 1):
        written[name] = [paraphrase(row, near, rank) for row in reviews.words]
    return written


def score_reviews(written: dict[str, list[list[str]]], metrics: dict[str, Metric]) -> Scores:
    """Scores every generator's version of each review against the original."""
    texts = {name: ["".join(words) for words in rows] for name, rows in written.items()}
    return {
        name: {
            key: metric.sentence_scores(Pairs.of(texts[ORIGINAL], version))
            for key, metric in metrics.items()
        }
        for name, version in texts.items()
    }


def intrinsic(scores: Scores, rows: np.ndarray, samples: int) -> dict[str, dict[str, Any]]:
    """Returns each generator's mean score over some reviews, with its interval."""
    drawn = draw(np.arange(len(rows)), samples)
    return {
        name: {
            key: estimate_of([np.nanmean(values[rows][sample]) for sample in drawn])._asdict()
            for key, values in by_metric.items()
        }
        for name, by_metric in scores.items()
    }


def extrinsic(
    reviews: Reviews, written: dict[str, list[list[str]]], vectors: str, seeds: int
) -> dict[tuple[str, str], np.ndarray]:
    """Trains networks on the original reviews and classifies the test part with them.

    Returns, by generator and network, the probability of each review's own label, averaged over
    seeds, shape (reviews,).
    """
    part = [np.flatnonzero(reviews.part == k) for k in range(len(PARTS))]
    ids, matrix = vocabulary(chain.from_iterable(written.values()), load_vectors(vectors))
    numbers = {name: numbered(version, ids) for name, version in written.items()}
    learned, validation, _ = ((numbers[ORIGINAL][k], reviews.label[k]) for k in part)
    test, label = part[2], reviews.label[part[2]]
    read: dict[tuple[str, str], np.ndarray] = {}
    for network in NETWORKS:
        made = [train(network, matrix, learned, validation, seed) for seed in range(seeds)]
        for name in written:
            of_seeds = [of_label(one, numbers[name][test], label) for one in made]
            read[name, network] = np.mean(of_seeds, axis=0)
        say(f"{network}: accuracy {(read[ORIGINAL, network] > 0.5).mean():.3f}")
    return read


def by_review(
    scores: Scores, read: dict[tuple[str, str], np.ndarray], rows: np.ndarray, samples: int
) -> list[dict[str, Any]]:
    """Correlates a metric's score with the network's probability of the right label (Table 3).

    Returns Pearson and Spearman over the test reviews, with bootstrap intervals and two-sided p.
    """
    drawn = draw(np.arange(len(rows)), samples)
    found = []
    for (generator, network), probability in read.items():
        for name, values in scores[generator].items():
            row: dict[str, Any] = {"generator": generator, "network": network, "metric": name}
            of_samples = statistics_of(values[rows], probability, drawn, [*TESTS])
            for kind, test in TESTS.items():
                p = float(test(values[rows], probability).pvalue)
                row[kind] = estimate_of(of_samples[kind])._asdict() | {"p": p}
            found.append(row)
    return found
