"""The answers of all annotators, as one table, and the parts of it that are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from gaixie.research.annotation.label_studio import read_export
from gaixie.research.annotation.plan import FIELDS, Plan
from gaixie.research.annotation.sheets import read_sheet
from gaixie.udfs.storage import storage


def read_answers(plan: Plan, uris: Sequence[str]) -> pd.DataFrame:
    """Columns task, annotator, pair, kind, FIELDS, note: a row for each task that was answered.

    uris: sheets (CSV, TSV), exports of Label Studio (.json), and folders of them. Raises OSError, or
    ValueError naming file and line.
    """
    tasks = {task.task: task for task in plan.tasks}
    given: dict[str, str] = {}
    rows = []
    for uri in _files(uris):
        for answer in read_export(uri) if uri.endswith(".json") else read_sheet(uri):
            if answer.task not in tasks:
                raise ValueError(f"{answer.where}: no task {answer.task!r} in the plan")
            if answer.task in given:
                raise ValueError(
                    f"{answer.where}: task {answer.task!r} is answered already, in {given[answer.task]}"
                )
            given[answer.task] = answer.where
            task = tasks[answer.task]
            rows.append(task.model_dump() | answer.values | {"note": answer.note})
    if not rows:
        raise ValueError(
            f"{', '.join(uris)}: no answers; are these the sheets as they were exported?"
        )
    return pd.DataFrame(rows)


def _files(uris: Iterable[str]) -> list[str]:
    files = []
    for uri in uris:
        below = [file.uri for file in storage.list_files(uri)]
        if not below:
            raise FileNotFoundError(f"{uri}: no such file or folder")
        if below != [uri]:  # of a folder what may hold answers
            below = [name for name in below if name.lower().endswith((".csv", ".tsv", ".json"))]
            if not below:
                raise ValueError(f"{uri}: no sheets in it, expected .csv, .tsv or .json")
        files += below
    return files


def table_of(answers: pd.DataFrame, field: str, annotators: Sequence[str]) -> np.ndarray:
    """First answers to the pairs of the sample: shape (pairs, annotators), NaN where there is none."""
    rows = answers[answers["kind"] == "pair"]
    table = rows.pivot(index="pair", columns="annotator", values=field)
    return table.reindex(columns=list(annotators)).to_numpy(float)


def repeats_of(answers: pd.DataFrame) -> pd.DataFrame:
    """Pairs that one annotator answered twice: annotator, pair, and each field's absolute difference."""
    first = answers[answers["kind"] == "pair"].set_index(["annotator", "pair"])
    again = answers[answers["kind"] == "repeat"].set_index(["annotator", "pair"])
    both = again.index.intersection(first.index)
    fields = list(FIELDS)
    return (again.loc[both, fields] - first.loc[both, fields]).abs().reset_index()
