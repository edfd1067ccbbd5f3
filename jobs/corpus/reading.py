"""Reads the files of an input as a Spark table, once jobs/corpus/inspection.py has checked them.

Spark itself reads Parquet. Other formats, and Parquet that Spark would misread, are read in Python
by gaixie.udfs.storage.tables, in one task for each file or part of a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from urllib.parse import quote, unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from gaixie.jobs.corpus.files import FoundFiles, folder_columns, shown
from gaixie.jobs.corpus.input import LICENSE
from gaixie.jobs.corpus.parquet import CHECKED, SPARK_ERRORS
from gaixie.udfs.command_line import UserError
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import tables
from gaixie.udfs.storage.records import UNDECODABLE
from gaixie.udfs.storage.storage import File, link_to, spark_uri
from gaixie.udfs.storage.tables import MALFORMED_LINE, Form, Part, TableError, is_divisible
from gaixie.udfs.text.validate import MALFORMED

NO_ORIGIN = "unknown"
"""Origin of a malformed line in an input whose origins are in a column."""

INPUT_FILE = "input_file"
"""Column that holds the URI of a row's file, percent-encoded; see file_of_row."""

SCORED = ("pair_id", *FEATURES, *OUTPUTS, "stage")
"""Columns of a run's scored pairs. They are left out if such pairs are read again."""

RENAMED = {"pair_id": "input_pair_id"}
"""Input columns that are carried through under another name, because the job writes its own."""

PART_BYTES, OPEN_BYTES = 16_000_000, 1_000_000
"""Bytes that one task reads, and what opening a file costs in such bytes."""

Span = tuple[int, int]
"""A part of one file: its first row group or byte, and the first behind it."""


@dataclass(frozen=True)
class InputFiles(FoundFiles):
    """An input after its inspection; its settings have the names of the columns recognised."""

    schema: StructType
    """Columns of the files and of their folders; text formats have only strings."""
    pieces: dict[str, int]
    """Number of pieces in which each file can be read: row groups, or PART_BYTES of text."""
    rows: dict[str, int]
    """Rows of each file, if its footer says so (Parquet)."""
    in_python: bool
    """Whether Spark's reader cannot read these files as they are."""

    @property
    def piece_length(self) -> int:
        """Returns the length of a piece, in row groups or bytes."""
        return 1 if self.kind == "parquet" else PART_BYTES

    def spans(self, file: File, count: int) -> Sequence[Span | None]:
        """Divides a file into up to so many parts of about equal size; None is the whole file."""
        pieces = self.pieces[file.uri]
        count = min(count, pieces)
        if count < 2:
            return [None]
        places = (self.piece_length * round(pieces * k / count) for k in range(count + 1))
        return [*pairwise(places)]

    @property
    def extra_names(self) -> dict[str, str]:
        """Maps the names of carried columns to their names in the run."""
        if self.settings.carried is not None:
            return self.settings.carried
        used = {*self.settings.text_columns}
        if {*SCORED} <= {*self.schema.names, "stage"}:
            used |= {*SCORED}
        if "origin" in self.folder_names:
            used.add("origin")
        return {name: RENAMED.get(name, name) for name in self.schema.names if name not in used}

    @property
    def extra_columns(self) -> list[StructField]:
        """Returns the columns that are carried through, as the run stores them."""
        types = {own.name: own.dataType for own in self.schema}
        columns = [StructField(name, types[own]) for own, name in self.extra_names.items()]
        with_license = self.settings.license and self.files
        return columns + [StructField(LICENSE, StringType())] * bool(with_license)


def column(name: str) -> Column:
    """Returns the column of this name, whatever characters are in it."""
    return F.col(f"`{name.replace('`', '``')}`")


def read_files(
    spark: SparkSession, source: InputFiles, files: list[File], span: Span | None = None
) -> DataFrame:
    """Reads some files of an input: source, paraphrase, origin, MALFORMED_LINE, INPUT_FILE, extra
    columns.

    All columns are strings except extra columns and columns of lists, which keep their types.
    span: of a single file, what begins there.
    """
    settings = source.settings
    malformed = F.col(MALFORMED_LINE)
    if settings.origin:
        origin = F.lit(settings.origin)
    else:  # a malformed line has nothing in that column
        origin = column(settings.origin_column or "")
        origin = F.when(malformed.isNull(), origin).otherwise(NO_ORIGIN)
    lists = source.schema[settings.paraphrase_column].dataType.typeName() == "array"
    text = "array<string>" if lists else "string"
    return rows_of(spark, source, files, span).select(
        column(settings.source_column).cast("string").alias("source"),
        column(settings.paraphrase_column).cast(text).alias("paraphrase"),
        origin.cast("string").alias("origin"),
        malformed.cast("string").alias(MALFORMED_LINE),
        INPUT_FILE,
        *[column(own).alias(name) for own, name in source.extra_names.items()],
        *([F.lit(settings.license).alias(LICENSE)] if settings.license else []),
    )


