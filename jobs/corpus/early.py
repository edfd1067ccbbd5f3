"""Checks local paths and files before Spark starts: a mistake shows at once, not after ten seconds.

It reads no file to its end. What stays open here (other stores, patterns, damaged files), the job
finds out itself, in inputs.py.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from gaixie.jobs.corpus.paths import COMPRESSED, choose_files, local_path
from gaixie.jobs.corpus.settings import LICENSE, Input
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File

GIVE_ENCODING = "it is not UTF-8: give its encoding, such as --encoding gb18030"

SMALL_BYTES = 10_000_000
"""Input below this is scored before Java has compiled what it runs: about 100,000 pairs."""

LINES_BYTES = 1_000_000
"""JSON lines up to this size are read: a column may be missing from the first line."""


def check_local_inputs(inputs: Iterable[Input]) -> None:
    """Raises JobError for a local path that does not exist, has no data or no format, or lacks a
    column."""
    for settings in inputs:
        path = local_path(settings.path)
        if path is None or (re.search(r"[*?\[\]{}\\]", path) and not os.path.lexists(path)):
            continue
        try:
            files = [file for file in _data_files(Path(path)) if file.size]
        except OSError:
            continue  # a link that leads nowhere, a folder that may not be read: the job says so
        if not files:
            exists = os.path.exists(path)
            what = "no data, expected at least one file with rows"
            raise JobError(f"{settings.path}: {what if exists else 'no such file or folder'}")
        kind, chosen = choose_files(settings, files)
        if names := _columns(chosen, kind, settings):
            check_names(names, chosen[0].uri, settings)


def check_local_files(paths: Iterable[str]) -> None:
    """Raises JobError for a local path that does not exist."""
    for uri in paths:
        path = local_path(uri)
        if path is not None and not re.search(r"[*?\[\]{}\\]", path) and not os.path.exists(path):
            raise JobError(f"{uri}: no such file or folder")


def local_bytes(inputs: Iterable[Input]) -> float:
    """Returns the bytes of all inputs; infinite if a part lies elsewhere or is compressed."""
    total = 0.0
    for settings in inputs:
        path = local_path(settings.path)
        try:
            files = _data_files(Path(path)) if path else []
        except OSError:
            files = []
        if not files or any(file.uri.lower().endswith(COMPRESSED) for file in files):
            return float("inf")
        total += sum(file.size for file in files)
    return total


def check_names(names: list[str], path: str, settings: Input) -> None:
    """Raises JobError where a column is missing that is to be read, or two differ in case alone."""
    texts = settings.text_columns
    for wanted in dict.fromkeys([*texts, *(settings.carried or ())]):
        if wanted not in names:
            shown, kind = ", ".join(names), ", expected string" if wanted in texts else ""
            hint = f"; {GIVE_ENCODING}" if "\ufffd" in shown else ""
            raise JobError(f"{path}: no column '{wanted}'{kind}; it has: {shown}{hint}")
    if settings.license and any(name.lower() == LICENSE for name in names):
        raise JobError(
            f"{path}: has a column '{LICENSE}', but the settings state the licence "
            f"{settings.license!r} for all of its pairs; leave out one of them"
        )
    known: dict[str, str] = {}
    for name in names:
        if (other := known.setdefault(name.lower(), name)) != name:
            raise JobError(
                f"{path}: columns '{other}' and '{name}' differ in case alone: rename one"
            )


def _data_files(path: Path) -> list[File]:
    """Lists the data files of a path; names that begin with "_" or "." are no data."""
    if path.is_file():
        paths = [path]
    else:
        paths = [
            Path(folder, name)
            for folder, _, names in os.walk(path, followlinks=True)
            for name in names
            if not any(part[0] in "_." for part in Path(folder, name).relative_to(path).parts)
        ]
    files = []
    for file in sorted(paths):
        status = file.stat()
        files.append(File(str(file), status.st_size, datetime.fromtimestamp(status.st_mtime, UTC)))
    return files


def _columns(files: list[File], kind: str, settings: Input) -> list[str]:
    """Returns the names of the first file's columns; none if a look does not tell."""
    first = files[0].uri
    if first.lower().endswith(COMPRESSED):
        return []
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            return pq.read_schema(first).names
        if kind == "jsonl":
            if len(files) > 1 or files[0].size > LINES_BYTES:
                return []
            with open(first, encoding=_python_encoding(settings)) as lines:
                rows = [json.loads(line) for line in lines if line.strip()]
            names = [name for row in rows if isinstance(row, dict) for name in row]
            return list(dict.fromkeys(names))
        if settings.csv.columns:
            return settings.csv.columns
        with open(first, encoding=_python_encoding(settings), newline="") as lines:
            delimiter = settings.csv.delimiter or ("\t" if kind == "tsv" else ",")
            quote = (
                ("" if kind == "tsv" else '"') if settings.csv.quote is None else settings.csv.quote
            )
            given = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
            return next(csv.reader(lines, delimiter=delimiter, **given), [])
    except (OSError, ValueError, TypeError, csv.Error):
        return []  # the job says what is wrong with it


def _python_encoding(settings: Input) -> str:
    return settings.csv.encoding.replace("utf-8", "utf-8-sig")
