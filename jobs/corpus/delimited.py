"""Decides whether each CSV and TSV file is read line by line or as a whole.

In TSV, quotes are ordinary characters unless the settings say otherwise. Many tasks can share the
lines of a CSV file, but not records that span lines, and a quote that is never closed would swallow
the rest of the file into one record. So the job scans each file once, in parallel. It reads a file
both ways only if a line ends inside quotes, and then reads it as a whole if that gives fewer
malformed records.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.paths import hadoop_path
from gaixie.jobs.corpus.settings import Csv
from gaixie.jobs.corpus.storage import LITERAL
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File

CHARACTERS = 16_000_000
"""Maximum length of a field in a file that is read as a whole, in characters."""

FIELD_LINES = 100
"""Maximum lines of a quoted field."""


class Reading(NamedTuple):
    """Says how a file is read."""

    quote: str
    """Empty if quotes are ordinary characters."""
    across_lines: bool
    """Whether a quoted field may span lines; if so, the file is not divided."""


def _path() -> Column:
    return F.col("_metadata.file_path").alias("path")


def options(kind: str, form: Csv, reading: Reading) -> dict[str, Any]:
    """Returns Spark's options for files that are read the same way."""
    return LITERAL | {
        "header": form.columns is None,
        "sep": form.delimiter_of(kind),
        "quote": reading.quote,
        "escape": reading.quote or '"',
        "encoding": form.encoding,
        "multiLine": reading.across_lines,
        "maxCharsPerColumn": CHARACTERS if reading.across_lines else -1,
        # With pruning, a line with too few columns passes if only some columns are asked for.
        "columnPruning": False,
    }


def allow_encoding(spark: SparkSession, encoding: str) -> None:
    """Lets Spark read an encoding beyond its own six. Raises JobError if Java does not know it."""
    if encoding != "utf-8":
        jvm: Any = spark._jvm
        if not jvm.java.nio.charset.Charset.isSupported(encoding):
            raise JobError(
                f"encoding {encoding}: Java does not know it; convert the files to UTF-8"
            )
        spark.conf.set("spark.sql.legacy.javaCharsets", "true")
        spark.conf.set("spark.sql.legacy.codingErrorAction", "true")  # U+FFFD, not a failed job


def plain_reading(kind: str, form: Csv) -> Reading:
    """Returns how to read files line by line; UTF-16 and UTF-32 files are read whole."""
    # In other encodings, line ends, quotes and delimiters are single bytes, as in ASCII.
    wide = codecs.lookup(form.encoding).name.partition("-")[2][:2] in ("16", "32")
    return Reading(form.quote_of(kind), wide)


def find_readings(
    spark: SparkSession, files: Sequence[File], kind: str, form: Csv, schema: StructType
) -> dict[str, Reading]:
    """Returns how to read each file, by URI. schema: its last column holds malformed lines."""
    plain = plain_reading(kind, form)
    readings = {file.uri: plain for file in files}
    if not plain.quote or plain.across_lines:
        return readings
    if undecided := _open_quotes(spark, files, plain.quote, form.delimiter_of(kind)):
        across = plain._replace(across_lines=True)
        by_line, whole = (
            _malformed(spark, undecided, options(kind, form, reading), schema)
            for reading in (plain, across)
        )
        spanning = [uri for uri in undecided if whole.get(uri, 0) < by_line.get(uri, 0)]
        if spanning:
            _check_closed(spark, spanning, options(kind, form, across), schema)
        readings |= dict.fromkeys(spanning, across)
    return readings


def _open_quotes(
    spark: SparkSession, files: Sequence[File], quote: str, separator: str
) -> list[str]:
    """Finds files with a line that ends inside quotes: they may have records that span lines."""
    q, d = re.escape(quote), re.escape(separator)
    lines = spark.read.options(**LITERAL).text([file.uri for file in files])
    lines = lines.where(F.contains("value", F.lit(quote)))
    single = F.replace("value", F.lit(quote * 2), F.lit(""))
    rest = F.regexp_replace(single, f"(^|{d}){q}[^{q}]*{q}(?={d}|$)", "$1")
    rows = lines.where(rest.rlike(f"(^|{d}){q}")).select(_path()).distinct().collect()
    return known_as([row.path for row in rows], [file.uri for file in files])


