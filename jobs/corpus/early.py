"""Checks local paths and files before Spark starts, so that a mistake shows without a ten-second
wait.

It reads no file to its end. The job itself checks other stores, patterns and damaged files: see
inputs.py.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from gaixie.jobs.corpus.paths import COMPRESSED, choose_files, is_data, local_path
from gaixie.jobs.corpus.settings import LICENSE, Input
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File

GIVE_ENCODING = "it is not UTF-8: give its encoding, such as --encoding gb18030"

SMALL_BYTES = 10_000_000
"""Smaller inputs (about 100,000 pairs) are scored before Java has compiled the code that runs."""

PATTERN = r"[*?\[\]{}\\]"
"""Characters that make a path a pattern if the path does not exist."""

MARK = "\ufeff"
"""The byte order mark, which Python and Spark remove only from UTF-8."""

MAX_COLUMNS = 5_000
"""Maximum columns of a scored table. With 20,000, planning alone fills a heap of 1 GB."""

LINES_BYTES = 1_000_000
"""Maximum size of a JSON lines file that is read whole: its first line may lack a column."""


def check_local_inputs(inputs: Iterable[Input]) -> None:
    """Raises JobError for a local path that does not exist, has no data, has no known format, or
    lacks a column."""
    for settings in inputs:
        files = _local_files(settings.path)
        if files is None:
            continue
        files = [file for file in files if file.size]
        if not files:
            check_local_files([settings.path])
            raise JobError(f"{settings.path}: no data, expected at least one file with rows")
        kind, chosen = choose_files(settings, files)
        if names := _columns(chosen, kind, settings):
            check_names(names, chosen[0].uri, settings)


def check_local_files(paths: Iterable[str]) -> None:
    """Raises JobError for a local path that does not exist."""
    for uri in paths:
        path = local_path(uri)
        if path is not None and not re.search(PATTERN, path) and not os.path.exists(path):
            raise JobError(f"{uri}: no such file or folder")


def local_bytes(inputs: Iterable[Input]) -> float:
    """Returns the total bytes of all inputs; infinite if a part is remote or compressed."""
    total = 0.0
    for settings in inputs:
        files = _local_files(settings.path)
        if not files or any(file.uri.lower().endswith(COMPRESSED) for file in files):
            return float("inf")
        total += sum(file.size for file in files)
    return total


def check_names(names: list[str], path: str, settings: Input) -> None:
    """Raises JobError if a requested column is missing, two columns have one name, or there are
    more columns than Java has memory for."""
    if settings.carried is None and len(names) > MAX_COLUMNS:
        raise JobError(
            f"{path}: {len(names):,} columns, and a run carries all of them; Java runs out of "
            f"memory with more than {MAX_COLUMNS:,}: remove columns that are not needed"
        )
    texts = settings.text_columns
    for wanted in dict.fromkeys([*texts, *(settings.carried or ())]):
        if wanted not in names:
            shown, kind = ", ".join(names), ", expected string" if wanted in texts else ""
            if not "".join(names).isprintable():
                raise JobError(f"{path}: no column '{wanted}'; it looks like a binary file")
            hint = f"; {GIVE_ENCODING}" if "\ufffd" in shown else ""
            raise JobError(f"{path}: no column '{wanted}'{kind}; it has: {shown}{hint}")
    if settings.license and any(name.lower() == LICENSE for name in names):
        raise JobError(
            f"{path}: has a column '{LICENSE}', but the settings state the licence "
            f"{settings.license!r} for all its pairs; remove one of the two"
        )
    known: dict[str, str] = {}
    for name in names:
        if (other := known.setdefault(name.lower(), name)) != name:
            raise JobError(
                f"{path}: columns '{other}' and '{name}' differ only in case: rename one"
            )
    if twice := [name for name in known.values() if names.count(name) > 1]:
        raise JobError(f"{path}: two columns are named '{twice[0]}': rename one")


def _local_files(uri: str) -> list[File] | None:
    """Lists the data files of a path; returns None for another store, a pattern or an unreadable
    path."""
    path = local_path(uri)
    if path is None or (re.search(PATTERN, path) and not os.path.lexists(path)):
        return None
    walked = os.walk(path, followlinks=True)
    names = [os.path.join(folder, name) for folder, _, names in walked for name in names]
    names = sorted(name for name in names if is_data(name.removeprefix(path)))
    names = [path] if os.path.isfile(path) else names
    try:
        known = ((name, os.stat(name)) for name in names)
        return [File(n, s.st_size, datetime.fromtimestamp(s.st_mtime, UTC)) for n, s in known]
    except OSError:
        return None  # a dangling link: the job reports it


def _columns(files: list[File], kind: str, settings: Input) -> list[str]:
    """Returns the column names of the first file; empty if they cannot be read here."""
    first, form = files[0].uri, settings.csv
    if first.lower().endswith(COMPRESSED):
        return []
    encoding = form.encoding.replace("utf-8", "utf-8-sig")
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            return pq.read_schema(first).names
        if kind == "jsonl":
            if len(files) > 1 or files[0].size > LINES_BYTES:
                return []
            with open(first, encoding=encoding) as lines:
                rows = [json.loads(line) for line in lines if line.strip()]
            return list(
                dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
            )
        if form.columns:
            return form.columns
        with open(first, encoding=encoding, newline="") as lines:
            quote = form.quote_of(kind)
            given = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
            names = next(csv.reader(lines, delimiter=form.delimiter_of(kind), **given), [])
            return [name.removeprefix(MARK) for name in names]
    except (OSError, ValueError, TypeError, csv.Error):
        return []  # the job reports what is wrong
