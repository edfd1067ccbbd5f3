"""Intrinsic scores of generators, what networks make of their paraphrases, and how both agree.

Two ways to ask a network. As in the paper (section 4.3, Table 3): it learns from the reviews as
people wrote them and reads the paraphrases of the test part; the metric's score of each paraphrase
is correlated, review by review, with the probability that the network gives the review's own label.
Decided here, "what is learned": it learns from a generator's paraphrases and reads the test part as
people wrote it; a generator's mean score is compared with the accuracy.

Source: Hailu, Yu & Fantaye 2020, *Intrinsic and Extrinsic Automatic Evaluation Strategies for
Paraphrase Generation Systems*. Decided here: the probability, where the paper does not say whether
it takes that or the label.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from gaixie.research.comparison.agreement import draw, pearson, spearman
from gaixie.research.generators.classifiers import (
    NETWORKS,
    Sizes,
    numbered,
    of_label,
    train,
    vocabulary,
)
from gaixie.research.generators.reviews import PARTS, Reviews, neighbours, paraphrase
from gaixie.udfs.command_line import Clock, OutOfTime, say
from gaixie.udfs.metrics import Metric, Pairs, load_metric
from gaixie.udfs.metrics.bootstrap import Estimate, estimate_of, resamples
from gaixie.udfs.metrics.word_vectors import load

ORIGINAL = "original"
GENERATORS = (ORIGINAL, "PG1", "PG2", "PG3")
INTRINSIC = ("pinc", "weem4pg")
Scores = dict[str, dict[str, np.ndarray]]
"""generator -> metric -> score of each review."""


def generate(reviews: Reviews, vectors: str) -> dict[str, list[list[str]]]:
    """The words of all reviews as each generator writes them; the first leaves them as they are."""
    near = neighbours([word for row in reviews.words for word in row], load(vectors))
    written = {ORIGINAL: reviews.words}
    for rank, name in enumerate(GENERATORS[1:], 1):
        written[name] = [paraphrase(row, near, rank) for row in reviews.words]
    return written


def load_metrics(vectors: str) -> dict[str, Metric]:
    """PINC and WEEM4PG."""
    specs = "pinc:tokenize=char", f"weem4pg:vectors={vectors}"
    return dict(zip(INTRINSIC, map(load_metric, specs), strict=True))


def score_reviews(written: dict[str, list[list[str]]], metrics: dict[str, Metric]) -> Scores:
    """Scores of every review as each generator writes it, beside the original."""
    texts = {name: ["".join(words) for words in rows] for name, rows in written.items()}
    return {
        name: {
            key: metric.sentence_scores(Pairs.of(texts[ORIGINAL], own))
            for key, metric in metrics.items()
        }
        for name, own in texts.items()
    }


def intrinsic(scores: Scores, rows: np.ndarray, samples: int) -> dict[str, dict[str, Any]]:
    """Mean score of each generator over some reviews, with its interval."""
    drawn = [np.arange(len(rows)), *resamples(len(rows), samples)]
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
    clock: Clock,
    sizes: Sizes,
    networks: Sequence[str] = (*NETWORKS,),
    learned_from: Sequence[str] = GENERATORS,
) -> tuple[dict[tuple[str, str], np.ndarray], dict[tuple[str, str], np.ndarray]]:
    """What networks say of the test part, by generator and network.

    First, of networks that learned from the generator's paraphrases and stopped by those of the
    validation part: whether each review as people wrote it is told right, bool, shape (seeds,
    reviews). Then, of networks that learned from the originals: the probability of the review's own
    label, read in the generator's paraphrase, the mean over seeds, shape (reviews,). Each training
    leaves a file in the folder, which is not made again. learned_from: the generators that networks
    learn from, the original first. Raises OutOfTime.
    """
    part = [np.flatnonzero(reviews.part == k) for k in range(len(PARTS))]
    rows = [row for own in written.values() for row in own]
    ids, matrix = vocabulary(rows, load(vectors), sizes.vocabulary)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {name: numbered(own, ids, sizes.words) for name, own in written.items()}
    label = reviews.label
    right: dict[tuple[str, str], np.ndarray] = {}
    read: dict[tuple[str, str], np.ndarray] = {}
    for generator in learned_from:
        own = numbers[generator]
        tests = written if generator == ORIGINAL else (ORIGINAL,)
        learned, validation = ((own[k], label[k]) for k in part[:2])
        for network in networks:
            said, started = [], time.process_time()
            for seed in range(seeds):
                file = folder / f"{generator}-{network}-{seed}.npy"
                if not file.is_file():
                    if clock.is_up():
                        raise OutOfTime(f"{generator}, {network}, seed {seed} is next")
                    made = train(network, matrix, learned, validation, seed, sizes)
                    test = part[2]
                    np.save(
                        file, [of_label(made, numbers[name][test], label[test]) for name in tests]
                    )
                said.append(np.load(file))
            stacked = np.stack(said)  # seeds, tests, reviews
            right[generator, network] = stacked[:, 0] > 0.5
            read |= {
                (name, network): stacked[:, k].mean(axis=0) for k, name in enumerate(tests) if k
            }
            spent = f"{time.process_time() - started:.0f} s of processor"
            accuracy = right[generator, network].mean()
            say(f"{generator}, {network}: accuracy {accuracy:.3f}, {spent}")
    return right, read


def by_review(
    scores: Scores, read: dict[tuple[str, str], np.ndarray], rows: np.ndarray, samples: int
) -> list[dict[str, Any]]:
    """Correlation of a metric's score with what the network makes of the paraphrase (Table 3).

    Pearson and Spearman over the test reviews, with intervals by bootstrap and two-sided p.
    """
    times = draw(np.arange(len(rows)), samples)
    found = []
    for (generator, network), probability in read.items():
        for name, values in scores[generator].items():
            row: dict[str, Any] = {"generator": generator, "network": network, "metric": name}
            for kind, of, test in (
                ("pearson", pearson, stats.pearsonr),
                ("spearman", spearman, stats.spearmanr),
            ):
                estimate = estimate_of(of(values[rows], probability, times))
                p = float(test(values[rows], probability).pvalue)
                row[kind] = estimate._asdict() | {"p": p}
            found.append(row)
    return found


def agreement(
    scores: dict[str, Any], right: dict[tuple[str, str], np.ndarray], samples: int, seed: int = 0
) -> dict[str, Any]:
    """Accuracies, and the correlation of each intrinsic score with them over the three generators.

    Pearson's, by network, and the mean over networks, with intervals by bootstrap over test
    reviews; nothing where an accuracy is the same for all generators.
    """
    tests, networks = next(iter(right.values())).shape[1], dict.fromkeys(n for _, n in right)
    drawn = [np.arange(tests), *resamples(tests, samples, seed)]
    mean = {key: values.mean(axis=0) for key, values in right.items()}  # over seeds
    accuracy = {
        key: np.array([values[rows].mean() for rows in drawn]) for key, values in mean.items()
    }
    table = {
        generator: {n: _named(estimate_of(accuracy[generator, n])) for n in networks}
        for generator in GENERATORS
    }
    correlation: dict[str, Any] = {}
    for name in INTRINSIC:
        own = np.array([scores[generator][name]["score"] for generator in GENERATORS[1:]])
        rows = {}
        for network in networks:
            points = np.stack(
                [accuracy[generator, network] for generator in GENERATORS[1:]], axis=1
            )
            rows[network] = pearson(own, points, np.ones(points.shape))
        found = np.ma.masked_invalid(np.stack([*rows.values()])).mean(axis=0)
        rows["mean"] = np.ma.filled(found.astype(float), np.nan)
        correlation[name] = {key: _named(estimate_of(values)) for key, values in rows.items()}
    return {"accuracy": table, "correlation": correlation}


def _named(estimate: Estimate) -> dict[str, float]:
    return estimate._asdict()