def _malformed(
    spark: SparkSession, uris: list[str], given: dict[str, Any], schema: StructType
) -> dict[str, int]:
    """Counts malformed records by URI."""
    first, malformed = schema.names[0], schema.names[-1]
    read = spark.read.schema(schema).options(**given)
    rows = read.option("columnNameOfCorruptRecord", malformed).csv(uris)
    table = rows.groupBy(_path()).agg(
        F.count_if(F.col(f"`{malformed}`").isNotNull()).alias("count"),
        F.count(f"`{first}`"),  # Spark refuses to read the column of malformed lines alone
    )
    paths, counts = zip(*((row["path"], row["count"]) for row in table.collect()), strict=True)
    return dict(zip(known_as(paths, uris), counts, strict=True))


def _check_closed(
    spark: SparkSession, uris: list[str], given: dict[str, Any], schema: StructType
) -> None:
    """Raises JobError for a quote that was never closed and has swallowed the rows after it: its
    field has more than FIELD_LINES lines, or ends where its file ends."""
    read = spark.read.schema(schema).options(**given)
    rows = read.option("columnNameOfCorruptRecord", schema.names[-1]).csv(uris)
    values = F.array(*[F.col(f"`{name}`") for name in schema.names[:-1]])
    fields = rows.select(_path(), F.explode(values).alias("field"))
    fields = fields.select(
        "path", F.split(F.regexp_replace("field", r"\s+$", ""), "\n").alias("lines")
    )
    text = spark.read.options(**LITERAL).text(uris)
    line = F.col("value")
    if given["encoding"] != "utf-8":
        line = F.decode(line.cast("binary"), given["encoding"])
    line = F.regexp_replace(line, r"\s+$", "").alias("line")
    numbered = text.select(_path(), line, F.monotonically_increasing_id().alias("id"))
    ends = numbered.where("line != ''").groupBy("path").agg(F.max_by("line", "id").alias("end"))
    size, last = F.size("lines"), F.element_at("lines", -1)
    broken = (size > FIELD_LINES) | ((size > 1) & (last == F.col("end")))
    found = fields.where(size > 1).join(ends, "path").where(broken).head(1)
    if not found:
        return
    [row] = found
    [uri] = known_as([row.path], uris)
    quote = given["quote"]
    start = row.lines[0].removeprefix(quote).rstrip()  # stays if quotes follow in the field
    starts = quote + start, quote + start.replace(quote, 2 * quote)
    lines = numbered.where(F.col("path") == row.path).select("line").rdd.zipWithIndex()
    begins = lines.filter(lambda item: any(start in item[0].line for start in starts))
    number = begins.map(lambda item: item[1] + 1)
    at = f", line {number.first()}" if not number.isEmpty() else ""
    raise JobError(
        f"{uri}{at}: a quote opens a field of {len(row.lines):,} lines, so it was never closed; "
        "close it, or give --set csv.quote='' if quotes are ordinary characters"
    )


def undecodable_files(spark: SparkSession, files: Sequence[File]) -> list[str]:
    """Finds text files that have bytes that are not UTF-8 and no line of valid Chinese."""
    lines = spark.read.options(**LITERAL).text([file.uri for file in files])
    valid = F.is_valid_utf8("value")
    more = (F.octet_length("value") > F.char_length("value")) | F.contains("value", F.lit("\\u"))
    table = lines.groupBy(_path()).agg(
        F.count_if(~valid).alias("bad"), F.count_if(valid & more).alias("good")
    )
    rows = table.where("bad > 0 AND good = 0").collect()
    return sorted(known_as([row.path for row in rows], [file.uri for file in files]))


def known_as(paths: Iterable[str], uris: Iterable[str]) -> list[str]:
    """Returns those of the URIs that Spark reports as these paths."""
    known = {hadoop_path(uri): uri for uri in uris}
    return [known[hadoop_path(unquote(path))] for path in paths]
