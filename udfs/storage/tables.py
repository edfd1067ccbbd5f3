"""Reads tables for jobs, training, the service and commands: CSV, TSV, JSON lines, plain lines,
Parquet and Excel workbooks, compressed or not, from any place that storage.py knows.

All of them read alike: whatever a file holds becomes a row, or a malformed record with its text.
"""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.storage import records, storage
from gaixie.udfs.storage.records import MARK, MARKED, Delimited, Record, visible

KINDS = {
    "parquet": (".parquet",),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "txt": (".txt",),
    "xlsx": (".xlsx",),
}
"""Endings of the file names of each kind of table."""


def _strictly(opener: Callable[[Any], Any], file: Any) -> Any:
    """Opens a bz2 or lzma file so that bytes behind a stream which are none raise an error."""
    plain = opener(file)
    plain._buffer.raw._trailing_error = ()
    return plain


COMPRESSED: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": partial(_strictly, bz2.open),
    ".xz": partial(_strictly, lzma.open),
    ".zst": lambda file: pa.CompressedInputStream(pa.PythonFile(file), "zstd"),
    ".lz4": lambda file: pa.CompressedInputStream(pa.PythonFile(file), "lz4"),
}
"""What opens a compressed file, by the ending of its name."""

SIGNS = (b"\x1f\x8b\x08", b"BZh91AY&SY", b"\xfd7zXZ\0", b"(\xb5/\xfd", b'\x04"M\x18')
"""The first bytes of each of these."""

MALFORMED_LINE = "malformed_line"
"""Column that holds a record that could not be split into columns."""

STANDARD = "-"
"""The name of standard input."""

BATCH = 8_192
"""Rows of a batch."""

HEAD_BYTES = 1 << 20

NAME_IT = "save it as UTF-8, or name its encoding, such as --encoding"

NAMES = {
    "source": (
        *("source", "original", "src", "原句", "原文", "源句", "源文", "句子"),
        *("sentence1", "text1", "sentence_a"),
    ),
    "paraphrase": (
        *("paraphrase", "rewrite", "target", "tgt", "改写", "改写句", "改写后", "译文", "复述"),
        *("改寫", "改寫句", "改寫後", "譯文", "複述", "覆述", "釋義"),
        *("释义", "同义句", "sentence2", "text2", "sentence_b"),
    ),
}
"""What people call the two columns of a pair, in lower case, likeliest first."""


class TableError(ValueError):
    """A table that cannot be read: one line that names the file and what the reader said."""


@dataclass(frozen=True)
class Form:
    """How a file is written."""

    kind: str
    """One of KINDS."""
    encoding: str | None = None
    """None: UTF-8, or UTF-16 or UTF-32 if its byte order mark says so."""
    delimiter: str | None = None
    """None: the comma, tab or semicolon that the header has most of; in TSV a tab."""
    quote: str | None = None
    """None: " in CSV, and none in TSV."""
    names: tuple[str, ...] | None = None
    """Names of the columns of a file without a header."""
    sheet: str | None = None
    """The worksheet to read; None: the only one that has rows."""


@dataclass(frozen=True)
class Part:
    """Part of a file: the lines that begin between two places in bytes, of Parquet row groups by
    number. Of the other files, only is_divisible ones have more than one part."""

    uri: str
    start: int = 0
    end: int | None = None
    link: str = ""
    """Of storage.link_to, for a process without credentials."""


def kind_of(name: str) -> str | None:
    """Returns the kind of table that a file's name ends in."""
    given = name = name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    kind = next((kind for kind, endings in KINDS.items() if name.endswith(endings)), None)
    return None if name != given and kind == "parquet" else kind


def known_as(header: Sequence[str], side: str) -> str | None:
    """Returns the column that has a name which people use for a side: source or paraphrase."""
    lower = {str(name).lower(): name for name in reversed(header)}
    return next((lower[name] for name in NAMES[side] if name in lower), None)


def named(header: Sequence[Any], columns: Iterable[Any]) -> list[Any]:
    """Returns the columns; for source and paraphrase, those that known_as finds.

    Raises TableError if the first two, the sides of a pair, are the same.
    """
    known = {name: known_as(header, name) for name in {*columns} & {*NAMES} - {*header}}
    found = [known.get(name) or name for name in columns]
    if len({*found[:2]}) < min(len(found), 2):
        raise TableError(f"column {found[0]!r} is both source and paraphrase: choose two")
    return found


# Reading


