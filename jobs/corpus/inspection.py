"""Finds the inputs of a job, and checks every file of them before any work starts."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StringType, StructField, StructType

from gaixie.jobs.corpus.files import (
    choose_files,
    find_files,
    folder_columns,
    local_path,
    names_columns_throughout,
    shown,
)
from gaixie.jobs.corpus.input import LICENSE, Input
from gaixie.jobs.corpus.parquet import read_table
from gaixie.jobs.corpus.reading import (
    InputFiles,
    column,
    numbers,
    parts_of,
    rows_of,
    tasks,
)
from gaixie.udfs.command_line import UserError, say
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage import tables
from gaixie.udfs.storage.records import UNDECODABLE, likely_encoding
from gaixie.udfs.storage.storage import File
from gaixie.udfs.storage.tables import MALFORMED_LINE, Footer, Scan, TableError, opened, read_footer

RESERVED = (
    *("pair_id", "source", "paraphrase", "origin", "reason", "stage"),
    *(*FEATURES, *OUTPUTS, MALFORMED_LINE, "row_key", "fit", "_scored", "_unit"),
)
"""Columns that the job writes itself; compared without case."""

MAX_COLUMNS = 5_000
"""Maximum columns of a scored table. With 20,000, planning alone fills a heap of 1 GB."""

SMALL_BYTES = 10_000_000
"""Files of less are scanned in this process, before Spark starts (about 100,000 pairs)."""

GIVE_ENCODING = "it is not UTF-8: give its encoding"

LISTED = 5
"""Names of files that a line lists."""


Wanted = Callable[[Input, File], bool]
"""Returns whether to read a file of an input."""


# Before Spark starts


def find_inputs(inputs: Iterable[Input]) -> list[InputFiles]:
    """Finds the files of every input, and looks at the first of each.

    Raises UserError for a missing path, an empty input, an unknown format, or a first file that
    cannot be read or has no such column.
    """
    return [_find(settings) for settings in inputs]


def _find(settings: Input) -> InputFiles:
    found, others = find_files(settings.path)
    if not found:
        raise UserError(f"{settings.path}: no data, expected at least one file with rows")
    kind, files = choose_files(settings, found)
    chosen = {file.uri for file in files}
    left_out = [*(file.uri for file in found if file.uri not in chosen), *others]
    if left_out:
        said = f"{len(files)} {kind} files; left out {len(left_out)}: {_listed(left_out)}"
        say(f"{settings.path}: {said}")
    source = InputFiles(settings, settings, kind, StructType(), files, left_out)
    first = files[0].uri
    try:
        names = tables.header_of(first, source.form)
    except TableError as error:
        raise UserError(f"{shown(first)}{_after(first, error)}") from None
    source.folder_names = [*folder_columns(first, settings.path)]
    for file in files:
        if [*folder_columns(file.uri, settings.path)] != source.folder_names:
            told = ", ".join(source.folder_names) or "none"
            raise UserError(f"{shown(file.uri)}: its folders name other columns than {told}")
    if kind != "jsonl":
        _check_names([*names, *source.folder_names], shown(first), source)
    return source


def _listed(uris: Sequence[str]) -> str:
    names = [uri.rpartition("/")[2] for uri in uris]
    return ", ".join(names[:LISTED]) + ", …" * (len(names) > LISTED)


def _after(uri: str, error: Exception) -> str:
    """Returns what an error says of a file, after the file's name."""
    said = str(error).removeprefix(uri)
    return said if said != str(error) else f": {said}"


