"""CSV and TSV: how each file is read, since not every quote opens a field that spans lines.

Lines can be shared out over many tasks; records that span lines cannot, and one quote that is never
closed would take all that follows into one record. So each file is looked at once, by as many tasks
as it has pieces: only where a line ends within quotes is the file read both ways, and as a whole if
fewer records are malformed then. TSV of the web has quotes that mean nothing; that of a CSV writer
doubles each quote within a field, and encloses the field.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.paths import hadoop_path
from gaixie.jobs.corpus.settings import Csv
from gaixie.jobs.corpus.storage import LITERAL
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File

CHARACTERS = 16_000_000
"""Of a field, at most, in a file that is read as a whole."""

FIELD_LINES = 100
"""Of a field in quotes, at most."""


class Reading(NamedTuple):
    """How a file is read."""

    quote: str
    """Empty: quotes are characters like any other."""
    across_lines: bool
    """Whether a quoted field may span lines; then the file is not divided."""


RAW = Reading("", False)


def options(kind: str, form: Csv, reading: Reading) -> dict[str, Any]:
    """Spark's, for files of one reading."""
    return LITERAL | {
        "header": form.columns is None,
        "sep": delimiter(kind, form),
        "quote": reading.quote,
        "escape": reading.quote or '"',
        "encoding": form.encoding,
        "multiLine": reading.across_lines,
        "maxCharsPerColumn": CHARACTERS if reading.across_lines else -1,
        # Without pruning, or a line with too few columns passes where only some are asked for.
        "columnPruning": False,
    }


def delimiter(kind: str, form: Csv) -> str:
    return form.delimiter or ("\t" if kind == "tsv" else ",")


def allow_encoding(spark: SparkSession, encoding: str) -> None:
    """Lets Spark read an encoding beyond the six that it takes by itself; JobError where Java has none."""
    if encoding != "utf-8":
        jvm: Any = spark._jvm
        if not jvm.java.nio.charset.Charset.isSupported(encoding):
            raise JobError(
                f"encoding {encoding}: Java does not know it; convert the files to UTF-8"
            )
        spark.conf.set("spark.sql.legacy.javaCharsets", "true")
        spark.conf.set("spark.sql.legacy.codingErrorAction", "true")  # U+FFFD, not the job's end


def has_lines(encoding: str) -> bool:
    """Whether line ends, quotes and delimiters are the bytes of ASCII, and no parts of others."""
    return codecs.lookup(encoding).name.partition("-")[2][:2] not in ("16", "32")


def header_reading(spark: SparkSession, file: File, kind: str, form: Csv) -> Reading:
    """How to read the header: TSV has quotes there only where all names are enclosed in them."""
    quote = '"' if form.quote is None else form.quote
    plain = Reading(
        "" if kind == "tsv" and form.quote is None else quote, not has_lines(form.encoding)
    )
    if plain.quote == quote or not quote or form.columns:
        return plain
    names = spark.read.options(**options(kind, form, plain)).csv(file.uri).columns
    enclosed = all(re.fullmatch('".*"', name) for name in names)
    return plain._replace(quote=quote) if enclosed else plain


def find_readings(
    spark: SparkSession,
    files: Sequence[File],
    kind: str,
    form: Csv,
    header: Reading,
    schema: StructType,
) -> dict[str, Reading]:
    """How to read each file, by URI. The last column of the schema takes malformed lines."""
    plain = {file.uri: header for file in files}
    if form.quote == "" or header.across_lines:
        return plain
    quoted = Reading(form.quote or '"', False)
    undecided = []
    meant = bool(header.quote)
    for uri, spans, by_writer in _quotes(spark, files, quoted.quote, delimiter(kind, form), meant):
        if spans:
            undecided.append(uri)
        elif by_writer and not meant:
            plain[uri] = quoted
    if undecided:
        across = quoted._replace(across_lines=True)
        by_line, whole = (
            _malformed(spark, undecided, options(kind, form, reading), schema)
            for reading in (header, across)
        )
        spanning = [uri for uri in undecided if whole.get(uri, 0) < by_line.get(uri, 0)]
        if spanning:
            _check_closed(spark, spanning, options(kind, form, across), schema)
        plain |= dict.fromkeys(spanning, across)
    return plain


