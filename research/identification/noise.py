"""Trains on noisy labels: a teacher trained on clean labels removes or flips doubtful ones.

Source: Dou, Jiang & Xu 2022 (MultiPIT), section 3.2, "filter and flip": where the teacher's
P(label) ≤ λ, the pair is left out (filter) or gets the other label (flip). The paper tries λ from
0.05 to 0.45; its best are 0.35 for filtering and 0.25 for flipping. Decided here: filtering and
flipping are each tried for every λ. A student starts from the teacher's weights and learns from
the noisy and the clean pairs together. F1 on the held-out part chooses among all students and the
teacher itself. The report has test figures for all of them, but these have no influence on the
choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gaixie.research.identification.data import Labelled
from gaixie.research.identification.train import Recipe, fit
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics.identification import Identifier

MODES = ("keep", "filter", "flip")
LIMITS = (0.05, 0.15, 0.25, 0.35, 0.45)
"""Values of λ: the paper's range, with its best ones."""
BINS = 10
"""Bins of the histogram of P(label); a teacher that learned nothing has all pairs in one bin."""


def of_label(noisy: Labelled, probability: np.ndarray) -> np.ndarray:
    """Returns P(label) from the teacher's P(paraphrase), both of shape (pairs,)."""
    return np.where(noisy.label >= 0.5, probability, 1 - probability)


def cleaned(noisy: Labelled, probability: np.ndarray, mode: str, limit: float) -> Labelled:
    """Returns the noisy pairs that remain, with their new labels.

    probability: the teacher's P(paraphrase). mode: one of MODES. limit: λ; a label is doubtful if
    P(label) ≤ λ.
    """
    doubted = of_label(noisy, probability) <= limit
    if mode == "filter":
        return noisy.take(np.flatnonzero(~doubted))
    turned = doubted & (mode == "flip")
    return Labelled(noisy.source, noisy.paraphrase, np.where(turned, 1 - noisy.label, noisy.label))


def learn_from_noise(
    teacher: tuple[Identifier, str],
    clean: Labelled,
    noisy: Labelled,
    limits: Sequence[float],
    recipe: Recipe,
    folder: Path,
    judged: Callable[[Identifier], dict[str, Any]],
) -> tuple[Identifier, dict[str, Any]]:
    """Returns the best of teacher and students on the held-out part, and the figures of all.

    teacher: the model and its folder. limits: values of λ. recipe: for the students. judged:
    returns a model's figures, as scores.report does.
    """
    said = teacher[0].probabilities(noisy.source.tolist(), noisy.paraphrase.tolist())
    histogram = np.histogram(of_label(noisy, said), bins=BINS, range=(0, 1))[0].tolist()
    say(f"P(label) of the teacher, pairs by tenths: {', '.join(map(str, histogram))}")
    rows = [{"mode": "none", "lambda": None, "pairs": 0, "flipped": 0, **judged(teacher[0])}]
    students = [teacher[0]]
    tried = [("keep", -1.0), *((mode, limit) for mode in MODES[1:] for limit in limits)]
    for mode, limit in tried:
        kept = cleaned(noisy, said, mode, limit)
        name = mode if mode == "keep" else f"{mode}-{limit:g}"
        say(f"noisy labels, {name}: {len(kept):,} of {len(noisy):,} pairs")
        student = fit(teacher[1], clean.join(kept), recipe, folder / name)
        turned = int(np.sum(kept.label != noisy.label)) if mode == "flip" else 0
        limit_or_none = None if mode == "keep" else limit
        row = {"mode": mode, "lambda": limit_or_none, "pairs": len(kept), "flipped": turned}
        rows.append(row | judged(student))
        students.append(student)
    best = int(np.argmax([row["on_held_out"]["f1"]["score"] for row in rows]))
    found = {"noisy": len(noisy), "histogram": histogram, "tried": rows, "chosen": best}
    return students[best], found
