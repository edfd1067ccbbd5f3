"""Training on noisy labels: a teacher that was trained on clean ones filters them, or turns them round.

Source: Dou, Jiang & Xu 2022 (MultiPIT), the strategy "filter and flip". With d = |label − P(paraphrase)| of
the teacher, a pair with d > λ is left out (filter) or gets the other label (flip). Decided here: filter and
flip are tried each by itself, for every λ; the student begins with the teacher's weights and learns from
the noisy pairs together with the clean ones; F1 of the held-out part decides, the teacher without a
student among the choices, so that what is reported has no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gaixie.research.identification.data import Labelled, Parts
from gaixie.research.identification.scores import best_threshold, f1
from gaixie.research.identification.train import Recipe, fit
from gaixie.udfs.command_line import Clock, say
from gaixie.udfs.metrics.identification import Identifier

MODES = ("keep", "filter", "flip")


def cleaned(noisy: Labelled, probability: np.ndarray, mode: str, limit: float) -> Labelled:
    """The noisy pairs that remain, with their labels. limit: λ. Raises ValueError for another mode."""
    doubted = np.abs(noisy.label - probability) > limit
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
    rows = [_row("none", None, 0, 0, teacher[0], parts.held_out)]
    students = [teacher[0]]
    for mode in MODES:
        for limit in (None,) if mode == "keep" else limits:
            kept = cleaned(noisy, said, mode, 2.0 if limit is None else limit)
            name = mode if limit is None else f"{mode}-{limit:g}"
            say(f"noisy labels, {name}: {len(kept):,} of {len(noisy):,} pairs")
            own = replace(recipe, transitive=0.0)
            student = fit(teacher[1], parts.train.join(kept), own, folder / name, clock)
            turned = int(np.sum(kept.label != noisy.label)) if mode == "flip" else 0
            rows.append(_row(mode, limit, len(kept), turned, student, parts.held_out))
            students.append(student)
    best = int(np.argmax([row["held_out_f1"] for row in rows]))
    return students[best], {"noisy": len(noisy), "tried": rows, "chosen": best}


def _row(
    mode: str, limit: float | None, kept: int, flipped: int, model: Identifier, pairs: Labelled
) -> dict[str, Any]:
    label = pairs.label >= 0.5
    found = model.probabilities(pairs.source.tolist(), pairs.paraphrase.tolist())
    score = f1(label, found > best_threshold(label, found))
    return {
        "mode": mode,
        "lambda": limit,
        "pairs": kept,
        "flipped": flipped,
        "held_out_f1": score,
    }
