"""Computes F1 and accuracy, with thresholds that are chosen on other pairs than the reported."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, roc_auc_score

from gaixie.research.identification.data import Labelled
from gaixie.research.ratings.tables import source_share
from gaixie.udfs.metrics.bootstrap import bootstrap_interval


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
    """Returns test figures at threshold 0.5, at the held-out part's best, and at the other half's.

    on_held_out: figures of the held-out part, at its own best threshold.
    """
    pairs, probability = test
    label = pairs.label >= 0.5
    threshold = best_threshold(held_out[0].label >= 0.5, held_out[1])
    sources = pairs.source.astype(str)
    low, high = bootstrap_interval(auc, (label, probability), sources, samples, seed)
    return {
        "threshold": threshold,
        "held_out_auc": auc(held_out[0].label >= 0.5, held_out[1]),
        "auc": {"score": auc(label, probability), "low": low, "high": high},
        "on_held_out": figures(held_out[0], held_out[1] > threshold, samples, seed),
        "half": figures(pairs, probability > 0.5, samples, seed),
        "held_out": figures(pairs, probability > threshold, samples, seed),
        "crossed": figures(pairs, crossed(pairs, probability), samples, seed),
    }
