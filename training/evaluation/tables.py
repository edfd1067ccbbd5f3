"""Scores every system on every source, and chooses the cases that a report shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gaixie.training.evaluation.scores import Measure
from gaixie.training.evaluation.systems import System
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics import Pairs

Scores = dict[tuple[str, str], np.ndarray]
"""Maps (system, measure) to float64, shape (rows,), NaN where the system has no paraphrase."""


def score(sources: Sequence[str], systems: Sequence[System], measures: Sequence[Measure]) -> Scores:
    """Returns every measure of every system."""
    scores = {}
    for system in systems:
        rows = [row for row, text in enumerate(system.paraphrases) if text is not None]
        texts = [text for text in system.paraphrases if text is not None]
        pairs = Pairs.of([sources[row] for row in rows], texts)
        say(f"{system.name}: scoring {len(pairs):,} rows")
        for measure in measures:
            column = np.full(len(sources), np.nan)
            column[rows] = measure.score(pairs) if rows else []
            scores[system.name, measure.name] = column
    return scores


def cases(
    sources: Sequence[str], systems: Sequence[System], scores: Scores, count: int, seed: int
) -> list[dict[str, Any]]:
    """Draws some sources, by seed, for which every system has a paraphrase; keeps the table's
    order."""
    first: dict[str, int] = {}
    for row, source in enumerate(sources):
        if all(system.paraphrases[row] for system in systems):
            first.setdefault(source, row)
    drawn = np.random.default_rng(seed).permutation([*first.values()])[:count]
    found = []
    for row in sorted(drawn.tolist()):
        paraphrases = [
            {
                "system": system.name,
                "paraphrase": system.paraphrases[row],
                "spscore": float(scores[system.name, "spscore"][row]),
            }
            for system in systems[1:]
        ]
        found.append({"source": sources[row], "paraphrases": paraphrases})
    return found


def sentence_table(
    sources: Sequence[str], systems: Sequence[System], scores: Scores, measures: Sequence[Measure]
) -> pa.Table:
    """Returns a row for each source and system; scores are null without a paraphrase."""
    columns: dict[str, Any] = {
        "source": [source for _ in systems for source in sources],
        "system": [system.name for system in systems for _ in sources],
        "paraphrase": pa.array([t for system in systems for t in system.paraphrases], pa.string()),
    }
    for measure in measures:
        values = np.concatenate([scores[system.name, measure.name] for system in systems])
        columns[measure.name] = pa.array(values, from_pandas=True)
    table = pa.table(columns)
    return table.replace_schema_metadata({m.name: m.signature for m in measures})
