"""Opens the input of the methods: a table, or parallel files of lines."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice, zip_longest

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.accounts import input_entry
from gaixie.jobs.corpus.files import find_files, shown
from gaixie.jobs.corpus.inspection import inspect_inputs
from gaixie.jobs.corpus.reading import InputFiles, read_files
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import RunInput
from gaixie.udfs.storage.tables import MALFORMED_LINE

LINES = 200_000
"""Lines that the driver holds at once."""


def open_table(spark: SparkSession, found: InputFiles) -> tuple[DataFrame, list[RunInput]]:
    """Returns a table's rows (source, paraphrase, malformed_line, and what it carries), and its
    entry in the manifest.

    found: by find_inputs. Raises UserError for an unusable file or column.
    """
    [table] = inspect_inputs(spark, [found])
    rows = read_files(spark, table, table.files)
    if table.format == "jsonl" and table.settings.list_column:  # a list is the text of its JSON
        text = F.col("paraphrase")
        parsed = F.when(text.startswith("["), F.from_json(text, "array<string>"))
        rows = rows.withColumn("paraphrase", F.coalesce(parsed, F.array(text)))
    return rows, [input_entry(table.settings.path, table.format, table.files, table.left_out)]


def lines_entries(paths: dict[str, str]) -> list[RunInput]:
    """Returns the manifest's entries for files of lines. Raises UserError if one is missing."""
    entries = []
    for path in paths.values():
        files, _ = find_files(path)
        if len(files) != 1:
            raise UserError(f"{path}: {len(files)} files, expected one with a sentence a line")
        entries.append(input_entry(path, "lines", files))
    return entries


def read_lines(paths: dict[str, str]) -> Iterator[pa.Table]:
    """Yields tables of lines with the same number, and an empty malformed_line.

    paths: a UTF-8 file for each column. Raises UserError unless all have equally many lines.
    """
    counts = dict.fromkeys(paths, 0)
    with ExitStack() as files:
        opened = [
            io.TextIOWrapper(files.enter_context(storage.open_file(path)), "utf-8", "replace", "\n")
            for path in paths.values()
        ]
        rows = zip_longest(*opened)
        while some := list(islice(rows, LINES)):
            table = {}
            for name, lines in zip(paths, zip(*some, strict=True), strict=True):
                counts[name] += sum(line is not None for line in lines)
                texts = [line and line.removesuffix("\n").removesuffix("\r") for line in lines]
                table[name] = pa.array(texts, pa.string())
            table[MALFORMED_LINE] = pa.nulls(len(some), pa.string())
            if len({*counts.values()}) > 1:
                short = min(counts, key=counts.__getitem__)
                long = max(counts, key=counts.__getitem__)
                more = f"but {shown(paths[long])} has more"
                raise UserError(f"{shown(paths[short])}: {counts[short]:,} lines, {more}")
            yield pa.table(table)
