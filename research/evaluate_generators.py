"""Evaluates paraphrase generators by PINC and WEEM4PG, and by sentiment classifiers.

  python research/evaluate_generators.py --reviews hotel_reviews.csv --vectors vectors.bin \\
      --output generators

The reviews are a table with columns label (0, 1) and review; the vectors are any word2vec file, as
gensim's ``Word2Vec(rows of words, sg=1).wv.save_word2vec_format`` writes. The generators PG1, PG2
and PG3 replace a word by its nearest, second and third nearest word in the vectors. Four networks
(MLP, CNN, GRU, LSTM) learn sentiment from the original reviews and classify the paraphrases of the
test part. The question is whether a metric predicts which paraphrases still show the sentiment: its
score of each is correlated, review by review, with the network's probability of the review's own
label (the paper's section 4.3, Table 3).

  OUTPUT/generators.md      scores and correlations with intervals; generators.json has the same

Source: Hailu, Yu & Fantaye 2020, *Intrinsic and Extrinsic Automatic Evaluation Strategies for
Paraphrase Generation Systems*. Decided here: the probability is used; the paper does not say
whether it uses that or the predicted label. Every word with a vector and at least two characters
is replaced; shorter words hold a Chinese sentence together.

Exit codes: 0 done, 2 something to fix (one line says what).
"""

import argparse
import copy
import sys
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import nn

from gaixie.research.comparison.compare import draw, statistic_of
from gaixie.research.ratings.tables import LABEL, numbers_of, read_table
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.metrics import Metric, Pairs, load_metric
from gaixie.udfs.metrics.bootstrap import Resamples, estimate_of, mean_of
from gaixie.udfs.metrics.grams import words
from gaixie.udfs.metrics.weem4pg import WordVectors, load_vectors
from gaixie.udfs.reports import write_report
from gaixie.udfs.text.splits import source_hash

TEMPLATE = Path(__file__).with_name("generators.md.j2")
ORIGINAL = "original"
GENERATORS = ("PG1", "PG2", "PG3")
NETWORKS = ("MLP", "CNN", "GRU", "LSTM")
PARTS = {"train": 0.7, "validation": 0.1, "test": 0.2}
"""Shares of the reviews; a hash of the text decides the part."""
Words = list[list[str]]
"""The words of each review."""
Scores = dict[str, dict[str, np.ndarray]]
"""Score of each review, by generator and metric."""
Probabilities = dict[tuple[str, str], np.ndarray]
"""Of each test review's own label, by generator and network."""
Part = tuple[np.ndarray, np.ndarray]
"""Word ids and labels of some reviews."""


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    parser = make_parser("evaluate_generators.py", __doc__)
    add = parser.add_argument
    add("--reviews", required=True, metavar="FILE", help="a table of labelled reviews")
    add("--vectors", required=True, metavar="PATH", help="word vectors: a file or a folder")
    add("--output", type=Path, required=True, metavar="FOLDER")
    add("--limit", type=int, default=0, metavar="N", help="reviews; 0 is all")
    add("--seeds", type=positive, default=3, metavar="N", help="trainings of each (%(default)s)")
    add("--samples", type=positive, default=1000, metavar="N", help="resamples (%(default)s)")
    return run_command("evaluate_generators", partial(evaluate, parser.parse_args(argv)))


def evaluate(args: argparse.Namespace) -> None:
    """Reads the reviews, paraphrases and scores them, trains the networks, writes the report."""
    reviews = read_reviews(args.reviews, args.limit)
    specs = {"pinc": "pinc:tokenize=char", "weem4pg": f"weem4pg:vectors={args.vectors}"}
    metrics = {name: load_metric(spec) for name, spec in specs.items()}
    vectors = load_vectors(args.vectors)
    written = generate(reviews, vectors)
    scores = score_reviews(written, metrics)
    train, _, test = (np.flatnonzero(reviews.part == k) for k in range(len(PARTS)))
    read = extrinsic(reviews, written, vectors, args.seeds)
    resamples = Resamples(range(len(train)), args.samples)
    result: dict[str, Any] = {
        "name": Path(args.reviews).name,
        "reviews": len(reviews.label),
        "parts": {name: int(np.sum(reviews.part == k)) for k, name in enumerate(PARTS)},
        "seeds": args.seeds,
        "accuracy": {n: float((read[ORIGINAL, n] > 0.5).mean()) for n in NETWORKS},
        "intrinsic": {
            name: {key: mean_of(of[train], resamples)._asdict() for key, of in own.items()}
            for name, own in scores.items()
        },
        "by_review": by_review(scores, read, test, args.samples),
        "signatures": {name: metric.signature() for name, metric in metrics.items()},
    }
    print(write_report(TEMPLATE, args.output, result))


