"""Writes the report of an evaluation: evaluation.md, evaluation.json and scores.parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.training.evaluation.systems import System
from gaixie.udfs.metrics import Metric
from gaixie.udfs.reports import number, render, write_json

TEMPLATE = Path(__file__).with_name("evaluation.md.j2")
Scores = dict[tuple[str, str], np.ndarray]
"""Maps (system, measure) to float64, shape (rows,), NaN where the system has no paraphrase."""


def write(folder: Path, result: dict[str, Any], table: pa.Table) -> None:
    """Writes the whole report, and prints its first part.

    result: made by training/evaluate.py. table: of sentence_table.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "evaluation.json", result)
    text = render(TEMPLATE, estimate=_estimate, **result)
    (folder / "evaluation.md").write_text(text, "utf-8")
    pq.write_table(table, folder / "scores.parquet")
    print(text.partition("\n## Cases")[0].partition("\n## Signatures")[0])


def _estimate(system: dict[str, Any], measure: dict[str, Any]) -> str:
    """Formats a system's mean, deviation and interval."""
    estimate, digits = system["measures"][measure["name"]], measure["digits"]
    if not estimate["rows"]:
        return "–"
    mean, sd, low, high = (number(estimate[k], digits) for k in ("mean", "sd", "low", "high"))
    return f"{mean} ± {sd} ({low} to {high})"


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

    def shown(system: System, row: int) -> dict[str, Any]:
        score = float(scores[system.name, "spscore"][row])
        return {"system": system.name, "paraphrase": system.paraphrases[row], "spscore": score}

    return [
        {"source": sources[row], "paraphrases": [shown(system, row) for system in systems[1:]]}
        for row in sorted(drawn.tolist())
    ]


def sentence_table(
    sources: Sequence[str],
    systems: Sequence[System],
    scores: Scores,
    measures: Mapping[str, Metric],
) -> pa.Table:
    """Returns a row for each source and system; scores are null without a paraphrase."""
    columns: dict[str, Any] = {
        "source": [source for _ in systems for source in sources],
        "system": [system.name for system in systems for _ in sources],
        "paraphrase": pa.array([t for system in systems for t in system.paraphrases], pa.string()),
    }
    for name in measures:
        values = np.concatenate([scores[system.name, name] for system in systems])
        columns[name] = pa.array(values, from_pandas=True)
    signatures = {name: metric.signature() for name, metric in measures.items()}
    return pa.table(columns).replace_schema_metadata(signatures)