def _check_names(names: list[str], path: str, source: InputFiles) -> None:
    """Recognises the two sentences, and checks the names of the columns.

    Raises UserError if a requested column is missing, two columns have one name, or there are more
    columns than Java has memory for.
    """
    settings = source.settings
    for side in ("source", "paraphrase"):
        name = f"{side}_column"
        known = tables.known_as(names, side)
        if name not in settings.model_fields_set and side not in names and known:
            say(f"{path}: column '{known}' is read as the {side}")
            settings = settings.model_copy(update={name: known})
    source.settings = settings
    if settings.carried is None and len(names) > MAX_COLUMNS:
        raise UserError(
            f"{path}: {len(names):,} columns, and a run carries all of them; Java runs out of "
            f"memory with more than {MAX_COLUMNS:,}: remove columns that are not needed"
        )
    options = {
        settings.source_column: "--source-column names another",
        settings.paraphrase_column: "--paraphrase-column names another",
        settings.origin_column: "give --origin, or --origin-column for another",
    }
    texts = settings.text_columns
    for wanted in dict.fromkeys([*texts, *(settings.carried or ())]):
        if wanted not in names:
            there = ", ".join(names) or "none"
            if not "".join(names).isprintable():
                kind = (
                    "UTF-16 (--encoding utf-16-le)" if "\0" in "".join(names) else "a binary file"
                )
                raise UserError(f"{path}: no column '{wanted}'; it looks like {kind}")
            hint = f"; {GIVE_ENCODING}" if UNDECODABLE in there else ""
            option = f"; {options[wanted]}" if wanted in options else ""
            raise UserError(f"{path}: no column '{wanted}', it has: {there}{hint or option}")
    if settings.license and any(name.lower() == LICENSE for name in names):
        raise UserError(
            f"{path}: has a column '{LICENSE}', but the settings state the licence "
            f"{settings.license!r} for all its pairs; remove one of the two"
        )
    known_names: dict[str, str] = {}
    for name in names:
        if (other := known_names.setdefault(name.lower(), name)) != name:
            raise UserError(
                f"{path}: columns '{other}' and '{name}' differ only in case: rename one"
            )
    if twice := [name for name in known_names.values() if names.count(name) > 1]:
        raise UserError(f"{path}: two columns are named '{twice[0]}': rename one")


# With Spark


def inspect_inputs(
    spark: SparkSession, inputs: list[InputFiles], wanted: Wanted | None = None
) -> list[InputFiles]:
    """Checks all files of the inputs, and enters what it finds.

    wanted: selects the files to read; an input may be left with none. Raises UserError for a file
    that cannot be read, a missing column, a column of the wrong type, a column that collides with
    one of the job's, an unknown origin, or extra columns that clash.
    """
    for source in inputs:
        if wanted:
            found = source.files
            source.files = [file for file in found if wanted(source.given, file)]
            say(f"{source.settings.path}: {len(source.files)} of {len(found)} files are new")
        if not source.files:
            continue
        if source.format == "parquet":
            _inspect_parquet(spark, source)
        else:
            _inspect_text(spark, source)
        _check_columns(source)
        origin = source.settings.origin_column
        if origin and (source.format == "parquet" or origin in source.folder_names):
            _check_origins(spark, source)
        for own, name in source.extra_names.items():
            if own != name:
                say(f"{source.settings.path}: the run carries its column '{own}' as '{name}'")
    check_extra_columns(inputs)
    return inputs


def check_extra_columns(inputs: list[InputFiles]) -> None:
    """Raises UserError if a carried column has two types."""
    types: dict[str, tuple[str, DataType]] = {}
    for source in inputs:
        for extra in source.extra_columns:
            path, known = types.setdefault(extra.name, (source.settings.path, extra.dataType))
            if known != extra.dataType:
                both = f"{extra.dataType.simpleString()}, but {known.simpleString()} in {path}"
                raise UserError(f"{source.settings.path}: column '{extra.name}' is {both}")


def _check_fields(kind: pa.DataType, where: str) -> None:
    """Raises UserError if two fields in a column differ only in case, which Spark cannot hold."""
    if isinstance(kind, pa.StructType):
        names = [inner.name for inner in kind]
        lower = [name.lower() for name in names]
        if twice := [name for name in names if lower.count(name.lower()) > 1]:
            both = "' and '".join(twice[:2])
            raise UserError(f"{where}: its fields '{both}' differ only in case: rename one")
    for number in range(kind.num_fields):
        _check_fields(kind.field(number).type, where)


def _footer(file: File) -> Footer:
    try:
        footer = read_footer(file.uri)
    except TableError as error:
        raise UserError(f"{shown(file.uri)}{_after(file.uri, error)}") from None
    for own in footer.schema:
        _check_fields(own.type, f"{shown(file.uri)}: column '{own.name}'")
    return footer


