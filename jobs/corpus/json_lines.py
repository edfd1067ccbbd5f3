"""Finds the columns of JSON lines, and reads the files that Spark would misread.

Spark turns half of a surrogate pair into a question mark, an array of objects into that many rows,
and a list into a text. The job scans all files once for their columns. Files with such a line are
then read line by line in Python, which is slower.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from gaixie.jobs.corpus.delimited import known_as
from gaixie.jobs.corpus.early import MARK
from gaixie.jobs.corpus.storage import LITERAL
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage.storage import File

LONE_SURROGATE = (  # as a JSON escape
    r"(?i)\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}"
)
FILE = "_file_of_row"
"""Column with the path of a row's file, as Spark writes it."""

SPACE = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder()


class Look(NamedTuple):
    """Result of one scan of all lines."""

    names: list[str]
    """Names of all columns, in order."""
    odd: set[str]
    """URIs of files that read_lines must read."""
    known: set[str]
    """URIs of other files in which every line has a known origin."""


def look_at_lines(
    spark: SparkSession,
    files: Sequence[File],
    encoding: str,
    texts: Sequence[str],
    origin_column: str | None,
) -> Look:
    """Scans all lines once. texts: columns that must not hold a list or an object."""
    line = _text(encoding)
    keys = F.json_object_keys(F.regexp_replace(line, f"^{MARK}", ""))
    nested = "|".join(re.escape(name) for name in texts)
    odd = (
        line.rlike(rf"^{MARK}|^\s*\[")
        | line.rlike(LONE_SURROGATE)
        | line.rlike(rf'"({nested})"\s*:\s*[\[{{]')
        | (F.size(keys) > F.size(F.array_distinct(keys)))
    )
    known = F.lit(False)
    if origin_column and re.fullmatch(r"\w+", origin_column, re.ASCII):  # else a path may differ
        known = F.get_json_object(line, f"$.{origin_column}").isin(*ORIGINS)
    path, known = F.col("_metadata.file_path"), F.coalesce(known, F.lit(False))
    lines = _lines(spark, files).select(path, keys, odd, known)
    lines = lines.toDF("path", "keys", "odd", "known")
    found = lines.groupBy("path").agg(
        F.max("odd").alias("odd"),
        F.min("known").alias("known"),
        F.array_distinct(F.flatten(F.collect_set("keys"))).alias("names"),
    )
    rows = found.collect()
    names, uris = {name for row in rows for name in row.names or ()}, [file.uri for file in files]
    odd_files = {*known_as([row.path for row in rows if row.odd], uris)}
    known_files = {*known_as([row.path for row in rows if row.known], uris)}
    return Look(sorted(names), odd_files, known_files - odd_files)


def read_lines(
    spark: SparkSession,
    files: Sequence[File],
    encoding: str,
    schema: StructType,
    texts: Sequence[str],
) -> DataFrame:
    """Reads files line by line: FILE and the schema's columns, all of them texts. The last column
    holds malformed lines."""
    names, texts = schema.names[:-1], tuple(texts)
    binary = StructType([StructField(name, BinaryType()) for name in schema.names])

    @F.pandas_udf(binary)  # type: ignore[call-overload]
    def parse(lines: pd.Series) -> pd.DataFrame:
        rows = [row_of(line, names, texts) for line in lines]
        return pd.DataFrame(rows, columns=schema.names, dtype=object)

    row = parse(_text(encoding).cast("binary")).alias("row")
    lines = _lines(spark, files).select(F.col("_metadata.file_path").alias(FILE), row)
    values = [F.col(f"row.`{name}`").cast("string").alias(name) for name in schema.names]
    return lines.select(FILE, *values)


def row_of(line: bytes, names: Sequence[str], texts: Sequence[str]) -> list[bytes | None]:
    """Returns the values of a line, followed by the line itself if it is malformed.

    A text is decoded, with U+FFFD for half of a surrogate pair; any other value stays as written.
    """
    try:
        values: dict[str, str | None] = {}
        for name, value in _members(line.decode().removeprefix(MARK)):
            if name in values or (name in texts and value is not None and value[:1] in "[{"):
                raise ValueError(name)
            values[name] = value
    except ValueError:
        return [*(None for _ in names), line]
    found = [values.get(name) for name in names]
    return [None if v is None else v.removeprefix('"').encode() for v in found] + [None]


def _members(text: str) -> Iterator[tuple[str, str | None]]:
    """Yields the names and values of an object: a quote and the text, or JSON; None for null.

    Raises ValueError if the text is not an object.
    """

    def skip(at: int) -> int:
        return SPACE.match(text, at).end()  # type: ignore[union-attr]

    at, sign = skip(0), "{"
    while text[at : at + 1] == sign:
        at = skip(at + 1)
        if sign == "{" and text[at : at + 1] == "}":
            return
        sign = ","
        if text[at : at + 1] != '"':
            raise ValueError("no object")
        name, at = scanstring(text, at + 1)
        at = skip(at)
        if text[at : at + 1] != ":":
            raise ValueError("no object")
        begin = skip(at + 1)
        value, end = DECODER.raw_decode(text, begin)
        if isinstance(value, str):
            yield name, '"' + value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        else:
            yield name, None if value is None else text[begin:end]
        at = skip(end)
    if text[at : at + 1] != "}":
        raise ValueError("no object")


def _lines(spark: SparkSession, files: Sequence[File]) -> DataFrame:
    lines = spark.read.options(**LITERAL).text([file.uri for file in files])
    return lines.where(F.col("value").rlike(r"\S"))


def _text(encoding: str) -> Column:
    line = F.col("value")
    return line if encoding == "utf-8" else F.decode(line.cast("binary"), encoding)
