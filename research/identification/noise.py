"""Training on noisy labels: a teacher trained on clean ones leaves them out, or turns them round.

Source: Dou, Jiang & Xu 2022 (MultiPIT), section 3.2, "filter and flip": a pair with P(label) ≤ λ,
of the teacher, is left out (filter) or gets the other label (flip). The paper tries λ from 0.05 to
0.45; its best are 0.35 for filtering and 0.25 for flipping. Decided here: each is tried by itself,
for every λ; the student begins with the teacher's weights and learns from the noisy pairs together
with the clean ones; F1 of the held-out part decides, with the teacher without a student among the
choices, so that what is reported has no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gaixie.research.identification.data import Labelled, Parts
from gaixie.research.identification.scores import best_threshold, f1
from gaixie.research.identification.train import Recipe, fit
from gaixie.udfs.command_line import Clock, say
from gaixie.udfs.metrics.identification import Identifier

MODES = ("keep", "filter", "flip")
LIMITS = (0.05, 0.15, 0.25, 0.35, 0.45)
"""Values of λ: the paper's range and its best ones."""


def cleaned(noisy: Labelled, probability: np.ndarray, mode: str, limit: float) -> Labelled:
    """The noisy pairs that remain, with their labels.

    probability: the teacher's P(paraphrase). limit: λ; a pair is doubted where P(label) ≤ λ. Raises
    ValueError for another mode.
    """
    doubted = np.where(noisy.label >= 0.5, probability, 1 - probability) <= limit
    if mode == "filter":
        return noisy.take(np.flatnonzero(~doubted))
    if mode not in MODES:
        raise ValueError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
    turned = doubted & (mode == "flip")
    return Labelled(noisy.source, noisy.paraphrase, np.where(turned, 1 - noisy.label, noisy.label))


def learn_from_noise(
    teacher: tuple[Identifier, str],
    parts: Parts,
    noisy: Labelled,
    limits: Sequence[float],
    recipe: Recipe,
    folder: Path,
    clock: Clock,
) -> tuple[Identifier, dict[str, Any]]:
    """The best of teacher and students on the held-out part, and what each was.

    teacher: it, and the folder where it lies. limits: values of λ.
    """
    said = teacher[0].probabilities(noisy.source.tolist(), noisy.paraphrase.tolist())
    rows: list[dict[str, Any]] = []
    students: list[Identifier] = []
    tried = [("none", None), ("keep", None)]
    for mode, limit in [*tried, *((mode, limit) for mode in MODES[1:] for limit in limits)]:
        student, row = teacher[0], {"pairs": 0, "flipped": 0}
        if mode != "none":
            kept = cleaned(noisy, said, mode, -1.0 if limit is None else limit)
            name = mode if limit is None else f"{mode}-{limit:g}"
            say(f"noisy labels, {name}: {len(kept):,} of {len(noisy):,} pairs")
            student = fit(teacher[1], parts.train.join(kept), recipe, folder / name, clock)
            turned = int(np.sum(kept.label != noisy.label)) if mode == "flip" else 0
            row = {"pairs": len(kept), "flipped": turned}
        held, label = parts.held_out, parts.held_out.label >= 0.5
        found = student.probabilities(held.source.tolist(), held.paraphrase.tolist())
        score = f1(label, found > best_threshold(label, found))
        rows.append({"mode": mode, "lambda": limit, **row, "held_out_f1": score})
        students.append(student)
    best = int(np.argmax([row["held_out_f1"] for row in rows]))
    return students[best], {"noisy": len(noisy), "tried": rows, "chosen": best}
