"""Keeps the accounts of a run: each row read is scored, in quarantine, or a duplicate."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.inputs import InputFiles
from gaixie.jobs.corpus.storage import LITERAL, Storage
from gaixie.jobs.corpus.unreadable import SPARK_ERRORS
from gaixie.udfs.command_line import say
from gaixie.udfs.spark import escape_bytes
from gaixie.udfs.storage import storage as plain_storage
from gaixie.udfs.storage.manifest import RunFile, RunInput
from gaixie.udfs.storage.published_files import THREADS


def written_counts(
    spark: SparkSession, path: str, schema: StructType, keys: tuple[str, str]
) -> Counter[tuple[Any, ...]]:
    """Counts the rows of the written files by keys."""
    counts = spark.read.options(**LITERAL).schema(schema).parquet(path).groupBy(*keys).count()
    return Counter({tuple(row)[:2]: row["count"] for row in counts.collect()})


def close_accounts(
    read: Counter[str],
    scored: Counter[tuple[Any, ...]],
    quarantined: Counter[tuple[Any, ...]],
    duplicates: Mapping[str, int],
) -> None:
    """Raises RuntimeError unless read = scored + quarantined + duplicates for every origin."""
    for origin, rows in read.items():
        kept, unfit = (
            sum(n for (name, _), n in c.items() if name == origin) for c in (scored, quarantined)
        )
        left_out = duplicates.get(origin, 0)
        if rows != kept + unfit + left_out:
            parts = f"{kept} scored + {unfit} quarantined + {left_out} duplicates"
            raise RuntimeError(
                f"origin {origin}: {rows} rows read, but {parts}; nothing was published"
            )


def written_files(spark: SparkSession, storage: Storage, folder: str, name: str) -> list[RunFile]:
    """Lists the files of a run's table with their digests; none if the table was not written."""
    path = f"{folder}/{name}"
    files = storage.list_files(path) if storage.exists(path) else []
    uris = [file.uri for file in files]
    is_plain = all(uri.startswith(("file:", "s3a:")) for uri in uris)
    sums = digests(spark, uris) if is_plain else _in_threads(storage.sha256, uris)
    below = {uri: f"{name}/" + uri.rpartition(f"/{name}/")[2] for uri in uris}
    return [RunFile(path=below[f.uri], bytes=f.size, sha256=sums[f.uri]) for f in files]


def input_entry(source: InputFiles) -> RunInput:
    """Returns a manifest's entry of an input."""
    return RunInput(
        path=source.settings.path,
        format=source.format,
        files=len(source.read),
        bytes=sum(file.size for file in source.read),
        corrupt_files=source.corrupt,
        corrupt_rows={uri: source.rows[uri] for uri in source.corrupt if uri in source.rows},
    )


def escape_undecodable(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Writes bytes that are not UTF-8 as \\xNN in some columns of rows for the quarantine."""
    undecodable = rows.where(F.col("reason") == "undecodable")  # these alone go through Python
    for name in names:
        undecodable = undecodable.withColumn(name, escape_bytes(F.col(name).cast("binary")))
    return rows.where(F.col("reason") != "undecodable").unionByName(undecodable)


FOR_EXECUTORS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"),
)
"""Variables of the driver that a task takes along, as S3A itself hands them to executors."""


def digests(spark: SparkSession, uris: Sequence[str]) -> dict[str, str]:
    """Computes SHA-256 by URI, of files that udfs/storage/storage.py reads, with a task for each.

    In local mode the driver is the executor. It also steps in where the Python of executors does
    not reach the store.
    """
    context = spark.sparkContext
    if uris and not str(context.master).startswith("local"):
        given = {name: os.environ[name] for name in FOR_EXECUTORS if name in os.environ}

        def digest(uri: str) -> str:
            if "AWS_ACCESS_KEY_ID" in given:  # a worker may hold the token of an earlier job's key
                os.environ.pop("AWS_SESSION_TOKEN", None)
            os.environ.update(given)
            return plain_storage.sha256(uri)

        try:
            found = context.parallelize(uris, min(len(uris), 1000)).map(digest).collect()
            return dict(zip(uris, found, strict=True))
        except SPARK_ERRORS:
            say("executors cannot read the run's files in Python: the driver does")
    return _in_threads(plain_storage.sha256, uris)


def _in_threads(digest: Callable[[str], str], uris: Sequence[str]) -> dict[str, str]:
    """Computes digests in a fixed number of threads: each holds a block of 8 MB."""
    with ThreadPoolExecutor(THREADS) as pool:
        return dict(zip(uris, pool.map(digest, uris), strict=True))


def observed(observation: Observation) -> dict[str, Any]:
    """Returns an observation's values by name; waits until the first action has ended.

    Empty where Spark left the counting out, as it does with one side of a join whose other side has
    no rows: ``Observation.get`` then ends in a Java assertion, for it has no row to give.
    """
    try:
        return observation.get
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != "java.lang.AssertionError":
            raise
        return {}