def _quotes(
    spark: SparkSession, files: Sequence[File], quote: str, separator: str, meant: bool
) -> list[tuple[str, bool, bool]]:
    """Of each file with quotes: its URI, and whether it may have records that span lines.

    And where quotes may mean nothing (not meant): whether they are those of a CSV writer, doubled
    within fields and else around them.
    """
    q, d = re.escape(quote), re.escape(separator)
    lines = (
        spark.read.options(**LITERAL)
        .text([file.uri for file in files])
        .where(F.contains("value", F.lit(quote)))
    )
    single = F.replace("value", F.lit(quote * 2), F.lit(""))
    rest = F.regexp_replace("single", f"(^|{d}){q}[^{q}]*{q}(?={d}|$)", "$1")
    path = F.col("_metadata.file_path").alias("path")
    table = lines.select(path, "value", single.alias("single")).withColumn("rest", rest)
    opens, written = F.bool_or(F.col("rest").rlike(f"(^|{d}){q}")), F.lit(True)
    if not meant:
        opens |= F.bool_or(F.col("single").rlike(f"(^|{d}){q}[^{q}]*{d}"))
        written = F.bool_or(F.contains("value", F.lit(quote * 2)))
        written &= ~F.bool_or(F.contains("rest", F.lit(quote)))
    uris = {hadoop_path(file.uri): file.uri for file in files}
    rows = table.groupBy("path").agg(opens, written).collect()
    return [(uris[hadoop_path(unquote(row[0]))], row[1], row[2]) for row in rows]


def _malformed(
    spark: SparkSession, uris: list[str], given: dict[str, Any], schema: StructType
) -> dict[str, int]:
    """Malformed records by URI."""
    first, malformed = schema.names[0], schema.names[-1]
    read = spark.read.schema(schema).options(**given)
    rows = read.option("columnNameOfCorruptRecord", malformed).csv(uris)
    table = rows.groupBy(F.col("_metadata.file_path").alias("path")).agg(
        F.count_if(F.col(f"`{malformed}`").isNotNull()).alias("count"),
        F.count(f"`{first}`"),  # Spark reads no table of malformed lines alone
    )
    known = {hadoop_path(uri): uri for uri in uris}
    return {known[hadoop_path(unquote(row["path"]))]: row["count"] for row in table.collect()}


def _check_closed(
    spark: SparkSession, uris: list[str], given: dict[str, Any], schema: StructType
) -> None:
    """Raises JobError for a field of more than FIELD_LINES, or one that ends as its file does: its quote
    was never closed, and it has taken the rows that follow along."""
    read = spark.read.schema(schema).options(**given)
    rows = read.option("columnNameOfCorruptRecord", schema.names[-1]).csv(uris)
    path = F.col("_metadata.file_path").alias("path")
    values = F.array(*[F.col(f"`{name}`") for name in schema.names[:-1]])
    fields = rows.select(path, F.explode(values).alias("field"))
    fields = fields.select(
        "path", F.split(F.regexp_replace("field", r"\s+$", ""), "\n").alias("lines")
    )
    text = spark.read.options(**LITERAL).text(uris)
    line = F.col("value")
    if given["encoding"] != "utf-8":
        line = F.decode(line.cast("binary"), given["encoding"])
    line = F.regexp_replace(line, r"\s+$", "").alias("line")
    numbered = text.select(path, line, F.monotonically_increasing_id().alias("id"))
    ends = numbered.where("line != ''").groupBy("path").agg(F.max_by("line", "id").alias("end"))
    size, last = F.size("lines"), F.element_at("lines", -1)
    broken = (size > FIELD_LINES) | ((size > 1) & (last == F.col("end")))
    found = fields.where(size > 1).join(ends, "path").where(broken).head(1)
    if not found:
        return
    [row] = found
    [uri] = (uri for uri in uris if hadoop_path(uri) == hadoop_path(unquote(row.path)))
    quote = given["quote"]
    start = row.lines[0].removeprefix(quote).rstrip()  # which stays where quotes follow within
    starts = quote + start, quote + start.replace(quote, 2 * quote)
    lines = numbered.where(path == row.path).select("line").rdd.zipWithIndex()
    begins = lines.filter(lambda item: any(start in item[0].line for start in starts))
    number = begins.map(lambda item: item[1] + 1)
    at = f", line {number.first()}" if not number.isEmpty() else ""
    raise JobError(
        f"{uri}{at}: a quote opens a field of {len(row.lines):,} lines, so it was never closed; "
        "close it, or give --set csv.quote='' where quotes mean nothing"
    )


def undecodable_files(spark: SparkSession, files: Sequence[File]) -> list[str]:
    """URIs of text files with bytes that are not UTF-8, and no line of Chinese or the like that is."""
    lines = spark.read.options(**LITERAL).text([file.uri for file in files])
    valid = F.is_valid_utf8("value")
    more = (F.octet_length("value") > F.char_length("value")) | F.contains("value", F.lit("\\u"))
    table = lines.groupBy(F.col("_metadata.file_path").alias("path")).agg(
        F.count_if(~valid).alias("bad"),
        F.count_if(valid & more).alias("good"),
    )
    uris = {hadoop_path(file.uri): file.uri for file in files}
    rows = table.where("bad > 0 AND good = 0").collect()
    return sorted(uris[hadoop_path(unquote(row.path))] for row in rows)


def union(parts: Sequence[DataFrame]) -> DataFrame:
    """Of rows with the same columns."""
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    return rows
