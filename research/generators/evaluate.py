"""Evaluates generators: metrics score their paraphrases, and networks classify them.

As in the paper (section 4.3, Table 3), a network learns from the original reviews and reads the
paraphrases of the test part. The metric's score of each paraphrase is then correlated, review by
review, with the network's probability of the review's own label.

Source: Hailu, Yu & Fantaye 2020, *Intrinsic and Extrinsic Automatic Evaluation Strategies for
Paraphrase Generation Systems*. Decided here: the probability is used; the paper does not say
whether it uses that or the predicted label.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from gaixie.research.comparison.agreement import draw, statistics_of
from gaixie.research.generators.classifiers import (
    numbered,
    of_label,
    train,
    vocabulary,
)
from gaixie.research.generators.reviews import PARTS, Reviews, neighbours, paraphrase
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics import Metric, Pairs
from gaixie.udfs.metrics.bootstrap import estimate_of
from gaixie.udfs.metrics.word_vectors import load

ORIGINAL = "original"
GENERATORS = (ORIGINAL, "PG1", "PG2", "PG3")
Scores = dict[str, dict[str, np.ndarray]]
"""Score of each review, by generator and metric."""
TESTS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}


def generate(reviews: Reviews, vectors: str) -> dict[str, list[list[str]]]:
    """Returns the words of all reviews as each generator writes them; ORIGINAL changes nothing."""
    near = neighbours([word for row in reviews.words for word in row], load(vectors))
    written = {ORIGINAL: reviews.words}
    for rank, name in enumerate(GENERATORS[1:], 1):
        written[name] = [paraphrase(row, near, rank) for row in reviews.words]
    return written


def score_reviews(written: dict[str, list[list[str]]], metrics: dict[str, Metric]) -> Scores:
    """Scores every generator's version of each review against the original."""
    texts = {name: ["".join(words) for words in rows] for name, rows in written.items()}
    return {
        name: {
            key: metric.sentence_scores(Pairs.of(texts[ORIGINAL], own))
            for key, metric in metrics.items()
        }
        for name, own in texts.items()
    }


def intrinsic(scores: Scores, rows: np.ndarray, samples: int) -> dict[str, dict[str, Any]]:
    """Returns each generator's mean score over some reviews, with its interval."""
    drawn = draw(np.arange(len(rows)), samples)
    return {
        name: {
            key: estimate_of([np.nanmean(values[rows][sample]) for sample in drawn])._asdict()
            for key, values in own.items()
        }
        for name, own in scores.items()
    }


def extrinsic(
    reviews: Reviews,
    written: dict[str, list[list[str]]],
    vectors: str,
    seeds: int,
    folder: Path,
    networks: Sequence[str],
) -> dict[tuple[str, str], np.ndarray]:
    """Trains networks on the original reviews and classifies the test part with them.

    Returns, by generator and network, the probability of each review's own label, averaged over
    seeds, shape (reviews,). Each training leaves a file in the folder, and is not repeated.
    """
    part = [np.flatnonzero(reviews.part == k) for k in range(len(PARTS))]
    rows = [row for own in written.values() for row in own]
    ids, matrix = vocabulary(rows, load(vectors))
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {name: numbered(own, ids) for name, own in written.items()}
    learned, validation, _ = ((numbers[ORIGINAL][k], reviews.label[k]) for k in part)
    test, label = part[2], reviews.label[part[2]]
    read: dict[tuple[str, str], np.ndarray] = {}
    for network in networks:
        files = [folder / f"{network}-{seed}.npy" for seed in range(seeds)]
        for seed, file in enumerate(files):
            if not file.is_file():
                made = train(network, matrix, learned, validation, seed)
                np.save(file, [of_label(made, numbers[name][test], label) for name in written])
        mean = np.mean([np.load(file) for file in files], axis=0)
        read |= {(name, network): mean[k] for k, name in enumerate(written)}
        say(f"{network}: accuracy {(mean[0] > 0.5).mean():.3f}")
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
