"""Reads labelled pairs, splits them by source, and scores what a classifier says of them.

Thresholds are chosen on other pairs than those that are reported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field
from sklearn.metrics import accuracy_score, roc_auc_score

from gaixie.research.comparison.datasets import DataSet, read_data_set
from gaixie.research.ratings.tables import source_share
from gaixie.udfs.metrics.bootstrap import bootstrap_interval
from gaixie.udfs.storage.settings import Strict

HELD_OUT, TEST = 0.15, 0.2
"""Shares of the sources: to choose thresholds; to test on, if a set has no test file."""


class PairSet(DataSet):
    """A set of labelled pairs. ``path`` is all of it, or the training part beside ``test``."""

    test: str | None = None
    positive: float = 1.0
    """Human score from which a pair counts as a paraphrase: of six crowd judgements, 4 (MultiPIT,
    section 3.1)."""
    tie: float | None = None
    """Human score of pairs that are left out, such as 3 of six judgements."""


class Config(Strict):
    """conf/identification.yaml."""

    sets: list[PairSet] = Field(min_length=1)


class Labelled(NamedTuple):
    """Pairs and their labels. label: float64, 1 for a paraphrase, 0 otherwise, or in between."""

    source: np.ndarray
    paraphrase: np.ndarray
    label: np.ndarray

    def take(self, rows: np.ndarray) -> Labelled:
        return Labelled(self.source[rows], self.paraphrase[rows], self.label[rows])

    def __len__(self) -> int:
        """Returns the number of pairs, not of columns."""
        return len(self.label)


class Parts(NamedTuple):
    """Pairs to train on, to choose thresholds on, and to report; they share no source."""

    train: Labelled
    held_out: Labelled
    test: Labelled


def read_parts(pairs: PairSet, folder: Path, limit: int = 0) -> Parts:
    """Reads the parts of a set. limit: training pairs, held-out ones included; 0 is all.

    Raises FileNotFoundError, or ValueError that names the file, if a part cannot be read or has
    only one class.
    """
    whole = read_pairs(pairs, folder)
    if pairs.test:
        test = read_pairs(pairs.model_copy(update={"path": pairs.test}), folder)
        whole = whole.take(np.flatnonzero(~np.isin(whole.source, test.source)))
    else:
        on_test = share(whole, "test") < TEST
        whole, test = whole.take(np.flatnonzero(~on_test)), whole.take(np.flatnonzero(on_test))
    whole = whole.take(np.argsort(share(whole, "limit"), kind="stable")[: limit or None])
    out = share(whole, "held-out") < HELD_OUT
    parts = Parts(whole.take(np.flatnonzero(~out)), whole.take(np.flatnonzero(out)), test)
    for name, part in zip(Parts._fields, parts, strict=True):
        if len({*(part.label >= 0.5)}) < 2:
            raise ValueError(
                f"{folder / pairs.path}: {len(part)} {name} pairs, expected some of both classes"
            )
    return parts


def read_pairs(pairs: PairSet, folder: Path) -> Labelled:
    """Reads all pairs of a file except ties. Raises FileNotFoundError or ValueError."""
    table = read_data_set(pairs, folder)
    table = table[table["human"] != pairs.tie] if pairs.tie is not None else table
    label = (table["human"].to_numpy(float) >= pairs.positive).astype(float)
    return Labelled(table["source"].to_numpy(object), table["paraphrase"].to_numpy(object), label)


def share(pairs: Labelled, salt: str) -> np.ndarray:
    """Returns a hash in [0, 1) for each pair, equal for pairs of one source."""
    return source_share(pairs.source, salt)


def best_threshold(label: np.ndarray, probability: np.ndarray) -> float:
    """Returns the threshold with the highest F1, midway between two probabilities; the lowest of
    equals."""
    values = np.unique(probability)
    middles = np.concatenate([values[:1] - 1e-6, (values[1:] + values[:-1]) / 2])
    return float(
        max(middles, key=lambda threshold: (f1(label, probability > threshold), -threshold))
    )


def f1(label: np.ndarray, said: np.ndarray) -> float:
    """Returns F1 of the class of paraphrases; 0 without a true positive."""
    both = float(np.sum(said * label))
    return 2 * both / (said.sum() + label.sum()) if both else 0.0


def crossed(pairs: Labelled, probability: np.ndarray) -> np.ndarray:
    """Classifies each half of the sources by the other's best threshold: bool, shape (rows,)."""
    label = pairs.label >= 0.5
    first = source_share(pairs.source, "halves") < 0.5
    said = np.zeros(len(label), bool)
    for own, other in ((first, ~first), (~first, first)):
        if own.any() and other.any():
            said[own] = probability[own] > best_threshold(label[other], probability[other])
    return said


def auc(label: np.ndarray, probability: np.ndarray) -> float:
    """Returns the area under the ROC curve; NaN if a class is missing."""
    return float(roc_auc_score(label, probability)) if 0 < label.sum() < len(label) else np.nan


def figures(pairs: Labelled, said: np.ndarray, samples: int, seed: int) -> dict[str, Any]:
    """Returns F1 and accuracy with 95 % intervals, by bootstrap over sources."""
    label = pairs.label >= 0.5
    found: dict[str, Any] = {"pairs": len(label), "paraphrases": int(label.sum())}
    for name, of in (("f1", f1), ("accuracy", accuracy_score)):
        low, high = bootstrap_interval(of, (label, said), pairs.source.astype(str), samples, seed)
        found[name] = {"score": float(of(label, said)), "low": low, "high": high}
    return found


def report(
    held_out: tuple[Labelled, np.ndarray],
    test: tuple[Labelled, np.ndarray],
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Returns test figures at thresholds: 0.5, the held-out part's best, the other half's."""
    pairs, probability = test
    label = pairs.label >= 0.5
    threshold = best_threshold(held_out[0].label >= 0.5, held_out[1])
    sources = pairs.source.astype(str)
    low, high = bootstrap_interval(auc, (label, probability), sources, samples, seed)
    return {
        "threshold": threshold,
        "held_out_auc": auc(held_out[0].label >= 0.5, held_out[1]),
        "auc": {"score": auc(label, probability), "low": low, "high": high},
        "half": figures(pairs, probability > 0.5, samples, seed),
        "held_out": figures(pairs, probability > threshold, samples, seed),
        "crossed": figures(pairs, crossed(pairs, probability), samples, seed),
    }
