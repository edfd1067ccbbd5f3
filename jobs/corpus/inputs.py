"""Finds and checks every file that a job reads, before any work starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructField, StructType

from gaixie.jobs.corpus import delimited
from gaixie.jobs.corpus.delimited import Reading, known_as
from gaixie.jobs.corpus.early import GIVE_ENCODING, MARK, check_names
from gaixie.jobs.corpus.json_lines import FILE, look_at_lines, read_lines
from gaixie.jobs.corpus.parquet import CHECKED, footer_reader
from gaixie.jobs.corpus.paths import COMPRESSED, choose_files, local_path
from gaixie.jobs.corpus.settings import LICENSE, Input
from gaixie.jobs.corpus.storage import LITERAL, Storage
from gaixie.jobs.corpus.unreadable import without_corrupt
from gaixie.jobs.errors import JobError
from gaixie.udfs.command_line import say
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage.storage import File
from gaixie.udfs.text.validate import MALFORMED

MALFORMED_LINE = "malformed_line"
"""Column that holds a line that the reader could not split into columns."""

NO_ORIGIN = "unknown"
"""Origin of a malformed line in an input whose origins are in a column."""

RESERVED = (
    *("pair_id", "source", "paraphrase", "origin", "reason", "stage"),
    *(*FEATURES, *OUTPUTS, MALFORMED_LINE, FILE, "row_key", "fit", "_scored"),
)
"""Columns that the job writes itself; compared without case."""

RENAMED = {"pair_id": "input_pair_id"}
"""Input columns that are carried through under another name, because the job writes its own."""


@dataclass
class InputFiles:
    """An input after its inspection."""

    settings: Input
    format: str
    schema: StructType
    """Schema of the files; text formats have only strings."""
    files: list[File]
    rows: dict[str, int] = field(default_factory=dict)
    """Rows of each file, if its footer says so (Parquet)."""
    row_groups: dict[str, int] = field(default_factory=dict)
    readings: dict[str, Reading] = field(default_factory=dict)
    """How to read each CSV or TSV file, once it has been inspected."""
    marked: bool = False
    """Whether CSV or TSV begins with a byte order mark that Spark takes for part of a name."""
    line_by_line: set[str] = field(default_factory=set)
    """JSON lines files that Spark's own reader would misread."""
    known_origins: set[str] = field(default_factory=set)
    """JSON lines files whose origins are all known, as the scan of their columns showed."""
    corrupt: dict[str, str] = field(default_factory=dict)
    """What is wrong with each file that was set aside."""

    def pieces(self, files: list[File]) -> float:
        """Returns the number of pieces into which the files can be split for reading."""
        if self.format == "parquet":
            return sum(self.row_groups[file.uri] for file in files)
        whole = {uri for uri, reading in self.readings.items() if reading.across_lines}
        if any(f.uri in whole or f.uri.lower().endswith(COMPRESSED) for f in files):
            return len(files)
        return float("inf")

    @property
    def read(self) -> list[File]:
        """Returns the files that were not set aside as corrupt."""
        return [file for file in self.files if file.uri not in self.corrupt]

    @property
    def extra_columns(self) -> list[StructField]:
        """Returns the columns that are carried through, as the run stores them."""
        columns = [
            StructField(name, self.schema[own].dataType) for own, name in self.extra_names.items()
        ]
        licence = (
            [StructField(LICENSE, StringType())] if self.settings.license and self.files else []
        )
        return columns + licence

    @property
    def extra_names(self) -> dict[str, str]:
        """Maps the names of carried columns to their names in the run."""
        if self.settings.carried is not None:
            return self.settings.carried
        used = {*self.settings.text_columns, MALFORMED_LINE}
        return {name: RENAMED.get(name, name) for name in self.schema.names if name not in used}


Wanted = Callable[[Input, File], bool]
"""Returns whether to read a file of an input."""


