"""Opens the input of the methods: a table, a translation memory, or parallel files of lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate, islice

import pyarrow as pa
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.accounts import input_entry
from gaixie.jobs.corpus.inputs import MALFORMED_LINE, check_encoding, inspect_inputs, read_files
from gaixie.jobs.corpus.parquet import CHECKED, PARQUET
from gaixie.jobs.corpus.paths import local_path
from gaixie.jobs.corpus.storage import LITERAL, Storage
from gaixie.jobs.corpus.unreadable import SPARK_ERRORS, set_aside, unreadable_files
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.settings import BuildSettings
from gaixie.jobs.pairs.tmx import END, is_whole, units, units_of
from gaixie.udfs.storage.manifest import RunInput
from gaixie.udfs.storage.storage import File, open_file

SIDES = {"human": "source", "machine": "paraphrase", "foreign": "foreign"}
"""Maps the settings that name files of lines to their columns."""

UNITS = 200_000
"""TMX units in a file of rows."""

FIRST = 10_000
"""TMX units that are checked before work starts."""


@dataclass(frozen=True)
class Rows:
    """The rows of an input, and its entry in a manifest."""

    rows: DataFrame
    """source, paraphrase, malformed_line, and foreign if there is one."""
    entries: list[RunInput]
    files: list[File]
    """Files that Spark reads."""
    read: Callable[[list[File]], DataFrame] | None = None
    """Reads some of the files."""
    convert: Callable[[str], DataFrame] | None = None
    """Writes all rows as Parquet to a folder and reads them; the rows above are the first of
    them."""

    def blamed(self) -> AbstractContextManager[None]:
        """Raises JobError if a file is at fault for a Spark failure in the block."""
        return _blamed(self.files, self.read) if self.read else nullcontext()


@contextmanager
def _blamed(files: list[File], read: Callable[[list[File]], DataFrame]) -> Iterator[None]:
    try:
        yield
    except SPARK_ERRORS as error:
        set_aside(unreadable_files(error, files, read), files, {}, "stop")
        raise


def open_input(spark: SparkSession, storage: Storage, settings: BuildSettings) -> Rows:
    """Opens the input. Raises JobError for a missing or unusable file or column."""
    if settings.tmx:
        return _open_tmx(spark, storage, settings)
    if settings.input:
        return _open_table(spark, storage, settings)
    return _open_lines(spark, storage, settings.moses)


def _open_table(spark: SparkSession, storage: Storage, settings: BuildSettings) -> Rows:
    table = settings.table()
    [source] = inspect_inputs(spark, storage, [table], "stop")
    check_encoding(spark, source, source.files)
    rows = read_files(spark, source, source.files)
    if source.format == "jsonl" and table.list_column:  # a list is read as the text of its JSON
        text = F.col("paraphrase")
        parsed = F.when(text.startswith("["), F.from_json(text, "array<string>"))
        rows = rows.withColumn("paraphrase", F.coalesce(parsed, F.array(text)))
    return Rows(rows, [input_entry(source)], source.files, partial(read_files, spark, source))


def _open_tmx(spark: SparkSession, storage: Storage, settings: BuildSettings) -> Rows:
    """Reads the first units of TMX files now, and all of them once the building has started."""
    path = settings.input or ""
    files = storage.list_files(path)
    languages = settings.source_lang or "", settings.target_lang
    is_versions = settings.method == "versions"
    names = ("source", "paraphrase") if is_versions else ("foreign", "source")
    schema = pa.schema([(name, pa.string()) for name in (*names, MALFORMED_LINE)])

    def tables(size: int) -> Iterator[pa.Table]:
        for file in files:
            name = local_path(file.uri) or file.uri
            with open_file(name) as opened:
                rows = units(opened, name, *languages)
                while batch := list(islice(rows, size)):
                    columns = [*zip(*batch, strict=True), [None] * len(batch)]
                    yield pa.table([pa.array(c, pa.string()) for c in columns], schema)

    def convert(folder: str) -> DataFrame:
        rows = _units_by_executors(spark, files, languages, schema, folder)
        if rows is None or not rows.where(F.col(MALFORMED_LINE).isNotNull()).isEmpty():
            storage.delete(folder)
            for number, table in enumerate(tables(UNITS)):
                storage.write_table(f"{folder}/{number:06d}.parquet", table)
        return spark.read.options(**CHECKED).parquet(folder)

    first = next(tables(FIRST), None)
    if first is None:
        raise JobError(f"{path}: no units, expected at least one")
    for language, name in zip(languages, names, strict=True):
        if first[name].null_count == len(first):
            said = f"no unit among the first {len(first):,} has the language '{language}'"
            raise JobError(f"{path}: {said}")
    return Rows(spark.createDataFrame(first), [_entry(path, "tmx", files)], files, None, convert)


def _units_by_executors(
    spark: SparkSession,
    files: list[File],
    languages: tuple[str, str],
    schema: pa.Schema,
    folder: str,
) -> DataFrame | None:
    """Writes the units of TMX files as Parquet, in pieces that end with units, and reads them.

    Returns None if a file is not whole. A malformed_line stands for units that could not be parsed.
    """
    for file in files:
        with open_file(local_path(file.uri) or file.uri) as opened:
            if not is_whole(opened):
                return None

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows: list[tuple[str | None, ...]]
            try:
                found = units_of(batch.column(0).to_pylist(), *languages)
                rows = [(*row, None) for row in found]
            except JobError as error:
                rows = [(None, None, str(error))]
            if rows:
                arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
                yield pa.record_batch(arrays, schema)

    lines = spark.read.options(**LITERAL, lineSep=END).text([file.uri for file in files])
    fields = ", ".join(f"{name} string" for name in schema.names)
    rows = lines.select(F.col("value").cast("binary")).mapInArrow(work, fields)
    rows.write.options(**PARQUET).mode("overwrite").parquet(folder)
    return spark.read.options(**CHECKED).parquet(folder)


def _open_lines(spark: SparkSession, storage: Storage, paths: dict[str, str]) -> Rows:
    """Joins lines with the same number, from files that must have equally many lines."""

    def read(some: list[File]) -> DataFrame:
        return spark.read.options(**LITERAL).text([file.uri for file in some])

    tables, entries, counts, all_files = [], [], {}, []
    for side, path in paths.items():
        files = storage.list_files(path)
        if len(files) != 1:
            raise JobError(f"{path}: {len(files)} files, expected one with a sentence a line")
        lines = spark.sparkContext.textFile(re.sub(r"([*?\[\]{}\\])", r"\\\1", files[0].uri))
        entries.append(_entry(path, "lines", files))
        with _blamed(files, read):
            sizes = lines.mapPartitions(lambda part: [sum(1 for _ in part)]).collect()
            counts[path], first_of = sum(sizes), [0, *accumulate(sizes)]
            schema = f"line long, `{SIDES[side]}` string"
            tables.append(spark.createDataFrame(_numbered(lines, first_of), schema))
        all_files += files
    (first, expected), *others = counts.items()
    if not expected:
        raise JobError(f"{first}: no lines, expected at least one")
    for path, count in others:
        if count != expected:
            raise JobError(
                f"{path}: {count:,} lines, expected {expected:,}, as many as {first} has"
            )
    rows = reduce(lambda a, b: a.join(b, "line"), tables).drop("line")
    rows = rows.withColumn(MALFORMED_LINE, F.lit(None).cast("string"))
    return Rows(rows, entries, all_files, read)


def _numbered(lines: RDD[str], first_of: list[int]) -> RDD[tuple[int, str]]:
    """Numbers lines. first_of: the number of each partition's first line."""
    return lines.mapPartitionsWithIndex(lambda k, part: enumerate(part, first_of[k]))


def _entry(path: str, kind: str, files: list[File]) -> RunInput:
    size = sum(file.size for file in files)
    return RunInput(path=path, format=kind, files=len(files), bytes=size)
