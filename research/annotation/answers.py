"""Reads exports of Label Studio (JSON, JSON-MIN or CSV), checks them, joins them with the plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from gaixie.research.annotation.tasks import FIELDS, HIGHEST
from gaixie.udfs.storage import storage

ENDINGS = (".json", ".csv", ".tsv")


def read_answers(plan: pd.DataFrame, uris: Sequence[str]) -> pd.DataFrame:
    """Returns the plan's rows that were answered, with a float for each of FIELDS.

    uris: exports of Label Studio, or folders of them. Raises OSError, or ValueError that names the
    file and the task.
    """
    parts = []
    for uri in _files(uris):
        own = read_rows(uri)
        for name in ("task", *FIELDS):
            if name not in own:
                raise ValueError(f"{uri}: no column '{name}', it has: {', '.join(map(str, own))}")
        parts.append(own[["task", *FIELDS]][(own[FIELDS] != "").any(axis=1)].assign(uri=uri))
    given = pd.concat(parts)
    if given.empty:
        raise ValueError(f"{', '.join(uris)}: no answers in them")
    for wrong, what in (
        (~given["task"].isin(plan["task"]), "is not in the plan"),
        (given["task"].duplicated(), "is answered twice, expected one annotation"),
    ):
        for row in given[wrong].itertuples():
            raise ValueError(f"{row.uri}: task {row.task!r} {what}")
    for name, highest in HIGHEST.items():
        where = given["uri"] + ": task " + given["task"]
        given[name] = whole_numbers(given[name], name, highest, where)
    return plan.merge(given[["task", *FIELDS]], on="task")


def read_rows(uri: str) -> pd.DataFrame:
    """Returns a file's rows as text, "" for an empty cell. Raises OSError or ValueError."""
    try:
        if uri.endswith(".json"):
            table = pd.DataFrame([*_annotations(json.loads(storage.read_bytes(uri)))])
        else:
            separator = "\t" if uri.endswith(".tsv") else ","
            with storage.open_file(uri) as file:
                table = pd.read_csv(file, sep=separator, dtype=str, encoding="utf-8-sig")
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{uri}: not what Label Studio exports: {reason}") from None
    return table.fillna("").astype(str).apply(lambda column: column.str.strip())


def _annotations(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields each task's data with its answers; leaves out annotations that were skipped."""
    for task in tasks:
        if "data" not in task:  # JSON-MIN has one flat row for each annotation
            yield task
        for annotation in task.get("annotations", []):
            if not annotation.get("was_cancelled"):
                yield task["data"] | {
                    result["from_name"]: _text(result["value"]) for result in annotation["result"]
                }


def _text(value: dict[str, Any]) -> str:
    """Returns the answer as text, whether it is a choice, a rating or a text."""
    [content, *_] = value.values()
    return " ".join(map(str, content)) if isinstance(content, list) else str(content)


def whole_numbers(texts: pd.Series, name: str, highest: int, where: pd.Series) -> pd.Series:
    """Returns the texts as floats. Raises ValueError unless each is a whole number, 0 to highest.

    where: the place of each row, for the message.
    """
    values = pd.to_numeric(texts, errors="coerce")
    wrong = ~values.isin(range(highest + 1))
    for place, text in zip(where[wrong], texts[wrong], strict=True):
        raise ValueError(
            f"{place}: {name} is {text!r}, expected a whole number from 0 to {highest}"
        )
    return values.astype(float)


def _files(uris: Sequence[str]) -> list[str]:
    files: list[str] = []
    for uri in uris:
        exports = [f.uri for f in storage.list_files(uri) if f.uri.endswith(ENDINGS)]
        if not exports:
            raise ValueError(f"{uri}: no such file, or no exports in it: {', '.join(ENDINGS)}")
        files += exports
    return files