def inspect_inputs(
    spark: SparkSession,
    storage: Storage,
    inputs: list[Input],
    on_corrupt_file: str,
    wanted: Wanted | None = None,
) -> list[InputFiles]:
    """Finds the files of every input and checks their columns.

    wanted: selects the files to inspect; an input may be left with none. Raises JobError for a
    missing path, an empty input, an undetermined format, an unreadable file (unless on_corrupt_file
    is "quarantine"), a missing column, a column of the wrong type, a column that collides with one
    of the job's, an unknown origin, or extra columns that clash.
    """
    pool = ThreadPoolExecutor(16)
    try:
        look = partial(_inspect, spark, storage, on_corrupt_file=on_corrupt_file, wanted=wanted)
        inspected = list(pool.map(look, inputs))
    finally:  # Ctrl-C does not wait for these threads
        pool.shutdown(wait=False, cancel_futures=True)
    check_extra_columns(inspected)
    return inspected


def check_extra_columns(inputs: list[InputFiles]) -> None:
    """Raises JobError if a carried column has two types."""
    types: dict[str, tuple[str, DataType]] = {}
    for source in inputs:
        for column in source.extra_columns:
            path, known = types.setdefault(column.name, (source.settings.path, column.dataType))
            if known != column.dataType:
                both = f"{column.dataType.simpleString()}, but {known.simpleString()} in {path}"
                raise JobError(f"{source.settings.path}: column '{column.name}' is {both}")


def _inspect(
    spark: SparkSession,
    storage: Storage,
    settings: Input,
    on_corrupt_file: str,
    wanted: Wanted | None,
) -> InputFiles:
    found = [file for file in storage.list_files(settings.path) if file.size > 0]
    if not found:
        raise JobError(f"{settings.path}: no data, expected at least one file with rows")
    kind, files = choose_files(settings, found)
    if others := sorted({file.uri for file in found} - {file.uri for file in files}):
        names = ", ".join(uri.rpartition("/")[2] for uri in others[:3]) + ", …" * (len(others) > 3)
        passed = f"skipped {len(others)} others: {names}"
        say(f"{settings.path}: {len(files)} {kind} files; {passed}")
    if wanted:
        found, files = files, [file for file in files if wanted(settings, file)]
        say(f"{settings.path}: {len(files)} of {len(found)} files are new")
    source = InputFiles(settings, kind, StructType(), files)
    if not files:
        return source
    delimited.allow_encoding(spark, settings.csv.encoding)
    if kind == "parquet":
        _inspect_parquet(spark, source, on_corrupt_file)
    else:
        look, lines = partial(_inspect_text, spark, source), spark.read.options(**LITERAL)
        without_corrupt(look, files, lambda some: lines.text([f.uri for f in some]), {}, "stop")
    if settings.origin_column:
        check, read = partial(_check_origins, spark, source), partial(read_files, spark, source)
        unchecked = [file for file in source.files if file.uri not in source.known_origins]
        without_corrupt(check, unchecked, read, source.corrupt, on_corrupt_file)
        source.files = source.read
        if not source.files:
            raise JobError(f"{settings.path}: no file could be read")
    for own, name in source.extra_names.items():
        if own != name:
            say(f"{settings.path}: the run carries its column '{own}' as '{name}'")
    return source


def _inspect_parquet(spark: SparkSession, source: InputFiles, on_corrupt_file: str) -> None:
    """Reads every footer, so that errors name the file that is not Parquet or lacks a column."""
    with ThreadPoolExecutor(16) as pool:
        footers = list(pool.map(footer_reader(spark), source.files))
    good: list[File] = []
    left_out: set[str] = set()
    for file, footer in zip(source.files, footers, strict=True):
        if isinstance(footer, str):
            if on_corrupt_file == "stop":
                raise JobError(f"{file.uri}: not a readable Parquet file: {footer}")
            source.corrupt[file.uri] = footer
            continue
        for name, kind in footer.unreadable.items():
            if name in {*source.settings.text_columns, *(source.settings.carried or ())}:
                raise JobError(f"{file.uri}: column '{name}' is {kind}, which Spark cannot read")
            if name not in left_out:
                say(f"{file.uri}: skipped column '{name}': Spark cannot read {kind}")
            left_out.add(name)
        _check_columns(footer.schema, file.uri, source.settings)
        if not good:
            source.schema = footer.schema
        _check_same_columns(footer.schema, source, file.uri, (good or [file])[0].uri)
        good.append(file)
        source.rows[file.uri] = footer.rows
        source.row_groups[file.uri] = footer.row_groups
    source.files = good
    if not good:
        raise JobError(f"{source.settings.path}: no file could be read as Parquet")
    if not sum(source.rows.values()):
        raise JobError(f"{source.settings.path}: no rows, expected at least one")


