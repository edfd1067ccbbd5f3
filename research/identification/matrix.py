"""A model trained on each set, tested on each: which sets teach what the others ask."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gaixie.research.identification.data import Parts
from gaixie.research.identification.scores import best_threshold, f1, figures
from gaixie.research.identification.train import Recipe, fit
from gaixie.udfs.command_line import Clock


def cross_matrix(
    parts: Mapping[str, Parts],
    encoder: str,
    recipe: Recipe,
    folder: Path,
    clock: Clock,
    samples: int,
) -> dict[str, Any]:
    """F1 and accuracy of each model (rows) on each test part (columns).

    The threshold is that of the training set's held-out part: the other sets are not looked at. Beside them
    what calling every pair a paraphrase would have.
    """
    rows = {}
    for name, own in parts.items():
        model = fit(encoder, own.train, recipe, folder / name, clock)
        held = own.held_out
        found = model.probabilities(held.source.tolist(), held.paraphrase.tolist())
        threshold = best_threshold(held.label >= 0.5, found)
        tested = {}
        for other, part in parts.items():
            said = model.probabilities(part.test.source.tolist(), part.test.paraphrase.tolist())
            tested[other] = figures(part.test, said > threshold, samples, recipe.seed)
        rows[name] = {"threshold": threshold, "pairs": len(own.train), "tested": tested}
    label = {name: part.test.label >= 0.5 for name, part in parts.items()}
    return {"rows": rows, "all": {name: f1(own, own | True) for name, own in label.items()}}
