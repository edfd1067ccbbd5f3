"""Reads and writes columns of text: .txt lines, standard input, .parquet, .jsonl, .csv and .tsv.

Files are named by path or URI (udfs/storage/storage.py).
"""

from __future__ import annotations

import codecs
import csv
import json
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.storage import storage

STANDARD = "-"
"""The name of standard input, and of standard output."""
READ = (".txt", ".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")
WRITTEN = (".tsv", ".jsonl", ".parquet")
BATCH = 4_096

csv.field_size_limit(2**31 - 1)

Row = tuple[str | None, ...]


def is_standard(name: str) -> bool:
    """Tells whether a name means standard input or output."""
    return name in (STANDARD, "/dev/stdin", "/dev/stdout")


def check_extension(name: str, expected: Sequence[str]) -> None:
    """Raises ValueError for a file of another extension; standard input and output pass."""
    if not is_standard(name) and not name.endswith(tuple(expected)):
        raise ValueError(f"{name}: expected a file of {', '.join(expected[:-1])} or {expected[-1]}")


def read_columns(
    name: str, columns: Sequence[str], errors: str = "replace", standard: str = ".txt"
) -> Iterator[Row]:
    """Yields the given columns of each row of a file; for lines of text, the line.

    errors: how to treat bytes that are not UTF-8, as in bytes.decode: replace (by U+FFFD), strict,
    surrogateescape. standard: the format of standard input, as an extension.
    Raises ValueError or OSError, in one line that names file, column and line, if a column is
    missing, a cell is not a string, or the file is not what its extension says.
    """
    check_extension(name, READ)
    with _opened(name) as (label, file):
        if name.endswith(".parquet"):
            yield from _parquet_rows(label, file, columns)
        else:
            kind = standard if is_standard(name) else name
            yield from _text_rows(label, kind, file, columns, errors)


def read_lines(name: str, errors: str = "replace") -> Iterator[str]:
    """Yields the lines of a file, whatever its extension."""
    with _opened(name) as (label, file):
        yield from (line or "" for (line,) in _text_rows(label, ".txt", file, [], errors))


@contextmanager
def _opened(name: str) -> Iterator[tuple[str, BinaryIO]]:
    """Yields the name of a file for messages, and the file."""
    if is_standard(name):
        yield "standard input", sys.stdin.buffer
    else:
        with storage.open_file(name) as file:
            yield name, file


def count_rows(name: str, columns: Sequence[str]) -> int:
    """Counts the rows of a file. Reads all of it, so that errors show before work starts."""
    return sum(1 for _ in read_columns(name, columns))


def _parquet_rows(name: str, file: BinaryIO, columns: Sequence[str]) -> Iterator[Row]:
    try:
        table = pq.ParquetFile(file)
        schema = table.schema_arrow
        _check_columns(name, columns, schema.names)
        for column in columns:
            kind = schema.field(column).type
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise ValueError(f"{name}: column '{column}' is of {kind}, expected string")
        for batch in table.iter_batches(BATCH, columns=list(columns)):
            lists = [batch.column(column).to_pylist() for column in columns]
            yield from zip(*lists, strict=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{name}: not a Parquet file: {str(error).splitlines()[0]}") from None


def _text_rows(
    name: str, kind: str, file: BinaryIO, columns: Sequence[str], errors: str
) -> Iterator[Row]:
    """Yields the rows of a text file. kind: ends in its extension."""
    text = _lines(name, file, errors)
    if kind.endswith((".jsonl", ".ndjson")):
        yield from _json_rows(name, text, columns, errors)
    elif kind.endswith((".csv", ".tsv")):
        tabs: dict[str, Any] = (
            {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if kind.endswith(".tsv") else {}
        )
        table = csv.DictReader(text, **tabs)
        if table.fieldnames is None:
            return  # an empty file
        _check_columns(name, columns, table.fieldnames)
        for row in table:
            yield tuple(row[column] for column in columns)
    else:
        for line in text:
            yield (line.rstrip("\r\n"),)


def _lines(name: str, file: BinaryIO, errors: str) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        try:
            yield (line if number > 1 else line.removeprefix(codecs.BOM_UTF8)).decode(
                "utf-8", errors
            )
        except UnicodeDecodeError as error:
            raise ValueError(f"{name}, line {number}: not UTF-8 ({error.reason})") from None


def _json_rows(
    name: str, lines: Iterator[str], columns: Sequence[str], errors: str
) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"{name}, line {number}: expected a JSON object")
        _check_columns(f"{name}, line {number}", columns, row)
        values = []
        for column in columns:
            value = row[column]
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name}, line {number}: '{column}' is {value!r}, not a string")
            if value and errors != "surrogateescape":
                # JSON can hold a lone surrogate, but UTF-8 cannot.
                value = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
            values.append(value)
        yield tuple(values)


def _check_columns(name: str, columns: Sequence[str], there: Collection[str]) -> None:
    for column in columns:
        if column not in there:
            raise ValueError(f"{name}: no column '{column}', it has: {', '.join(there)}")


@contextmanager
def writing(name: str, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Yields a function that appends tables to a file, which appears when the block ends.

    In TSV, tabs and line ends in a cell become spaces, null is empty, numbers have six decimals.
    """
    check_extension(name, WRITTEN)
    if is_standard(name):
        yield _tsv_writer(sys.stdout.buffer, schema)
        return
    with storage.open_file(name, "wb") as file:
        if name.endswith(".parquet"):
            with pq.ParquetWriter(file, schema) as writer:
                yield writer.write_table
        elif name.endswith(".jsonl"):
            yield lambda table: file.writelines(map(_json_line, table.to_pylist()))
        else:
            yield _tsv_writer(file, schema)


def _json_line(row: dict[str, Any]) -> bytes:
    return (json.dumps(row, ensure_ascii=False) + "\n").encode()


def _tsv_writer(file: BinaryIO, schema: pa.Schema) -> Callable[[pa.Table], None]:
    file.write(("\t".join(schema.names) + "\n").encode())

    def write(table: pa.Table) -> None:
        for row in table.to_pylist():
            file.write(("\t".join(map(_cell, row.values())) + "\n").encode())
        file.flush()

    return write


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6f}"
    return " ".join(value.splitlines()).replace("\t", " ") if isinstance(value, str) else str(value)
