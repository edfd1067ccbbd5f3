"""Intrinsic scores of generators, the accuracy of what learns from their paraphrases, and how both agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gaixie.research.generators.classifiers import NETWORKS, numbered, train, vocabulary
from gaixie.research.generators.reviews import PARTS, Reviews, neighbours, paraphrase
from gaixie.udfs.command_line import Clock, OutOfTime, say
from gaixie.udfs.metrics import Pairs, bootstrap, load_metric
from gaixie.udfs.metrics.references import Resamples, estimate
from gaixie.udfs.metrics.word_vectors import load

ORIGINAL = "original"
GENERATORS = (ORIGINAL, "PG1", "PG2", "PG3")
INTRINSIC = ("pinc", "weem4pg")


def generate(reviews: Reviews, vectors: str) -> dict[str, list[list[str]]]:
    """The words of all reviews as each generator writes them; the first leaves them as they are."""
    near = neighbours([word for row in reviews.words for word in row], load(vectors))
    written = {ORIGINAL: reviews.words}
    for rank, name in enumerate(GENERATORS[1:], 1):
        written[name] = [paraphrase(row, near, rank) for row in reviews.words]
    return written


def intrinsic(
    reviews: Reviews, written: dict[str, list[list[str]]], vectors: str, samples: int
) -> dict[str, Any]:
    """Means of PINC and WEEM4PG of each generator over the reviews that are trained on, with intervals."""
    rows = np.flatnonzero(reviews.part == 0)
    columns = {
        name: pa.array(["".join(texts[k]) for k in rows], pa.string())
        for name, texts in written.items()
    }
    metrics = {
        "pinc": load_metric("pinc:tokenize=char"),
        "weem4pg": load_metric(f"weem4pg:vectors={vectors}"),
    }
    resamples = Resamples(range(len(rows)), samples)
    scores = {
        name: {
            key: estimate(metric, [Pairs(columns[ORIGINAL], own)], resamples)._asdict()
            for key, metric in metrics.items()
        }
        for name, own in columns.items()
    }
    return {"scores": scores, "signatures": {k: m.signature() for k, m in metrics.items()}}


def extrinsic(
    reviews: Reviews,
    written: dict[str, list[list[str]]],
    vectors: str,
    seeds: int,
    folder: Path,
    clock: Clock,
) -> dict[tuple[str, str], np.ndarray]:
    """(generator, network) -> whether each test review is told right: bool, shape (seeds, test reviews).

    Networks learn from the generator's paraphrases of the training part, stop by those of the validation
    part, and are tested on reviews as people wrote them. Each training leaves a file in the folder, which is
    not made again. Raises OutOfTime.
    """
    part = [np.flatnonzero(reviews.part == k) for k in range(len(PARTS))]
    ids, matrix = vocabulary([row for rows in written.values() for row in rows], load(vectors))
    folder.mkdir(parents=True, exist_ok=True)
    right: dict[tuple[str, str], np.ndarray] = {}
    for generator, rows in written.items():
        own = numbered(rows, ids)
        texts = (own, own, numbered(reviews.words, ids))
        parts = {
            name: (text[kept], reviews.label[kept])
            for name, text, kept in zip(PARTS, texts, part, strict=True)
        }
        for network in NETWORKS:
            said = []
            for seed in range(seeds):
                file = folder / f"{generator}-{network}-{seed}.npy"
                if not file.is_file():
                    if clock.is_up():
                        raise OutOfTime(f"{generator}, {network}, seed {seed} is next")
                    np.save(file, train(network, matrix, parts, seed))
                said.append((np.load(file) > 0.5) == parts["test"][1])
            right[generator, network] = np.stack(said)
            say(f"{generator}, {network}: accuracy {right[generator, network].mean():.3f}")
    return right


def agreement(
    scores: dict[str, Any], right: dict[tuple[str, str], np.ndarray], samples: int, seed: int = 0
) -> dict[str, Any]:
    """Accuracies, and the correlation of each intrinsic score with them over the three generators.

    Pearson's, by network, and the mean over networks, with intervals by bootstrap over test reviews; nothing
    where an accuracy is the same for all generators.
    """
    from scipy.stats import pearsonr

    tests = next(iter(right.values())).shape[1]
    drawn = [np.arange(tests), *bootstrap.resamples(tests, samples, seed)]
    mean = {key: values.mean(axis=0) for key, values in right.items()}  # over seeds
    accuracy = {
        key: np.array([values[rows].mean() for rows in drawn]) for key, values in mean.items()
    }
    table = {
        generator: {n: _with_interval(accuracy[generator, n]) for n in NETWORKS}
        for generator in GENERATORS
    }
    correlation: dict[str, Any] = {}
    for name in INTRINSIC:
        own = [scores[generator][name]["score"] for generator in GENERATORS[1:]]
        rows = {}
        for network in NETWORKS:
            points = np.stack([accuracy[generator, network] for generator in GENERATORS[1:]])
            rows[network] = np.array(
                [pearsonr(own, p)[0] if np.ptp(p) and np.ptp(own) else np.nan for p in points.T]
            )
        stacked = np.stack([*rows.values()])
        rows["mean"] = np.where(np.isnan(stacked).all(0), np.nan, _mean(stacked))
        correlation[name] = {network: _with_interval(values) for network, values in rows.items()}
    return {"accuracy": table, "correlation": correlation}


def _mean(stacked: np.ndarray) -> np.ndarray:
    there = ~np.isnan(stacked)
    return np.where(there, stacked, 0).sum(0) / np.maximum(there.sum(0), 1)


def _with_interval(values: np.ndarray) -> dict[str, float]:
    low, high = bootstrap.interval(values[1:])
    return {"score": float(values[0]), "low": low, "high": high}