def _inspect_parquet(spark: SparkSession, source: InputFiles) -> None:
    """Reads every footer, so that errors name the file that is not Parquet or lacks a column."""
    with ThreadPoolExecutor(16) as pool:
        footers = dict(zip(source.files, pool.map(_footer, source.files), strict=True))
    first = source.files[0]
    expected = footers[first].schema
    for file, footer in footers.items():
        _check_alike(footer.schema, expected, source, file, first)
        source.rows[file.uri], source.row_groups[file.uri] = footer.rows, footer.row_groups
        in_python = footer.in_python or not _java_can_name(spark, file.uri)
        if in_python or not names_columns_throughout(file.uri, source.settings.path):
            source.in_python.add(file.uri)
    if str(spark.sparkContext.master).startswith("local"):  # a stale .crc beside a file is no fault
        jvm: Any = spark._jvm
        jvm.org.apache.hadoop.fs.FileSystem.getLocal(
            spark._jsc.hadoopConfiguration()
        ).setVerifyChecksum(False)
    if not sum(source.rows.values()):
        raise UserError(f"{source.settings.path}: no rows, expected at least one")
    schema = StructType([StructField(own.name, _spark_type(own.type)) for own in expected])
    if source.in_python:
        source.in_python = {file.uri for file in source.files}
    else:
        of_python, schema = schema, read_table(spark, first.uri).schema
        source.alike = [own.dataType for own in of_python] == [
            schema[own.name].dataType for own in of_python
        ]
    held = {name: StringType() for name in source.folder_names if name not in schema.names}
    source.schema = StructType([*schema, *(StructField(name, kind) for name, kind in held.items())])


def _spark_type(kind: pa.DataType) -> DataType:
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def _check_alike(
    schema: pa.Schema, expected: pa.Schema, source: InputFiles, file: File, first: File
) -> None:
    """Raises UserError if a file's columns differ from those of the input's first file."""
    path = shown(file.uri)
    if others := {*expected.names} ^ {*schema.names}:
        raise UserError(
            f"{path}: column '{min(others)}' is not in every file of {source.settings.path}"
        )
    for own in schema:
        wanted = expected.field(own.name).type
        if _spark_type(own.type) != _spark_type(wanted):
            types = f"{own.type}, expected {wanted} as in {shown(first.uri)}"
            raise UserError(f"{path}: column '{own.name}' is {types}")


def _java_can_name(spark: SparkSession, uri: str) -> bool:
    """Tells whether Java finds a file of this name: in the locale C, only if it is ASCII."""
    if uri.isascii() or not local_path(uri):
        return True
    jvm: Any = spark._jvm
    return "UTF" in (jvm.java.lang.System.getProperty("sun.jnu.encoding") or "").upper()


def _inspect_text(spark: SparkSession, source: InputFiles) -> None:
    """Reads all files once: finds their columns, and what is wrong with them."""
    known = None
    if source.settings.origin_column and source.settings.origin_column not in source.folder_names:
        known = source.settings.origin_column, ORIGINS
    scans = _scans(spark, source, known)
    if source.format in ("csv", "tsv"):
        source.whole = {file.uri for file, parts in scans.items() if _open(parts)}
        again = [f for f in source.files if f.uri in source.whole and len(scans[f]) > 1]
        scans |= _scans(spark, replace(source, files=again), known) if again else {}
    names: dict[str, None] = {}
    for file, parts in scans.items():
        own = {name: None for part in parts for name in part.names}
        _check_scans(file, parts)
        if source.format != "jsonl" and names and {*own} != {*names}:
            other = min({*own} ^ {*names})
            path = source.settings.path
            raise UserError(f"{shown(file.uri)}: column '{other}' is not in every file of {path}")
        names |= own
    if not any(part.objects for parts in scans.values() for part in parts):
        first = shown(source.files[0].uri)
        what = "rows"
        if source.format == "jsonl":
            what = "JSON object found, expected one a line (jq -c .[] makes lines of a JSON array)"
        raise UserError(f"{first}: no {what}")
    fields = [StructField(name, StringType()) for name in [*names, *source.folder_names]]
    source.schema = StructType(fields)
    for file, parts in scans.items():
        unknown = next((part.unknown for part in parts if part.unknown), None)
        if unknown and source.settings.origin_column in names:
            held = f"{unknown}, expected one of {', '.join(ORIGINS)}"
            raise UserError(f"{shown(file.uri)}, {held}")


def _open(parts: list[Scan]) -> bool:
    return any(part.open_quotes for part in parts)


