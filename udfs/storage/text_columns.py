"""Reads and writes columns of text for commands: a file, or standard input and output."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.storage import storage, tables
from gaixie.udfs.storage.records import MARKED
from gaixie.udfs.storage.tables import Form, TableError

READ = tuple(ending for endings in tables.KINDS.values() for ending in endings)
WRITTEN = (".tsv", ".jsonl", ".parquet")

Row = tuple[str | None, ...]


def read_columns(
    name: str,
    columns: Sequence[str],
    errors: str = "replace",
    standard: str = ".txt",
    encoding: str | None = None,
) -> Iterator[Row]:
    """Yields the given columns of each row of a file; for lines of text, the line.

    errors: strict if bytes that are not UTF-8 are an error; otherwise UNDECODABLE stands before
    them. standard: the format of standard input, as the ending of a name. encoding: of text; see
    Form. Raises TableError or OSError, in one line that names file, column and line, for a missing
    column, a column that is not text, or a malformed record.
    """
    kind = tables.kind_of(standard if is_standard(name) else name)
    if kind is None:
        raise TableError(f"{name}: expected a file of {', '.join(READ)}")
    return _rows(name, columns, Form(kind, encoding), errors)


def read_lines(name: str, errors: str = "replace", encoding: str | None = None) -> Iterator[str]:
    """Yields the lines of a file, whatever its name ends in."""
    return (line or "" for (line,) in _rows(name, ["line"], Form("txt", encoding), errors))


def _rows(name: str, columns: Sequence[str], form: Form, errors: str) -> Iterator[Row]:
    shown = "standard input" if is_standard(name) else name
    with tables.opened(tables.STANDARD if is_standard(name) else name) as file:
        if form.kind == "parquet":
            yield from _parquet_rows(file, name, columns)
            return
        table = tables.TextTable(file, shown, form, columns)
        for number, row, _ in table.rows(columns, needed=form.kind != "txt"):
            if row is None:
                what = "expected a JSON object of texts" if form.kind == "jsonl" else "malformed"
                raise TableError(f"{shown}, line {number:,}: {what}")
            if errors == "strict" and any(text and MARKED.search(text) for text in row):
                fault = f"not {form.encoding or 'UTF-8'}: {tables.NAME_IT} gb18030"
                raise TableError(f"{shown}, line {number:,}: {fault}")
            yield tuple(row)


def _parquet_rows(file: Any, name: str, columns: Sequence[str]) -> Iterator[Row]:
    table = pq.ParquetFile(file)
    tables.check_columns(name, columns, table.schema_arrow.names)
    for column in columns:
        kind = table.schema_arrow.field(column).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise TableError(f"{name}: column '{column}' is of {kind}, expected string")
    for batch in table.iter_batches(tables.BATCH, columns=list(columns)):
        yield from zip(*(batch.column(column).to_pylist() for column in columns), strict=True)


def count_rows(name: str, columns: Sequence[str]) -> int:
    """Counts the rows of a file. Reads all of it, so that errors show before work starts."""
    return sum(1 for _ in read_columns(name, columns))


def is_standard(name: str) -> bool:
    """Tells whether a name means standard input or output."""
    return name in (tables.STANDARD, "/dev/stdin", "/dev/stdout")


def check_extension(name: str, expected: Sequence[str]) -> None:
    """Raises TableError for a file of another extension; standard input and output pass."""
    if not is_standard(name) and not name.endswith(tuple(expected)):
        raise TableError(f"{name}: expected a file of {', '.join(expected[:-1])} or {expected[-1]}")


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
