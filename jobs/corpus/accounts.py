"""Keeps the accounts of a run: each row read is scored, in quarantine, or a duplicate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.files import is_data
from gaixie.jobs.corpus.parquet import read_table
from gaixie.jobs.corpus.reading import SPARK_ERRORS
from gaixie.udfs.command_line import say
from gaixie.udfs.spark import escape_bytes
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import InputFile, RunFile, RunInput
from gaixie.udfs.storage.published_files import THREADS
from gaixie.udfs.storage.storage import File


def written_counts(
    spark: SparkSession, path: str, schema: StructType, keys: Sequence[str | Column]
) -> Counter[tuple[Any, ...]]:
    """Counts the rows of the written files by keys."""
    counts = read_table(spark, path, schema=schema).groupBy(*keys).count()
    return Counter({tuple(row)[:-1]: row["count"] for row in counts.collect()})


def close_accounts(
    read: Counter[str],
    scored: Counter[tuple[Any, ...]],
    quarantined: Counter[tuple[Any, ...]],
    duplicates: Mapping[str, int],
) -> None:
    """Raises RuntimeError unless read = scored + quarantined + duplicates for every origin."""
    for origin in {*read, *duplicates, *(name for name, _ in (*scored, *quarantined))}:
        kept, unfit = (
            sum(n for (name, _), n in c.items() if name == origin) for c in (scored, quarantined)
        )
        rows, left_out = read[origin], duplicates.get(origin, 0)
        if rows != kept + unfit + left_out:
            parts = f"{kept} scored + {unfit} quarantined + {left_out} duplicates"
            raise RuntimeError(
                f"origin {origin}: {rows} rows read, but {parts}; nothing was published"
            )


def data_files(folder: str) -> list[File]:
    """Lists the files of a written table: none whose name begins with "_" or "."."""
    files = storage.list_files(folder)
    return [file for file in files if is_data(file.uri.removeprefix(folder))]


def written_files(spark: SparkSession, folder: str, name: str) -> list[RunFile]:
    """Lists the files of a run's table with their digests; returns none if the table was not
    written."""
    files = data_files(storage.join(folder, name))
    sums = digests(spark, [file.uri for file in files])
    start = f"{folder.rstrip('/')}/"
    return [
        RunFile(path=file.uri.removeprefix(start), bytes=file.size, sha256=sums[file.uri])
        for file in files
    ]


def input_entry(
    path: str, kind: str, files: Sequence[File], left_out: Sequence[str] = ()
) -> RunInput:
    """Returns the manifest's entry for an input."""
    listing = [
        InputFile(path=f.uri, bytes=f.size, modified=f.modified.isoformat(timespec="milliseconds"))
        for f in files
    ]
    return RunInput(
        path=path,
        format=kind,
        files=len(files),
        left_out=[*left_out],
        bytes=sum(file.size for file in files),
        listing=listing,
    )


def escape_undecodable(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Writes bytes that are not UTF-8 as \\xNN in the named columns of rows for the quarantine."""
    undecodable = rows.where(F.col("reason") == "undecodable")  # only these go through Python
    for name in names:
        undecodable = undecodable.withColumn(name, escape_bytes(F.col(name).cast("binary")))
    return rows.where(F.col("reason") != "undecodable").unionByName(undecodable)


def digests(spark: SparkSession, uris: Sequence[str]) -> dict[str, str]:
    """Computes the SHA-256 of each file, by URI, in one Spark task a file.

    The files are those that udfs/storage/storage.py reads. A task gets no key: for a file in a
    store, it gets a link to that file alone, signed here. The driver computes the digests in local
    mode, and if the executors cannot reach the store.
    """
    context = spark.sparkContext
    if uris and not str(context.master).startswith("local"):
        links = [(uri, storage.link_to(storage.spark_uri(uri))) for uri in uris]
        try:
            return dict(context.parallelize(links, min(len(uris), 1000)).map(_digest).collect())
        except SPARK_ERRORS:
            say("executors cannot read the run's files in Python; the driver reads them")
    with ThreadPoolExecutor(THREADS) as pool:  # each has a block of 8 MB
        return dict(zip(uris, pool.map(storage.sha256, uris), strict=True))


def _digest(file: tuple[str, str]) -> tuple[str, str]:
    """Returns (URI, SHA-256) of (URI, link)."""
    uri, link = file
    is_local = link.startswith("file:")
    return uri, storage.sha256(link) if is_local else storage.sha256(uri, link)


def observed(observation: Observation) -> dict[str, Any]:
    """Returns an observation's values by name; waits until the first action has ended.

    Returns an empty dict if Spark skipped the counting, as it does for one side of a join whose
    other side has no rows: ``Observation.get`` then fails a Java assertion, since it has no row.
    """
    try:
        return observation.get
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != "java.lang.AssertionError":
            raise
        return {}
