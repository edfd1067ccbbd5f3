"""Sheets: CSV that Excel opens and writes, read with the number of each line.

Sheets are UTF-8 with a byte order mark, for without one Excel takes Chinese for another encoding. What comes
back may have been saved by a Chinese Excel (GB18030), with semicolons or tabs for commas, and with figures of
full width or with decimals (3.0).
"""

from __future__ import annotations

import codecs
import csv
import io
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gaixie.research.annotation.plan import FIELDS, IS_PARAPHRASE, SCALE, Plan, Task
from gaixie.udfs.storage import storage

NOTE = "note"
HEADER = ("task", "source", "paraphrase", *FIELDS, NOTE)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets take a cell that begins so for a formula."""


class Line(NamedTuple):
    """A row of a sheet and where it stands."""

    where: str
    """File and line, for messages."""
    cells: dict[str, str]


class Answer(NamedTuple):
    where: str
    task: str
    values: dict[str, float]
    """By field."""
    note: str


def write_sheet(plan: Plan, tasks: Iterable[Task]) -> bytes:
    """A sheet to be filled in."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(HEADER)
    for task in tasks:
        pair = plan.pairs[task.pair]
        texts = [_safe(pair.source), _safe(pair.paraphrase)]
        writer.writerow([task.task, *texts, *[""] * (len(FIELDS) + 1)])
    return codecs.BOM_UTF8 + text.getvalue().encode()


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text


def read_lines(uri: str, columns: Sequence[str]) -> Iterator[Line]:
    """The rows of a CSV or TSV file that are not empty.

    Raises OSError, or ValueError naming the file, and the line where it is known: for another kind of file,
    a missing column, or a row with more cells than columns.
    """
    if not uri.lower().endswith((".csv", ".tsv", ".txt")):
        raise ValueError(f"{uri}: expected .csv or .tsv (in Excel: save as CSV UTF-8)")
    text = _decoded(uri, storage.read_bytes(uri))
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = [name.strip() for name in next(rows, [])]
        for name in columns:
            if name not in header:
                there = ", ".join(filter(None, header)) or "none"
                raise ValueError(f"{uri}, line 1: no column '{name}', it has: {there}")
        start = rows.line_num + 1
        for row in rows:
            where, start = f"{uri}, line {start}", rows.line_num + 1
            if not any(cell.strip() for cell in row):
                continue
            if any(cell.strip() for cell in row[len(header) :]):
                raise ValueError(f"{where}: {len(row)} cells, the first line has {len(header)}")
            cells = dict(zip(header, row, strict=False))
            yield Line(where, {name: cells.get(name, "").strip() for name in header})
    except csv.Error as error:
        raise ValueError(f"{uri}, line {rows.line_num}: {error}") from None


def _decoded(uri: str, data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{uri}: neither UTF-8 nor GB18030; save it as CSV UTF-8")


def read_sheet(uri: str) -> Iterator[Answer]:
    """The answers of a filled sheet; rows without any are passed over. Raises as read_lines does, and
    ValueError for an answer that is none."""
    for where, cells in read_lines(uri, ["task", *FIELDS]):
        given = {name: cells[name] for name in FIELDS}
        if any(given.values()):
            if not cells["task"]:
                raise ValueError(f"{where}: task is empty, expected the one that the sheet had")
            yield Answer(where, cells["task"], answers(where, given), cells.get(NOTE, ""))


def answers(where: str, given: Mapping[str, str]) -> dict[str, float]:
    """The answers to all fields as numbers. Raises ValueError that begins with where."""
    return {
        name: whole_number(
            where, name, given.get(name, ""), 0, 1 if name == IS_PARAPHRASE else SCALE
        )
        for name in FIELDS
    }


def whole_number(where: str, name: str, text: str, low: int, high: int) -> float:
    """A whole number from low to high. Raises ValueError that names place and column."""
    expected = (
        "expected 0 or 1"
        if (low, high) == (0, 1)
        else f"expected a whole number from {low} to {high}"
    )
    if not text:
        raise ValueError(f"{where}: {name} is empty, {expected}")
    try:
        value = float(unicodedata.normalize("NFKC", text))
    except ValueError:
        value = float("nan")
    if value not in range(low, high + 1):
        raise ValueError(f"{where}: {name} is {text!r}, {expected}")
    return value