def rows_of(
    spark: SparkSession, source: InputFiles, files: list[File], span: Span | None = None
) -> DataFrame:
    """Reads some files of an input, or a span of one: the columns of its schema, MALFORMED_LINE,
    and INPUT_FILE."""
    if source.kind == "parquet" and not (source.in_python or span):
        reader = spark.read.options(**CHECKED).schema(source.schema)
        read = reader.parquet(*[spark_uri(file.uri) for file in files])
        name = read.metadataColumn("_metadata").getField("file_path")
        return read.withColumns({MALFORMED_LINE: F.lit(None), INPUT_FILE: name})
    form, folders, texts = source.form, source.folder_names, source.settings.plain_columns
    names = [name for name in source.schema.names if name not in folders]
    groups = parts_of(files, source.pieces, source.piece_length)
    if span:
        groups = [[part] for group in groups for part in group if span[0] <= part.start < span[1]]
    path = source.settings.path
    constants = {f.uri: folder_columns(f.uri, path) | {INPUT_FILE: quote(f.uri)} for f in files}
    order = [*source.schema.names, MALFORMED_LINE, INPUT_FILE]

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers(batches):
            for part in groups[number]:
                for batch in tables.read(part, names, form, texts):
                    for name, value in constants[part.uri].items():
                        constant = pa.array([value] * len(batch), pa.string())
                        batch = batch.append_column(name, constant)
                    yield batch.select(order)

    added = [StructField(name, StringType()) for name in (MALFORMED_LINE, INPUT_FILE)]
    schema = StructType([*source.schema, *added])
    return tasks(spark, len(groups)).mapInArrow(work, schema)


def file_of_row() -> Column:
    """Returns the URI of a row's file as a manifest lists it."""
    name = F.url_decode(F.replace(F.col(INPUT_FILE), F.lit("+"), F.lit("%2B")))
    return F.replace(name, F.lit("file:///"), F.lit("file:/"))


def tasks(spark: SparkSession, count: int) -> DataFrame:
    """Returns a table of the numbers of tasks, each in its own partition."""
    return spark.range(0, count, 1, max(count, 1))


def numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def text_pieces(files: Iterable[File], form: Form) -> dict[str, int]:
    """Returns by URI the number of pieces in which tasks can read each file of text."""
    return {
        file.uri: ceil(file.size / PART_BYTES) if is_divisible(form, file.uri) else 1
        for file in files
    }


def parts_of(files: Sequence[File], pieces: Mapping[str, int], length: int) -> list[list[Part]]:
    """Divides files into their pieces, and groups these into tasks of about PART_BYTES.

    length: of a piece, in row groups or bytes.
    """
    groups: list[list[Part]] = []
    size = PART_BYTES
    for file in files:
        count, link = max(pieces[file.uri], 1), link_to(file.uri)
        for start, end in pairwise([*(length * k for k in range(count)), None]):
            size += file.size // count + OPEN_BYTES
            if size > PART_BYTES:
                groups.append([])
                size = file.size // count + OPEN_BYTES
            groups[-1].append(Part(file.uri, start or 0, end, link))
    return groups


@contextmanager
def errors_name_the_file(files: Sequence[File], form: Form) -> Iterator[None]:
    """Raises UserError that names the file, and what the reader said, if a Spark job of the block
    failed for a file. Other errors pass through.

    Spark does not name a file whose page proves broken when its values are used; then this process
    looks for it.
    """
    try:
        yield
    except SPARK_ERRORS as error:
        text = str(error)
        if said := re.search(r"TableError: (.+)", text):
            raise UserError(re.sub("^file:", "", said[1])) from error
        named = re.search(r"reading file (\S.*?)\.\s+SQLSTATE", text)
        causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)$", text, re.MULTILINE)
        if named:
            path = shown(re.sub("^file:/+", "file:/", unquote(named[1])))
            raise UserError(f"{path}: {causes[-1] if causes else 'cannot be read'}") from error
        if form.kind == "parquet" and re.search("(?i)parquet|checksum|decompress|corrupt", text):
            try:
                for file in files:
                    names = tables.header_of(file.uri, form)
                    for _ in tables.read(Part(file.uri), names, form):
                        pass
            except TableError as broken:
                raise UserError(re.sub("^file:", "", str(broken))) from None
        raise


def line_fault() -> Column:
    """Returns the quarantine reason of a malformed line; null for any other row."""
    line = F.col(MALFORMED_LINE)
    broken = F.contains(line, F.lit(UNDECODABLE))
    reason = F.when(broken, F.lit("undecodable")).otherwise(F.lit(MALFORMED))
    return F.when(line.isNotNull(), reason)
