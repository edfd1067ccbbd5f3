"""Reads the tables of pairs that people upload: CSV, TSV and XLSX, in any common encoding and with
any columns.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zipfile import BadZipFile

from fastapi import HTTPException

from gaixie.udfs.spscore import OUTPUTS

csv.field_size_limit(2**31 - 1)  # bodies are bounded, long sentences get a reason

ADDED = (*OUTPUTS, "reason")
"""Columns that an answer adds."""
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ENCODINGS = ("utf-8", "gb18030", "utf-16", "big5")
NAMES = {
    "source": ("source", "original", "原句", "原文", "源句", "源文", "句子", "sentence1", "text1"),
    "paraphrase": (
        *("paraphrase", "rewrite", "target", "改写", "改写句", "改写后", "译文", "复述"),
        *("同义句", "sentence2", "text2"),
    ),
}
"""What people call the two columns, in lower case, likeliest first."""


@dataclass
class Table:
    """A table and the columns of its pairs. Every row has as many cells as the header."""

    header: list[str]
    rows: list[list[str]]
    encoding: str
    delimiter: str
    source: str | None = None
    paraphrase: str | None = None

    def pairs(self) -> list[tuple[str, str]]:
        """Returns the pairs of the rows. Raises HTTPException if a column is not known."""
        places = []
        for side in NAMES:
            name = getattr(self, side)
            found = ", ".join(self.header[:20])[:200] or "none"
            if name is None or self.header.count(name) != 1:
                raise HTTPException(422, f"expected one column {name or side}, found {found}")
            places.append(self.header.index(name))
        return [(row[places[0]], row[places[1]]) for row in self.rows]

    def head(self) -> str:
        """Returns the header with the columns of the scores, as CSV."""
        return _csv([[*self.header, *ADDED]])

    def lines(self, start: int, scores: Sequence[dict[str, Any]]) -> str:
        """Returns the rows from start on with their scores, as CSV."""
        rows = self.rows[start : start + len(scores)]
        return _csv(
            [*row, *(score[name] for name in ADDED)]
            for row, score in zip(rows, scores, strict=True)
        )


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def read_table(
    body: bytes, kind: str, encoding: str | None, source: str | None, paraphrase: str | None
) -> Table:
    """Reads a table. kind: its Content-Type. Detects whatever is None.

    Raises HTTPException with a line that names the place.
    """
    if XLSX in kind or body.startswith(b"PK\3\4"):
        encoding, delimiter = "xlsx", ","
        lines = _sheet(body)
    else:
        encoding, text = _text(body, encoding)
        delimiter = _delimiter(text, kind)
        lines = _lines(text, delimiter)
    header: list[str] = []
    rows = []
    for number, row in lines:
        if not header:
            header = [name.strip() for name in row]
        elif len(row) != len(header):
            raise HTTPException(
                422, f"line {number:,}: {len(row)} cells, but {len(header)} columns"
            )
        else:
            rows.append(row)
    sides = {"source": source, "paraphrase": paraphrase}
    table = Table(
        header,
        rows,
        encoding,
        delimiter,
        **{side: given or _recognised(header, side) for side, given in sides.items()},
    )
    for name in ADDED:
        if name in header:
            raise HTTPException(422, f"column {name}: the answer adds a column of this name")
    return table


def _recognised(header: list[str], side: str) -> str | None:
    """Returns the column whose name people use for a side."""
    lower = {name.lower(): name for name in reversed(header)}
    return next((lower[name] for name in NAMES[side] if name in lower), None)


def _text(body: bytes, encoding: str | None) -> tuple[str, str]:
    """Returns the encoding and the text of a body; without an encoding, tries the usual ones."""
    given = encoding
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        given = "utf-16"
    for name in [given] if given else ("utf-8", "gb18030"):
        try:
            text = body.decode(name).removeprefix("\ufeff")  # GB18030 has one too
        except UnicodeDecodeError as error:
            line = body.count(b"\n", 0, error.start) + 1
            other = "gb18030" if name == "utf-8" else "utf-8"
            wrong = HTTPException(422, f"line {line:,}: not {name}; perhaps ?encoding={other}")
            continue
        if "\0" in text:
            line = text.count("\n", 0, text.index("\0")) + 1
            raise HTTPException(422, f"line {line:,}: a NUL character")
        return name, text
    raise wrong


def _delimiter(text: str, kind: str) -> str:
    """Returns the delimiter: as the Content-Type says, or the most frequent in the first line."""
    if "tab-separated" in kind:
        return "\t"
    first = text.partition("\n")[0]
    return max(",\t;", key=first.count)


def _lines(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the last line's number and the cells of each row that is not empty."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise HTTPException(422, f"line {reader.line_num:,}: {error}") from None


def _sheet(body: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows that are not empty in the first sheet of a workbook."""
    from openpyxl import load_workbook

    try:
        sheet = load_workbook(io.BytesIO(body), read_only=True, data_only=True).worksheets[0]
        rows = [[("" if cell is None else str(cell)) for cell in row] for row in sheet.values]
    except (BadZipFile, KeyError, ValueError, IndexError, OSError):
        raise HTTPException(422, "not an Excel workbook (.xlsx)") from None
    width = max((k for row in rows[:1] for k, cell in enumerate(row, 1) if cell), default=0)
    for number, row in enumerate(rows, 1):
        if any(row):
            yield number, row[:width]