def _check_scans(file: File, parts: list[Scan]) -> None:
    """Raises UserError if a file cannot be read to its end, or has another encoding."""
    for part in parts:
        if part.fault:
            raise UserError(shown(file.uri) + part.fault.removeprefix(file.uri))
    if any(part.undecodable for part in parts) and not any(part.good for part in parts):
        with opened(file.uri) as data:
            likely = likely_encoding(data.peek())
        likely = "gb18030" if likely in (None, "utf-8") else likely
        raise UserError(f"{shown(file.uri)}: {GIVE_ENCODING}, such as --encoding {likely}")


def _scans(
    spark: SparkSession, source: InputFiles, known: tuple[str, Sequence[str]] | None
) -> dict[File, list[Scan]]:
    """Reads every part of every file; in this process if they are small."""
    form = source.form
    parts = parts_of(source.files, form, {}, source.whole)
    look = partial(tables.scan, form=form, known=known)
    if sum(file.size for file in source.files) < SMALL_BYTES:
        found = [look(part) for group in parts for part in group]
    else:

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in numbers(batches):
                scans = pickle.dumps([look(part) for part in parts[number]])
                yield pa.record_batch({"number": [number], "scans": [scans]})

        rows = tasks(spark, len(parts)).mapInArrow(work, "number long, scans binary").collect()
        held = {row.number: pickle.loads(row.scans) for row in rows}
        found = [scan for number in range(len(parts)) for scan in held[number]]
    by_uri: dict[str, list[Scan]] = {file.uri: [] for file in source.files}
    for part, scan in zip((part for group in parts for part in group), found, strict=True):
        by_uri[part.uri].append(scan)
    return {file: by_uri[file.uri] for file in source.files}


def _check_columns(source: InputFiles) -> None:
    """Recognises and checks the columns of an input, from its schema."""
    path = shown(source.files[0].uri)
    _check_names(source.schema.names, path, source)
    settings = source.settings
    types = {own.name: own.dataType for own in source.schema}
    for name in settings.text_columns:
        kind, expected = types[name], "string"
        if name == settings.list_column:
            expected += " or a list of strings"
            kind = getattr(kind, "elementType", kind)
        if kind.typeName() not in ("string", "binary"):
            raise UserError(
                f"{path}: column '{name}' is {types[name].simpleString()}, expected {expected}"
            )
    carried = source.extra_names if settings.carried is None else {}
    for name, renamed in carried.items():
        clash = renamed.lower() in RESERVED or (renamed != name and renamed in types)
        if clash:
            fault = "has the name of a column that the job writes; rename it or remove it"
            if name == "origin" and settings.origin:
                fault += ", or read the origins from it: --origin-column origin instead of --origin"
            raise UserError(f"{path}: column '{name}' {fault}")
    left = [n for n in source.schema.names if n not in (*carried, *settings.text_columns)]
    if left and settings.carried is None:
        names = ", ".join(left[:LISTED]) + ", …" * (len(left) > LISTED)
        say(f"{settings.path}: its columns {names} are not read")


def _check_origins(spark: SparkSession, source: InputFiles) -> None:
    """Raises UserError that names the first file with an origin not in ORIGINS; of text, only those
    of folders, since its scan has seen the others."""
    name = source.settings.origin_column or ""
    for file in source.files if name in source.folder_names else ():
        value = folder_columns(file.uri, source.settings.path)[name]
        if value not in ORIGINS:
            raise _unknown_origin(shown(file.uri), name, value)
    if name in source.folder_names:
        return
    file_path = F.input_file_name() if not source.in_python else F.lit("")
    rows = rows_of(spark, source, source.files)
    origin = column(name).cast("string").alias("origin")
    known = origin.isNotNull() & origin.isin(*ORIGINS)
    unknown = rows.where(~known).select(file_path.alias("path"), origin)
    [[first]] = unknown.agg(F.min(F.struct("path", "origin"))).collect()
    if first is not None:
        path = shown(unquote(first.path)) or source.settings.path
        raise _unknown_origin(path, name, first.origin)


def _unknown_origin(path: str, name: str, value: str | None) -> UserError:
    held = "no origin in a row" if value is None else f"the unknown origin {value!r}"
    return UserError(f"{path}: column '{name}' holds {held}, expected one of {', '.join(ORIGINS)}")
