"""The tables of pairs that people upload: CSV, TSV and XLSX, in any common encoding and with any
columns."""

import io
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import pyarrow as pa
from fastapi import HTTPException, Query

from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import tables
from gaixie.udfs.storage.records import filled_sheets, likely_encoding
from gaixie.udfs.storage.tables import MALFORMED_LINE, Form, Part, header_of, known_as, read

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ADDED = (*OUTPUTS, "verdict", "reason")
"""Columns that an answer adds."""

NAMED = Query(description="name of its column; detected if not given: source, 原句, 原文, 改写, …")
Column = Annotated[str | None, NAMED]
Encoding = Literal["utf-8", "gb18030", "utf-16", "utf-32", "big5"]


@dataclass(frozen=True)
class Reading:
    """How to read a table: the query parameters."""

    encoding: Annotated[Encoding | None, Query(description="detected if not given")] = None
    source: Column = None
    paraphrase: Column = None
    sheet: Annotated[str | None, Query(description="worksheet, if several have rows")] = None


@dataclass
class Upload:
    """A table and the columns of its pairs."""

    table: pd.DataFrame
    """Texts, None for an empty cell; a row that could not be split is in its first cell."""
    malformed: pd.Series
    """Whether a row could not be split into cells."""
    encoding: str
    source: str | None = None
    paraphrase: str | None = None
    sheet: str | None = None
    sheets: Sequence[str] = ()
    """The worksheets of a workbook that have rows."""

    def pairs(self) -> list[tuple[str | None, str | None]]:
        """Returns the pairs of the rows. Raises HTTPException if there are none."""
        for side, name in (("source", self.source), ("paraphrase", self.paraphrase)):
            if name not in self.table:
                found = ", ".join(self.table.columns[:20])[:200] or "none"
                raise HTTPException(422, f"expected one column {name or side}, found {found}")
        if self.source == self.paraphrase:
            raise HTTPException(422, f"column {self.source}: given as source and as paraphrase")
        if self.table.empty:
            raise HTTPException(422, "no rows below the header")
        return [*zip(self.table[self.source], self.table[self.paraphrase], strict=True)]

    def lines(self, start: int, scores: Sequence[dict[str, Any]]) -> str:
        """Returns the rows from start on with their scores, as CSV, the first below the header."""
        rows = slice(start, start + len(scores))
        added = pd.DataFrame(scores, columns=ADDED, index=self.table.index[rows])
        added.loc[self.malformed[rows], "reason"] = "malformed"
        whole = pd.concat([self.table[rows], added], axis=1)
        return whole.to_csv(index=False, header=start == 0, lineterminator="\n")


def read_upload(body: bytes, kind: str, reading: Reading, first: bool = False) -> Upload:
    """Reads a table. kind: its Content-Type. Detects whatever reading does not say. first: whether
    to read, of several sheets, the first that can be read if none is named. Raises HTTPException.
    """
    encoding: str | None = reading.encoding
    sheets: list[str] = []
    with tempfile.TemporaryDirectory(prefix="gaixie-upload-") as folder:
        path = Path(folder, "table")
        path.write_bytes(body)
        try:
            tables.check_sign(str(path), body)
            if XLSX in kind or body.startswith(b"PK\3\4"):
                sheets = [*filled_sheets(io.BytesIO(body))]
                for name in sheets[: -1 if first and not reading.sheet else 0]:
                    with suppress(HTTPException):
                        return read_upload(body, kind, replace(reading, sheet=name))
                sheet = reading.sheet or next(reversed(sheets if first else ()), None)
                form, encoding = Form("xlsx", sheet=sheet), "xlsx"
            elif encoding := encoding or likely_encoding(body[:1_000_000]):
                form = Form("tsv" if "tab-separated" in kind else "csv", encoding)
            else:
                raise ValueError("not UTF-8, GB18030 or Big5, as it seems: give ?encoding=")
            header = header_of(str(path), form)
            batches = [*read(Part(str(path)), header, form)]
        except ValueError as error:  # it names the file
            raise HTTPException(422, str(error).removeprefix(f"{path}: ")) from None
    for name in header:
        if name in (*ADDED, MALFORMED_LINE):
            raise HTTPException(422, f"column {name}: the answer adds a column of this name")
        if (count := header.count(name)) > 1:
            raise HTTPException(422, f"column {name}: the header has {count} of this name")
    schema = pa.schema([(name, pa.string()) for name in [*header, MALFORMED_LINE]])
    table = pa.Table.from_batches(batches, schema).to_pandas()
    lines = table.pop(MALFORMED_LINE)
    if header:
        table[header[0]] = table[header[0]].where(lines.isna(), lines)
    named = [getattr(reading, side) or known_as(header, side) for side in ("source", "paraphrase")]
    return Upload(table, lines.notna(), encoding, named[0], named[1], form.sheet, sheets)