def _check_same_columns(schema: StructType, source: InputFiles, path: str, first: str) -> None:
    """Raises JobError if a file's columns differ from those of the input's first file."""
    if others := {*source.schema.names} ^ {*schema.names}:
        raise JobError(
            f"{path}: column '{min(others)}' is not in every file of {source.settings.path}"
        )
    for column in schema:
        kind, expected = column.dataType, source.schema[column.name].dataType
        if kind != expected:
            types = f"{kind.simpleString()}, expected {expected.simpleString()} as in {first}"
            raise JobError(f"{path}: column '{column.name}' is {types}")


def _inspect_text(spark: SparkSession, source: InputFiles, files: list[File]) -> None:
    """Finds the columns, all of them strings, and adds the column for malformed lines."""
    form, first = source.settings.csv, files[0].uri
    plain = delimited.plain_reading(source.format, form)
    reader = spark.read.options(**LITERAL)
    if source.format == "jsonl" and plain.across_lines:  # its lines do not end with a byte
        raise JobError(f"{first}: JSON lines in {form.encoding}: convert them to UTF-8")
    if source.format == "jsonl":
        texts = source.settings.plain_columns
        given = form.encoding, texts, source.settings.origin_column
        names, source.line_by_line, source.known_origins = look_at_lines(spark, files, *given)
    elif form.columns:
        names = form.columns
    else:
        options = delimited.options(source.format, form, plain) | {"header": False}
        head = reader.options(**options).csv(first).head()
        names = [name or f"_c{number}" for number, name in enumerate(head or ())]
        source.marked = bool(names) and names[0].startswith(MARK)
        names[:1] = [name.removeprefix(MARK) for name in names[:1]]
    if not names:
        check_encoding(spark, source, files)
        raise JobError(f"{first}: no JSON object found, expected one a line")
    columns = [StructField(name, StringType()) for name in [*names, MALFORMED_LINE]]
    source.schema = StructType(columns)
    _check_columns(source.schema, first, source.settings)


def _check_columns(schema: StructType, path: str, settings: Input) -> None:
    types = {column.name: column.dataType for column in schema}
    check_names([name for name in schema.names if name != MALFORMED_LINE], path, settings)
    wanted = settings.text_columns
    for name in wanted:
        kind, expected = types[name], "string"
        if name == settings.list_column:
            expected += " or a list of strings"
            kind = kind.elementType if isinstance(kind, ArrayType) else kind
        if not isinstance(kind, StringType | BinaryType):
            found = types[name].simpleString()
            raise JobError(f"{path}: column '{name}' is {found}, expected {expected}")
    for name in types if settings.carried is None else ():
        renamed = name in RENAMED and RENAMED[name] not in types
        if name.lower() in RESERVED and name not in (*wanted, MALFORMED_LINE) and not renamed:
            fault = "has the name of a column that the job writes; rename it or remove it"
            if name == "origin" and settings.origin:
                fault += ", or read the origins from it: --origin-column origin instead of --origin"
            raise JobError(f"{path}: column '{name}' {fault}")


def _check_origins(spark: SparkSession, source: InputFiles, files: list[File]) -> None:
    """Raises JobError that names the first file with an origin that is not in ORIGINS."""
    rows = _rows(spark, source, files).where(F.col(MALFORMED_LINE).isNull())
    origin = F.col(f"`{source.settings.origin_column}`").cast("string").alias("origin")
    known = origin.isNotNull() & origin.isin(*ORIGINS)
    unknown = rows.where(~known).select(F.min(F.struct(FILE, origin)))
    [[first]] = unknown.collect()
    if first is None:
        return
    held = "no origin in a row" if first.origin is None else f"the unknown origin {first.origin!r}"
    held += f", expected one of {', '.join(ORIGINS)}"
    [uri] = known_as([first[FILE]], [file.uri for file in files])
    column = source.settings.origin_column
    raise JobError(f"{local_path(uri) or uri}: column '{column}' holds {held}")


