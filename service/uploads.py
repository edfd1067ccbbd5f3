"""The tables of pairs that people upload: CSV, TSV and XLSX, in any common encoding and with any
columns."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import HTTPException

from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.records import likely_encoding
from gaixie.udfs.storage.tables import MALFORMED_LINE, Form, Part, header_of, known_as, read

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ENCODINGS = ("utf-8", "gb18030", "utf-16", "big5")
ADDED = (*OUTPUTS, "reason")
"""Columns that an answer adds."""


@dataclass
class Upload:
    """A table and the columns of its pairs. Every row has as many cells as the header."""

    header: list[str]
    rows: list[list[str | None]]
    malformed: list[str | None]
    """The text of each row that could not be split into cells."""
    encoding: str
    source: str | None = None
    paraphrase: str | None = None

    def pairs(self) -> list[tuple[str | None, str | None]]:
        """Returns the pairs of the rows. Raises HTTPException if there are none."""
        places = []
        for side, name in (("source", self.source), ("paraphrase", self.paraphrase)):
            if name not in self.header:
                found = ", ".join(self.header[:20])[:200] or "none"
                raise HTTPException(422, f"expected one column {name or side}, found {found}")
            places.append(self.header.index(name))
        if not self.rows:
            raise HTTPException(422, "no rows below the header")
        return [(row[places[0]], row[places[1]]) for row in self.rows]

    def head(self) -> str:
        """Returns the header with the columns of the scores, as CSV."""
        return _csv([[*self.header, *ADDED]])

    def lines(self, start: int, scores: Sequence[dict[str, Any]]) -> str:
        """Returns the rows from start on with their scores, as CSV; a malformed one is in the
        first cell."""
        lines = []
        for place, score in enumerate(scores, start):
            text = self.malformed[place]
            row = self.rows[place] if text is None else [text, *self.rows[place][1:]]
            given = score if text is None else {**score, "reason": "malformed"}
            lines.append([*row, *(given[name] for name in ADDED)])
        return _csv(lines)


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def read_upload(
    body: bytes, kind: str, encoding: str | None, source: str | None, paraphrase: str | None
) -> Upload:
    """Reads a table. kind: its Content-Type. Detects whatever is None. Raises HTTPException."""
    if XLSX in kind or body.startswith(b"PK\3\4"):
        form, encoding = Form("xlsx"), "xlsx"
    else:
        encoding = encoding or likely_encoding(body[:1_000_000])
        if encoding is None:
            raise ValueError("not UTF-8, GB18030 or Big5, as it seems: give ?encoding=")
        form = Form("tsv" if "tab-separated" in kind else "csv", encoding)
    with tempfile.TemporaryDirectory(prefix="gaixie-upload-") as folder:
        path = Path(folder, "table")
        path.write_bytes(body)
        try:
            header = header_of(str(path), form)
            batches = [*read(Part(str(path)), header, form)]
        except ValueError as error:  # it names the file
            raise HTTPException(422, str(error).removeprefix(f"{path}: ")) from None
    for name in header:
        if name in ADDED or header.count(name) > 1:
            raise HTTPException(422, f"column {name}: the answer adds a column of this name")
    rows: list[tuple[str | None, ...]] = []
    malformed: list[str | None] = []
    for batch in batches:
        rows += zip(*(column.to_pylist() for column in batch.columns[: len(header)]), strict=True)
        malformed += batch.column(MALFORMED_LINE).to_pylist()
    sides = (source or known_as(header, "source"), paraphrase or known_as(header, "paraphrase"))
    return Upload(header, [[*row] for row in rows], malformed, encoding, *sides)