@contextmanager
def opened(name: str, link: str = "") -> Iterator[io.BufferedReader]:
    """Opens a file, or standard input, and decompresses it. Its first HEAD_BYTES can be peeked at.

    Raises TableError for what any reader says of the file inside the block.
    """
    try:
        if name == STANDARD:
            yield cast(io.BufferedReader, sys.stdin.buffer)
            return
        with storage.open_file(name, link=link) as file:
            ending = next(filter(name.lower().endswith, COMPRESSED), "")
            plain: Any = COMPRESSED[ending](file) if ending else file
            yield io.BufferedReader(plain, HEAD_BYTES)
    except TableError:
        raise
    except (ValueError, EOFError, OSError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise TableError(said if said.startswith(f"{name}: ") else f"{name}: {said}") from None


def check_sign(name: str, head: bytes) -> None:
    """Raises TableError if a file's first bytes say that it is compressed, or an old workbook."""
    for ending, sign in zip(COMPRESSED, SIGNS, strict=True):
        if head.startswith(sign):
            raise TableError(f"{name}: compressed: unpack it, or add {ending} to its name")
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise TableError(f"{name}: an old Excel workbook (.xls): save it as .xlsx or CSV")


class TextTable:
    """An open file of text: its header and its records."""

    def __init__(self, file: io.BufferedReader, name: str, form: Form, texts: Iterable[str] = ()):
        head = file.peek()
        check_sign(name, head)
        if head.startswith(b"PK\3\4") and form.kind != "xlsx":
            raise TableError(f"{name}: an Excel workbook to name .xlsx, or a ZIP archive to unpack")
        self.form, self._file, self._texts = _resolved(form, head), file, texts
        self._file_name = name
        self._head, self.names = head, [*(form.names or ())]
        self._named = len(self.names)
        self.open_quotes = False
        """Whether a record spans lines, or a quote is never closed, as far as was read."""

    def records(self, start: int = 0, end: int | None = None) -> Iterator[Record]:
        """Yields the records that begin between two places in bytes."""
        form = self.form
        if form.kind == "xlsx":
            rows = records.sheet_records(self._file, form.sheet)
            if not self.names:
                _, header, _ = next(rows, (0, [], ""))
                self._name([visible(name).strip() for name in header])
            yield from rows
            return
        if start and not form.names and form.kind in ("csv", "tsv"):
            self._name(Delimited(self._lines(_buffered(self._head)), *self._signs).header())
        lines = self._lines(self._file, start, end)
        if form.kind == "jsonl":
            yield from records.json_records(lines, self._texts)
        elif form.kind == "txt":
            for number, line in enumerate(lines, 1):
                yield number, [line.rstrip("\r\n")], ""
        else:
            table = Delimited(lines, *self._signs)
            if not (start or form.names):
                self._name(table.header())
            for record in table.records(len(self.names), self._named):
                yield record
                self.open_quotes = table.open_quotes

    def rows(
        self, columns: Sequence[str], start: int = 0, end: int | None = None, needed: bool = False
    ) -> Iterator[tuple[int, list[str | None] | None, str]]:
        """Yields (line number, values, text) of the records.

        The values are those of these columns, null where a record has none. If a record is
        malformed, they are None, and text holds it.

        needed: raise TableError for a column that the table lacks.
        """
        places: list[int | None] | None = None
        for number, cells, text in self.records(start, end):
            if cells is None:
                yield number, None, text
            elif isinstance(cells, dict):
                if needed:
                    check_columns(f"{self._file_name}, line {number:,}", columns, [*cells])
                yield number, [cells.get(name) for name in columns], ""
            else:
                places = places or self._places(columns, needed)
                yield number, [None if k is None else cells[k] or None for k in places], ""
        if places is None and self.names:
            self._places(columns, needed)

    def _places(self, columns: Sequence[str], needed: bool) -> list[int | None]:
        names = self.names or columns  # a plain line has no name
        if needed and MARKED.search("".join(names)):
            fault = f"{NAME_IT} {records.likely_encoding(self._head) or 'gb18030'}"
            raise TableError(f"{self._file_name}: it is not {self.form.encoding}: {fault}")
        if needed:
            check_columns(self._file_name, columns, names)
        return [names.index(name) if name in names else None for name in columns]

    @property
    def unnamed(self) -> list[int]:
        """Returns the places of the columns at the end without a name."""
        return [*range(self._named, len(self.names))]

    @property
    def _signs(self) -> tuple[str, str]:
        return self.form.delimiter or ",", self.form.quote or ""

    def _name(self, header: list[str]) -> None:
        """Takes the names of the columns; one without a name is called by its number."""
        self._named = max((number for number, name in enumerate(header, 1) if name), default=0)
        self.names = [name or f"_c{number}" for number, name in enumerate(header)]

    def _lines(self, file: io.BufferedReader, *places: Any) -> Iterator[str]:
        lines = records.lines_of(file, str(self.form.encoding), *places)
        return (line.lstrip(MARK) for line in lines)  # a mark also stands where files were joined


def _resolved(form: Form, head: bytes) -> Form:
    """Returns the form with encoding, delimiter and quote, which the first bytes decide."""
    encoding = (form.encoding or "utf-8").lower()
    if encoding in ("utf-8", "utf8", "utf-8-sig"):
        encoding = records.marked_encoding(head) or "utf-8"
    quote = ('"' if form.kind == "csv" else "") if form.quote is None else form.quote
    delimiter = form.delimiter or ("\t" if form.kind == "tsv" else ",")
    if form.kind == "csv" and not (form.delimiter or form.names):
        first = next(iter(records.lines_of(_buffered(head), encoding)), "")
        delimiter = max(",\t;", key=first.count)
    return replace(form, encoding=encoding, quote=quote, delimiter=delimiter)


def _buffered(data: bytes) -> io.BufferedReader:
    return io.BufferedReader(cast(io.RawIOBase, io.BytesIO(data)))


def is_divisible(form: Form, uri: str) -> bool:
    """Tells whether tasks can share a file: its lines end with the byte of ASCII, uncompressed."""
    return not (
        form.kind in ("xlsx", "parquet")
        or uri.lower().endswith((*COMPRESSED,))
        or records.is_wide(form.encoding or "utf-8")
    )


def read(
    part: Part, columns: Sequence[str], form: Form, texts: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a file as batches: its columns of these names, and MALFORMED_LINE.

    Columns are strings, null where a row has none; those of Parquet keep their types, but what
    Spark cannot hold becomes text. A malformed record has only MALFORMED_LINE. texts: columns in
    which JSON must not hold a list or an object. Raises TableError.
    """
    with opened(part.uri, part.link) as file:
        if form.kind == "parquet":
            yield from _parquet_batches(file, part, columns)
            return
        rows = TextTable(file, part.uri, form, texts).rows(columns, part.start, part.end)
        while batch := [*islice(rows, BATCH)]:
            values = [row or [None] * len(columns) for _, row, _ in batch]
            arrays = [pa.array(column, pa.string()) for column in zip(*values, strict=True)]
            malformed = [text if row is None else None for _, row, text in batch]
            arrays.append(pa.array(malformed, pa.string()))
            yield pa.RecordBatch.from_arrays(arrays, names=[*columns, MALFORMED_LINE])


def check_columns(name: str, columns: Iterable[str], there: Sequence[str]) -> None:
    """Raises TableError for a column that is missing, or there twice."""
    for column in columns:
        if (count := there.count(column)) != 1:
            what = f"{count} columns" if count else "no column"
            raise TableError(f"{name}: {what} '{column}', it has: {', '.join(there)}")


def header_of(uri: str, form: Form) -> list[str]:
    """Returns the names of a file's columns; of JSON lines, those of its first lines.

    Raises TableError.
    """
    with opened(uri) as file:
        if form.kind == "parquet":
            return pq.ParquetFile(file).schema_arrow.names
        table = TextTable(file, uri, form)
        end = HEAD_BYTES if is_divisible(form, uri) else None
        names: dict[str, None] = {}
        for _, cells, _ in table.records(0, end):
            if not isinstance(cells, dict):
                break
            names |= dict.fromkeys(cells)
        return [*names] or table.names


@dataclass
class Scan:
    """What one reading of a part of a text file found."""

    names: list[str]
    """Names of the columns, but not of those without a name and a value."""
    rows: int = 0
    """Records, malformed ones too."""
    objects: int = 0
    """Records that are not malformed."""
    undecodable: int = 0
    """Records with bytes that could not be decoded."""
    good: int = 0
    """Records of characters beyond ASCII that could be decoded."""
    open_quotes: bool = False
    unknown: str | None = None
    """What is wrong with a value of the column with known values, if one is unknown."""
    fault: str = ""
    """What the reader said, if the file cannot be read to its end."""


def scan(part: Part, form: Form, known: tuple[str, Sequence[str]] | None = None) -> Scan:
    """Reads a part of a text file to its end. known: a column, and the values that it may have."""
    found, names, filled = Scan([]), dict[str, None](), set[int]()
    try:
        with opened(part.uri, part.link) as file:
            table = TextTable(file, part.uri, form)
            for number, cells, text in table.records(part.start, part.end):
                found.rows += 1
                texts: Iterable[str | None] = [text]
                if by_name := isinstance(cells, dict):
                    names |= dict.fromkeys(cells)
                    texts = cells.values()
                elif cells is not None:
                    texts = cells
                    filled.update(place for place in table.unnamed if cells[place])
                joined = "".join(filter(None, texts))
                if not joined.isascii():
                    bad = MARKED.search(joined) is not None
                    found.undecodable += bad
                    found.good += not bad
                found.objects += cells is not None
                if known and cells is not None and found.unknown is None:
                    row = cells if by_name else dict(zip(table.names, cells, strict=True))
                    if (value := row.get(known[0]) or None) not in known[1]:
                        line = "" if part.start else f"line {number:,}: "
                        held = f"the unknown value {value!r}" if value else "no value"
                        found.unknown = f"{line}column '{known[0]}' holds {held}"
            empty = {*table.unnamed} - filled
            found.names = [*names] or [n for k, n in enumerate(table.names) if k not in empty]
            found.open_quotes = table.open_quotes
    except TableError as error:
        found.fault = str(error)
    return found


# Parquet


@dataclass(frozen=True)
class Footer:
    """What the footer of a Parquet file says."""

    schema: pa.Schema
    """With the types as which Spark holds the columns."""
    rows: int
    row_groups: int
    in_python: bool
    """Whether Spark's reader cannot read the file as it is."""


UNREADABLE = {"BYTE_STREAM_SPLIT", "BROTLI", "LZO"}
"""Encodings and compressions that Spark's reader lacks."""


def read_footer(uri: str) -> Footer:
    """Reads the footer of a Parquet file. Raises TableError."""
    with opened(uri) as data:
        parquet = pq.ParquetFile(data, coerce_int96_timestamp_unit="us")
        schema, about = parquet.schema_arrow, parquet.metadata
        used = {":"} & {*uri.rpartition("/")[2]}  # Hadoop takes it for a scheme's
        for group in range(about.num_row_groups):
            for number in range(about.num_columns):
                chunk = about.row_group(group).column(number)
                used |= {chunk.compression, *chunk.encodings}
    held = [field.with_type(spark_type(field.type)) for field in schema]
    as_they_are = [pa.types.is_dictionary(one.type) or spark_holds(one.type) for one in schema]
    in_python = bool(used & (UNREADABLE | {":"})) or not all(as_they_are)
    return Footer(pa.schema(held), about.num_rows, about.num_row_groups, in_python)


def _parquet_batches(file: Any, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    table = pq.ParquetFile(file, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
    end = table.num_row_groups if part.end is None else part.end
    for batch in table.iter_batches(BATCH, [*range(part.start, end)], [*columns]):
        arrays = [_cast(column, spark_type(column.type)) for column in map(batch.column, columns)]
        arrays.append(pa.nulls(len(batch), pa.string()))
        yield pa.RecordBatch.from_arrays(arrays, names=[*columns, MALFORMED_LINE])


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(column.type, pa.BaseExtensionType):  # such as a UUID
        return pa.array([None if one is None else str(one) for one in column.to_pylist()], kind)
    return column.cast(kind)


def spark_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type as which Spark takes a column from Python, which knows one kind of list, and
    times of microseconds: the same, or else string."""
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_unsigned_integer(kind):
        return pa.decimal128(20, 0) if kind.bit_width == 64 else pa.int64()
    if isinstance(kind, pa.MapType):
        return pa.map_(spark_type(kind.key_type), spark_type(kind.item_type))
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(spark_type(field.type)) for field in kind])
    if kind.num_fields:
        return pa.list_(spark_type(kind.value_type))
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", kind.tz)
    return kind if spark_holds(kind) else pa.string()


def spark_holds(kind: pa.DataType) -> bool:
    """Tells whether Spark reads columns of a type of Parquet's as they are."""
    if kind.num_fields:  # a list, a map or a struct
        return all(spark_holds(kind.field(k).type) for k in range(kind.num_fields))
    if pa.types.is_timestamp(kind):
        return kind.unit != "ns"
    tests = (
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary),
        *(pa.types.is_large_binary, pa.types.is_boolean, pa.types.is_signed_integer),
        *(pa.types.is_float32, pa.types.is_float64, pa.types.is_date32, pa.types.is_decimal128),
    )
    return any(test(kind) for test in tests)