class Reviews(NamedTuple):
    """words: in lower case. label: True for good. part: index into PARTS."""

    words: Words
    label: np.ndarray
    part: np.ndarray


def read_reviews(name: str, limit: int = 0) -> Reviews:
    """Reads the distinct reviews of a table with columns label (0, 1) and review.

    limit: how many to keep, chosen by a hash of the text; 0 keeps all. Raises OSError, or
    ValueError with one line if a label has no reviews or is neither 0 nor 1.
    """
    table = read_table(Path(name), ["label", "review"])
    labels = numbers_of(table["label"], f"{name}: column 'label'", *LABEL)
    reviews = table["review"].fillna("").str.strip()
    rows = {text: label == 1 for text, label in zip(reviews, labels, strict=True) if text}
    places = {text: source_hash(text, 0) / 2**64 for text in rows}
    texts = sorted(rows, key=lambda text: places[text])  # a limit takes equal shares of each part
    if limit and limit < len(texts):
        texts = [texts[int(k * len(texts) / limit)] for k in range(limit)]
    label = np.array([rows[text] for text in texts], bool)
    if not 0 < label.sum() < len(label):
        raise ValueError(f"{name}: {len(label)} reviews of one label, expected both")
    edges = np.cumsum([*PARTS.values()])[:-1]
    part = np.searchsorted(edges, [places[text] for text in texts], side="right")
    if len({*part.tolist()}) < len(PARTS):
        raise ValueError(f"{name}: {len(label)} reviews are too few for {', '.join(PARTS)}")
    return Reviews(words(texts, lower=True), label, part)


# Generators and metrics


def neighbours(words: Sequence[str], vectors: WordVectors, most: int = 3) -> dict[str, list[str]]:
    """Returns each word's nearest other words, nearest first; leaves out words without vector."""
    known = [word for word in dict.fromkeys(words) if word in vectors.rows]
    rows, names = [vectors.rows[word] for word in known], [*vectors.rows]
    index = NearestNeighbors(n_neighbors=most + 1, metric="cosine").fit(vectors.matrix)
    near = index.kneighbors(vectors.matrix[rows], return_distance=False)
    return {
        word: [names[k] for k in found if k != row][:most]
        for word, row, found in zip(known, rows, near, strict=True)
    }


def paraphrase(words: Sequence[str], near: dict[str, list[str]], rank: int) -> list[str]:
    """Replaces words by their neighbour of a rank, as PG1, PG2 and PG3 do for ranks 1, 2 and 3."""
    return [near[word][rank - 1] if len(word) > 1 and word in near else word for word in words]


def generate(reviews: Reviews, vectors: WordVectors) -> dict[str, Words]:
    """Returns the words of all reviews as each generator writes them; ORIGINAL changes nothing."""
    near = neighbours([*chain.from_iterable(reviews.words)], vectors)
    written = {ORIGINAL: reviews.words}
    for rank, name in enumerate(GENERATORS, 1):
        written[name] = [paraphrase(row, near, rank) for row in reviews.words]
    return written


def score_reviews(written: dict[str, Words], metrics: dict[str, Metric]) -> Scores:
    """Scores every generator's version of each review against the original."""
    texts = {name: ["".join(words) for words in rows] for name, rows in written.items()}
    return {
        name: {
            key: metric.sentence_scores(Pairs.of(texts[ORIGINAL], version))
            for key, metric in metrics.items()
        }
        for name, version in texts.items()
    }