def check_encoding(spark: SparkSession, source: InputFiles, files: list[File]) -> None:
    """Raises JobError if a text file has another encoding, so that no row can be read."""
    if source.format == "parquet" or source.settings.csv.encoding != "utf-8":
        return
    if foreign := delimited.undecodable_files(spark, files):
        more = f" (nor are {len(foreign) - 1} other files)" if len(foreign) > 1 else ""
        raise JobError(f"{foreign[0]}: {GIVE_ENCODING}{more}")


def read_files(spark: SparkSession, source: InputFiles, files: list[File]) -> DataFrame:
    """Reads some files of an input: source, paraphrase, origin, malformed_line, extra columns.

    All columns are strings except extra columns and columns of lists, which keep their types.
    """
    settings = source.settings
    malformed = F.col(MALFORMED_LINE)
    if settings.origin:
        origin = F.lit(settings.origin)
    else:  # a malformed line may have anything in that column
        origin = F.col(f"`{settings.origin_column}`")
        origin = F.when(malformed.isNull() | origin.isin(*ORIGINS), origin).otherwise(NO_ORIGIN)
    lists = isinstance(source.schema[settings.paraphrase_column].dataType, ArrayType)
    text = "array<string>" if lists else "string"
    return _rows(spark, source, files).select(
        F.col(f"`{settings.source_column}`").cast("string").alias("source"),
        F.col(f"`{settings.paraphrase_column}`").cast(text).alias("paraphrase"),
        origin.cast("string").alias("origin"),
        malformed.cast("string").alias(MALFORMED_LINE),
        *[F.col(f"`{own}`").alias(name) for own, name in source.extra_names.items()],
        *([F.lit(settings.license).alias(LICENSE)] if settings.license else []),
    )


def _rows(spark: SparkSession, source: InputFiles, files: list[File]) -> DataFrame:
    """Reads some files of an input: FILE, the columns of its schema, and MALFORMED_LINE."""
    reader, names = spark.read.options(**LITERAL).schema(source.schema), source.schema.names
    if source.format == "parquet":
        rows = reader.options(**CHECKED).parquet(*[file.uri for file in files])
        return _with_file(rows, names).withColumn(MALFORMED_LINE, F.lit(None))
    parts: list[DataFrame] = []
    if source.format == "jsonl":
        encoding, texts = source.settings.csv.encoding, source.settings.plain_columns
        given = {"columnNameOfCorruptRecord": MALFORMED_LINE}
        given |= {} if encoding == "utf-8" else {"encoding": encoding, "lineSep": "\n"}
        if plain := [file.uri for file in files if file.uri not in source.line_by_line]:
            parts.append(_with_file(reader.options(**given).json(plain), names))
        if odd := [file for file in files if file.uri in source.line_by_line]:
            parts.append(read_lines(spark, odd, encoding, source.schema, texts))
    else:
        parts += [_with_file(rows, names) for rows in _delimited_rows(spark, source, files)]
    return reduce(DataFrame.unionAll, parts)


def _with_file(rows: DataFrame, names: list[str]) -> DataFrame:
    own = [F.col(f"`{name}`") for name in rows.columns]
    return rows.select("_metadata.file_path", *own).toDF(FILE, *names)


def line_fault() -> Column:
    """Returns the quarantine reason of a malformed line; null for any other row."""
    line = F.col(MALFORMED_LINE)
    broken = F.when(F.is_valid_utf8(line), F.lit(MALFORMED)).otherwise(F.lit("undecodable"))
    return F.when(line.isNotNull(), broken)


def _delimited_rows(
    spark: SparkSession, source: InputFiles, files: list[File]
) -> Iterator[DataFrame]:
    """Reads CSV or TSV files; files that are read the same way are read together."""
    form, known, schema = source.settings.csv, source.readings, source.schema
    if new := [file for file in files if file.uri not in known]:
        known |= delimited.find_readings(spark, new, source.format, form, schema)
    if source.marked:
        schema = StructType([StructField(MARK + schema.names[0], StringType()), *schema.fields[1:]])
    for reading in dict.fromkeys(known[file.uri] for file in files):
        given = delimited.options(source.format, form, reading)
        given |= {"columnNameOfCorruptRecord": MALFORMED_LINE, "enforceSchema": False}
        alike = [file.uri for file in files if known[file.uri] == reading]
        yield spark.read.schema(schema).options(**given).csv(alike)
