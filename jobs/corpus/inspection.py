"""Checks the inputs before any work starts: text files whole; of Parquet, footers and origins."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StringType, StructField, StructType

from gaixie.jobs.corpus import files, reading
from gaixie.jobs.corpus.files import FoundFiles, shown
from gaixie.jobs.corpus.input import ONE_OF_ORIGINS, Input
from gaixie.jobs.corpus.parquet import SPARK_GLOB, read_table
from gaixie.jobs.corpus.reading import INPUT_FILE, InputFiles
from gaixie.udfs.command_line import UserError, say
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage import tables
from gaixie.udfs.storage.records import likely_encoding
from gaixie.udfs.storage.storage import File
from gaixie.udfs.storage.tables import MALFORMED_LINE, Scan, TableError, opened, read_footer

RESERVED = (
    *("pair_id", "source", "paraphrase", "origin", "reason", "stage"),
    *(*FEATURES, *OUTPUTS, MALFORMED_LINE, INPUT_FILE, "row_key", "fit", "_scored", "_unit"),
)
"""Columns that the job writes itself; compared without case."""

Wanted = Callable[[Input, File], bool]
"""Returns whether to read a file of an input."""


def inspect_inputs(
    spark: SparkSession, inputs: Iterable[FoundFiles], wanted: Wanted | None = None
) -> list[InputFiles]:
    """Checks all files of the inputs.

    wanted: selects the files to read; an input may be left with none. Raises UserError for a file
    that cannot be read, a missing column, a column of the wrong type, a column that collides with
    one of the job's, an unknown origin, or extra columns that clash.
    """
    inspected = []
    types: dict[str, tuple[str, str, DataType]] = {}
    for found in inputs:
        if wanted:
            new = [file for file in found.files if wanted(found.settings, file)]
            say(f"{found.settings.path}: {len(new)} of {len(found.files)} files are new")
            found = replace(found, files=new)
        inspected.append(source := _inspect(spark, found))
        for extra in source.extra_columns:
            first = (extra.name, found.settings.path, extra.dataType)
            name, path, known = types.setdefault(extra.name.lower(), first)
            if name != extra.name:
                fault = f"column '{extra.name}', but '{name}' in {path}: rename one"
                raise UserError(f"{found.settings.path}: {fault}")
            if known != extra.dataType:
                both = f"{extra.dataType.simpleString()}, but {known.simpleString()} in {path}"
                raise UserError(f"{found.settings.path}: column '{extra.name}' is {both}")
    return inspected


def _inspect(spark: SparkSession, found: FoundFiles) -> InputFiles:
    source = InputFiles(**vars(found), schema=StructType(), pieces={}, rows={}, in_python=False)
    if not found.files:
        return source
    origin, path = found.settings.origin_column, shown(found.files[0].uri)
    is_named = origin in found.folder_names
    for file in found.files if is_named else ():
        value = files.folder_columns(file.uri, found.settings.path)[str(origin)]
        _check_origin(shown(file.uri), origin, value)
    if found.kind == "parquet":
        source = _with_footers(spark, source)
    else:
        source = _with_scans(spark, source, None if is_named else origin)
    settings = files.recognised(found.settings, source.schema.names, path)
    source = replace(source, settings=settings)
    for name in settings.text_columns:
        if name not in found.settings.text_columns:
            side = "source" if name == settings.source_column else "paraphrase"
            say(f"{path}: column '{name}' is read as the {side}")
    _check_types(source, path)
    if origin and found.kind == "parquet" and not is_named:
        given = reading.column(origin).cast("string").alias("origin")
        rows = reading.rows_of(spark, source, source.files)
        unknown = rows.select(reading.file_of_row().alias("path"), given)
        unknown = unknown.where(F.col("origin").isNull() | ~F.col("origin").isin(*ORIGINS))
        [[first]] = unknown.agg(F.min(F.struct("path", "origin"))).collect()
        if first is not None:
            _check_origin(shown(first.path), origin, first.origin)
    return source


def _check_origin(path: str, name: str | None, value: str | None) -> None:
    if value not in ORIGINS:
        what = "no origin in a row" if value is None else f"the unknown origin {value!r}"
        raise UserError(f"{path}: column '{name}' holds {what}, {ONE_OF_ORIGINS}")


def _check_types(source: InputFiles, path: str) -> None:
    """Raises UserError for a sentence that is no text, or a column that the job writes itself."""
    settings = source.settings
    types = {own.name: own.dataType for own in source.schema}
    for name in settings.text_columns:
        is_list = name == settings.list_column
        kind = getattr(types[name], "elementType", types[name]) if is_list else types[name]
        if kind.typeName() not in ("string", "binary"):
            expected = "string" + " or a list of strings" * is_list
            found = f"{types[name].simpleString()}, expected {expected}"
            raise UserError(f"{path}: column '{name}' is {found}")
    fault = "has the name of a column that the job writes; rename it or remove it"
    if settings.carried is not None:
        if taken := {MALFORMED_LINE, INPUT_FILE} & {*types}:
            raise UserError(f"{path}: column '{min(taken)}' {fault}")
        return
    if settings.origin and "origin" in source.folder_names:
        say(f"{path}: --origin {settings.origin} instead of the origins that its folders name")
    for name, renamed in source.extra_names.items():
        if renamed.lower() in RESERVED or (renamed != name and renamed in map(str.lower, types)):
            if name == "origin" and settings.origin:
                fault += ", or read the origins from it: --origin-column origin instead of --origin"
            raise UserError(f"{path}: column '{name}' {fault}")
        if renamed != name:
            say(f"{settings.path}: the run carries its column '{name}' as '{renamed}'")


def _with_footers(spark: SparkSession, source: InputFiles) -> InputFiles:
    """Reads every footer, so that errors name the file that is not Parquet or lacks a column."""
    with ThreadPoolExecutor(16) as pool:
        try:
            footers = [*pool.map(read_footer, [file.uri for file in source.files])]
        except TableError as error:
            raise UserError(shown(str(error))) from None
    path, first = source.settings.path, shown(source.files[0].uri)
    expected = {own.name: own.type for own in footers[0].schema}
    for name, kind in expected.items():
        _check_fields(kind, f"{first}: column '{name}'")
    for file, footer in zip(source.files, footers, strict=True):
        if others := expected.keys() ^ {*footer.schema.names}:
            fault = f"column '{min(others)}' is not in every file of {path}"
            raise UserError(f"{shown(file.uri)}: {fault}")
        for own in footer.schema:
            if _spark_type(own.type) != _spark_type(expected[own.name]):
                types = f"{own.type}, expected {expected[own.name]} as in {first}"
                raise UserError(f"{shown(file.uri)}: column '{own.name}' is {types}")
    if not sum(footer.rows for footer in footers):
        raise UserError(f"{path}: no rows, expected at least one")
    schema = StructType([StructField(name, _spark_type(kind)) for name, kind in expected.items()])
    by_uri = dict(zip((file.uri for file in source.files), footers, strict=True))
    # Spark would look for the columns that folders name below one folder of all files alone.
    named = [footer.in_python or not _spark_can_name(spark, uri) for uri, footer in by_uri.items()]
    in_python = bool(source.folder_names) or any(named)
    alike = True
    if not in_python:
        of_python, schema = schema, read_table(spark, source.files[0].uri).schema
        alike = [own.dataType for own in of_python] == [own.dataType for own in schema]
    folders = [
        StructField(name, StringType()) for name in source.folder_names if name not in expected
    ]
    return replace(
        source,
        schema=StructType([*schema, *folders]),
        # A part of a file is read in Python, whose types must be those of Spark.
        pieces={uri: footer.row_groups if alike else 1 for uri, footer in by_uri.items()},
        rows={uri: footer.rows for uri, footer in by_uri.items()},
        in_python=in_python,
    )


def _check_fields(kind: pa.DataType, where: str) -> None:
    """Raises UserError if two fields in a column differ only in case, which Spark cannot hold."""
    fields = [kind.field(number) for number in range(kind.num_fields)]
    if pa.types.is_struct(kind) and len({field.name.lower() for field in fields}) < len(fields):
        raise UserError(f"{where}: fields {', '.join(kind.names)} differ only in case: rename one")
    for field in fields:
        _check_fields(field.type, where)


def _spark_can_name(spark: SparkSession, uri: str) -> bool:
    """Tells whether Spark finds a file of this name and no other: in the locale C, Java does only
    if it is ASCII."""
    if SPARK_GLOB.search(uri):
        return False
    if uri.isascii() or not files.local_path(uri):
        return True
    jvm: Any = spark._jvm
    return "UTF" in (jvm.java.lang.System.getProperty("sun.jnu.encoding") or "").upper()


def _spark_type(kind: pa.DataType) -> DataType:
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def _with_scans(spark: SparkSession, source: InputFiles, origin: str | None) -> InputFiles:
    """Reads all files of text once: finds their columns, and what is wrong with them.

    origin: the column of the files in which only ORIGINS may be.
    """
    known = (origin, ORIGINS) if origin else None
    pieces = reading.text_pieces(source.files, source.form)
    scans = _scans(spark, source, pieces, known)
    # A record that spans lines may begin in one piece and end in the next.
    again = [f for f in source.files if any(part.open_quotes for part in scans[f])]
    if again := [file for file in again if pieces[file.uri] > 1]:
        pieces |= {file.uri: 1 for file in again}
        scans |= _scans(spark, replace(source, files=again), pieces, known)
    names: dict[str, None] = {}
    for file, parts in scans.items():
        own = {name: None for part in parts for name in part.names}
        _check_scans(file, parts)
        odd = {name for name in {*own} ^ {*names} if not re.fullmatch(r"_c\d+", name)}
        if source.kind != "jsonl" and names and odd:
            fault = f"column '{min(odd)}' is not in every file"
            raise UserError(f"{shown(file.uri)}: {fault} of {source.settings.path}")
        names |= own
    if not any(part.objects for parts in scans.values() for part in parts):
        what, rows = "no rows", sum(part.rows for parts in scans.values() for part in parts)
        if source.kind == "jsonl":
            what = "no JSON object, expected one a line (jq -c .[] makes lines of a JSON array)"
        elif rows:
            what = f"all {rows:,} rows are malformed (the header has {len(names)} fields)"
        raise UserError(f"{shown(source.files[0].uri)}: {what}")
    for file, parts in scans.items():
        unknown = next((part.unknown for part in parts if part.unknown), None)
        if unknown and origin in names:
            raise UserError(f"{shown(file.uri)}, {unknown}, {ONE_OF_ORIGINS}")
    schema = StructType([StructField(n, StringType()) for n in (*names, *source.folder_names)])
    return replace(source, schema=schema, pieces=pieces)


def _check_scans(file: File, parts: list[Scan]) -> None:
    """Raises UserError if a file cannot be read to its end, or has another encoding."""
    for part in parts:
        if part.fault:
            raise UserError(shown(part.fault))
    if any(part.undecodable for part in parts) and not any(part.good for part in parts):
        with opened(file.uri) as data:
            likely = likely_encoding(data.peek())
        likely = "gb18030" if likely in (None, "utf-8") else likely
        raise UserError(f"{shown(file.uri)}: {files.GIVE_ENCODING} {likely}")


def _scans(
    spark: SparkSession,
    source: InputFiles,
    pieces: Mapping[str, int],
    known: tuple[str, Sequence[str]] | None,
) -> dict[File, list[Scan]]:
    """Reads every part of every file; in this process if they are small."""
    groups = reading.parts_of(source.files, pieces, source.piece_length)
    look = partial(tables.scan, form=source.form, known=known)
    if source.size < files.SMALL_BYTES:
        found = [look(part) for group in groups for part in group]
    else:

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in reading.numbers(batches):
                scans = pickle.dumps([look(part) for part in groups[number]])
                yield pa.record_batch({"number": [number], "scans": [scans]})

        tasks = reading.tasks(spark, len(groups))
        rows = tasks.mapInArrow(work, "number long, scans binary").collect()
        by_group = {row.number: pickle.loads(row.scans) for row in rows}
        found = [scan for number in range(len(groups)) for scan in by_group[number]]
    by_uri: dict[str, list[Scan]] = {file.uri: [] for file in source.files}
    for part, scan in zip((part for group in groups for part in group), found, strict=True):
        by_uri[part.uri].append(scan)
    return {file: by_uri[file.uri] for file in source.files}