def by_review(
    scores: Scores, read: Probabilities, rows: np.ndarray, samples: int
) -> list[dict[str, Any]]:
    """Correlates a metric's score with the network's probability of the right label (Table 3).

    Returns Spearman over the test reviews, with its bootstrap interval, for each generator.
    """
    drawn = draw(np.arange(len(rows)), samples)
    found = []
    for (generator, network), probability in read.items():
        for name, values in scores[generator].items() if generator != ORIGINAL else ():
            of_samples = statistic_of("spearman", values[rows], probability, drawn)
            row: dict[str, Any] = {"generator": generator, "network": network, "metric": name}
            found.append(row | {"spearman": estimate_of(of_samples)._asdict()})
    return found


# Four small networks that tell good reviews from bad ones. Each starts from the word vectors and
# trains them too; it has dropout before its last layer. Training stops after two epochs without a
# lower validation loss and keeps the best epoch.

WIDTH, FILTERS, KERNELS, RATE, BATCH = 64, 48, (3, 4, 5), 2e-3, 64
WORDS, EPOCHS = 80, 8
"""Words of a review that are read, and the maximum number of epochs."""
PADDING, UNKNOWN = 0, 1


def extrinsic(
    reviews: Reviews, written: dict[str, Words], vectors: WordVectors, seeds: int
) -> Probabilities:
    """Trains networks on the original reviews and classifies the test part with them.

    Returns, by generator and network, the probability of each review's own label, averaged over
    seeds, shape (reviews,).
    """
    known = {*chain.from_iterable(chain.from_iterable(written.values()))}
    names = sorted(known & vectors.rows.keys())
    ids = {name: number for number, name in enumerate(names, 2)}
    kept = vectors.matrix[[vectors.rows[name] for name in names]]
    matrix = np.vstack([np.zeros((2, vectors.matrix.shape[1])), kept]).astype(np.float32)
    numbers = {name: numbered(version, ids) for name, version in written.items()}
    learned, validation, _ = (
        (numbers[ORIGINAL][reviews.part == k], reviews.label[reviews.part == k])
        for k in range(len(PARTS))
    )
    on_test = reviews.part == len(PARTS) - 1
    read: Probabilities = {}
    for network in NETWORKS:
        made = [train(network, matrix, learned, validation, seed) for seed in range(seeds)]
        for name in written:
            test = numbers[name][on_test], reviews.label[on_test]
            read[name, network] = np.mean([of_label(one, *test) for one in made], axis=0)
        say(f"{network}: accuracy {(read[ORIGINAL, network] > 0.5).mean():.3f}")
    return read


def numbered(rows: Words, ids: dict[str, int]) -> np.ndarray:
    """Returns the ids of each review's first words, padded: int64, shape (reviews, WORDS)."""
    cut = [[ids.get(word, UNKNOWN) for word in row[:WORDS]] for row in rows]
    return np.array([own + [PADDING] * (WORDS - len(own)) for own in cut])


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


def train(name: str, matrix: np.ndarray, learned: Part, validation: Part, seed: int) -> Classifier:
    """Trains a network on the part ``learned``; ``validation`` decides when to stop."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network = Classifier(name, matrix)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    ids, label = (torch.from_numpy(part) for part in learned)
    best, waited = (float("inf"), copy.deepcopy(network.state_dict())), 0
    for _ in range(EPOCHS):
        network.train()
        for rows in torch.from_numpy(rng.permutation(len(ids))).split(BATCH):
            loss = nn.functional.binary_cross_entropy_with_logits(
                network(ids[rows]), label[rows].float()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        value = float(-np.log(np.clip(of_label(network, *validation), 1e-7, 1 - 1e-7)).mean())
        if value < best[0]:
            best, waited = (value, copy.deepcopy(network.state_dict())), 0
        elif (waited := waited + 1) > 1:
            break
    network.load_state_dict(best[1])
    return network


@torch.inference_mode()
def of_label(network: Classifier, ids: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Returns the network's probability of each review's own label: float64, shape (reviews,)."""
    network.eval()
    blocks = [torch.sigmoid(network(block)) for block in torch.from_numpy(ids).split(512)]
    good = torch.cat(blocks).numpy().astype(np.float64)
    return np.where(label, good, 1 - good)


if __name__ == "__main__":
    sys.exit(main())
