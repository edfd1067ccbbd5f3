"""Scores systems, and writes the report of an evaluation: evaluation.md, evaluation.json and
scores.parquet."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gaixie.udfs.metrics import Metric, Pairs
from gaixie.udfs.reports import number, write_report
from gaixie.udfs.storage import storage

TEMPLATE = Path(__file__).with_name("evaluation.md.j2")
FILES = ("evaluation.json", "evaluation.md", "scores.parquet")
COPY = "copy"
"""The system that returns each source."""


def scored(
    name: str,
    sources: Sequence[str],
    paraphrases: Sequence[str | None],
    measures: Mapping[str, Metric],
) -> pd.DataFrame:
    """Returns a row for each source: source, system, paraphrase, and a column for each measure,
    NaN without a paraphrase."""
    table = pd.DataFrame({"source": sources, "system": name, "paraphrase": paraphrases})
    pairs = Pairs.of(sources, paraphrases)
    return table.assign(**{name: one.sentence_scores(pairs) for name, one in measures.items()})


def check_output(folder: Path, asked: dict[str, Any]) -> None:
    """Raises ValueError if a folder holds a file of another evaluation, or what has its name."""
    there = [name for name in FILES if (folder / name).exists()]
    with suppress(OSError, ValueError, AttributeError):
        if json.loads((folder / FILES[0]).read_text("utf-8")).get("asked") == asked:
            return
    if there:
        raise ValueError(f"{folder / there[0]}: of another evaluation; use another --output")


def write(folder: Path, result: dict[str, Any], tables: Mapping[str, pd.DataFrame]) -> None:
    """Writes the whole report; prints its first part, and its path.

    result: made by training/evaluate.py. tables: of ``scored``, by system.
    """
    text = write_report(TEMPLATE, folder, result, estimate=_estimate)
    table = pa.Table.from_pandas(pd.concat(tables.values()), preserve_index=False)
    signatures = {one["name"]: one["signature"] for one in result["measures"]}
    storage.write_table(str(folder / "scores.parquet"), table.replace_schema_metadata(signatures))
    print(text.partition("\n## Cases")[0].partition("\n## Signatures")[0])
    print(folder / "evaluation.md")


def _estimate(system: dict[str, Any], measure: dict[str, Any]) -> str:
    """Formats a system's mean, deviation and interval."""
    estimate, digits = system["measures"][measure["name"]], measure["digits"]
    if not estimate["rows"]:
        return "–"
    mean, sd, low, high = (number(estimate[k], digits) for k in ("mean", "sd", "low", "high"))
    return f"{mean} ± {sd} ({low} to {high})"


def cases(tables: Mapping[str, pd.DataFrame], count: int, seed: int) -> list[dict[str, Any]]:
    """Draws some sources, by seed, for which every system has a paraphrase; keeps the table's
    order."""
    whole = np.all([table["paraphrase"].notna() for table in tables.values()], axis=0)
    first = tables[COPY]["source"][whole].drop_duplicates()
    drawn = np.random.default_rng(seed).permutation(first.index)[:count]
    return [
        {
            "source": first[row],
            "paraphrases": [
                table.loc[row, ["system", "paraphrase", "spscore"]].to_dict()
                for name, table in tables.items()
                if name != COPY
            ],
        }
        for row in sorted(drawn.tolist())
    ]
