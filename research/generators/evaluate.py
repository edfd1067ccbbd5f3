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

import copy
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from scipy import stats
from sklearn.neighbors import NearestNeighbors
from torch import nn

from gaixie.research.comparison.compare import draw, statistics_of
from gaixie.research.ratings.tables import numbers_of, read_table
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics import Metric, Pairs
from gaixie.udfs.metrics.bootstrap import estimate_of
from gaixie.udfs.metrics.grams import words
from gaixie.udfs.metrics.weem4pg import WordVectors, load_vectors
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
    cut = words(pa.array(texts, pa.string()), lower=True)
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


# Four small networks that tell good reviews from bad ones. Each starts from the word vectors and
# trains them too; it has dropout before its last layer. Training stops after two epochs without a
# lower validation loss and keeps the best epoch.

WIDTH, FILTERS, KERNELS, RATE, BATCH = 64, 48, (3, 4, 5), 2e-3, 64
WORDS, EPOCHS = 80, 8
"""Words of a review that are read, and the maximum number of epochs."""
PADDING, UNKNOWN = 0, 1


NETWORKS = ("MLP", "CNN", "GRU", "LSTM")


class Classifier(nn.Module):
    """Maps word ids, (reviews, words), to logits of a good review, (reviews,).

    MLP averages the words and applies one hidden layer; CNN applies convolutions of three widths
    and takes each filter's maximum (Kim 2014); GRU and LSTM take each state's maximum.
    """

    def __init__(self, name: str, matrix: np.ndarray):
        super().__init__()
        given, self.name = torch.from_numpy(matrix.copy()), name
        self.words = nn.Embedding.from_pretrained(given, freeze=False, padding_idx=PADDING)
        width, size = matrix.shape[1], WIDTH
        if name == "MLP":
            self.body: nn.Module = nn.Sequential(nn.Linear(width, WIDTH), nn.ReLU())
        elif name == "CNN":
            filters = (nn.Conv1d(width, FILTERS, k, padding=k // 2) for k in KERNELS)
            self.body, size = nn.ModuleList(filters), FILTERS * len(KERNELS)
        else:
            self.body = getattr(nn, name)(width, WIDTH, batch_first=True)
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(size, 1))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        ids = ids[:, : max(1, int((ids != PADDING).any(0).sum()))]
        mask = (ids != PADDING).float().unsqueeze(2)
        words, body = self.words(ids), self.body
        if self.name == "MLP":
            found = body((words * mask).sum(1) / mask.sum(1).clamp(min=1))
        elif isinstance(body, nn.ModuleList):
            turned = (words * mask).transpose(1, 2)
            found = torch.cat([torch.relu(layer(turned)).amax(2) for layer in body], dim=1)
        else:
            found = body(words)[0].masked_fill(mask == 0, -1.0).amax(1)
        return self.head(found)[:, 0]


def vocabulary(
    rows: Iterable[Sequence[str]], vectors: WordVectors
) -> tuple[dict[str, int], np.ndarray]:
    """Returns ids, from 2, of words with a vector, and the matrix: float32, (words + 2, width)."""
    words = sorted({word for word in chain.from_iterable(rows) if word in vectors.rows})
    kept = vectors.matrix[[vectors.rows[word] for word in words]]
    matrix = np.vstack([np.zeros((2, vectors.matrix.shape[1])), kept]).astype(np.float32)
    return {word: 2 + k for k, word in enumerate(words)}, matrix


def numbered(rows: Sequence[Sequence[str]], ids: dict[str, int]) -> np.ndarray:
    """Returns the ids of each review's first words, padded: int64, shape (reviews, WORDS)."""
    table = np.full((len(rows), WORDS), PADDING)
    for number, row in enumerate(rows):
        cut = [ids.get(word, UNKNOWN) for word in row[:WORDS]]
        table[number, : len(cut)] = cut
    return table


Part = tuple[np.ndarray, np.ndarray]
"""Word ids and labels of some reviews."""


def train(name: str, matrix: np.ndarray, learned: Part, validation: Part, seed: int) -> Classifier:
    """Trains a network on the part ``learned``; ``validation`` decides when to stop."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network = Classifier(name, matrix)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    ids, label = learned
    best, waited = (float("inf"), copy.deepcopy(network.state_dict())), 0
    for _ in range(EPOCHS):
        network.train()
        order = rng.permutation(len(ids))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            logits = network(torch.from_numpy(ids[rows]))
            target = torch.from_numpy(label[rows].astype(np.float32))
            loss = nn.functional.binary_cross_entropy_with_logits(logits, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        right = np.clip(of_label(network, *validation), 1e-7, 1 - 1e-7)
        value = float(-np.log(right).mean())
        if value < best[0]:
            best, waited = (value, copy.deepcopy(network.state_dict())), 0
        elif (waited := waited + 1) > 1:
            break
    network.load_state_dict(best[1])
    return network


def of_label(network: Classifier, ids: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Returns the network's probability of each review's own label: float64, shape (reviews,)."""
    network.eval()
    with torch.inference_mode():
        blocks = [
            torch.sigmoid(network(torch.from_numpy(ids[k : k + 512]))).numpy()
            for k in range(0, len(ids), 512)
        ]
    good = np.concatenate(blocks).astype(np.float64)
    return np.where(label, good, 1 - good)
