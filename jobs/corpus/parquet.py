"""Reads and writes the tables of jobs, Parquet in files of about equal size, and describes files
for a manifest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.files import is_data
from gaixie.udfs.command_line import say
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spark import escape_bytes
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import InputFile, RunFile, RunInput
from gaixie.udfs.storage.published_files import THREADS
from gaixie.udfs.storage.storage import File, spark_uri

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""Errors that a failed Spark job raises."""

PARQUET = {
    f"parquet.enable.dictionary#{column}": "false"
    for column in ("source", "paraphrase", "pair_id", *FEATURES, *OUTPUTS)
} | {"parquet.page.write-checksum.enabled": "true"}
"""No dictionaries for columns whose values rarely repeat: this saves a quarter of the writing
time."""

CHECKED = {
    "__globPaths__": "false",
    "parquet.page.verify-checksum.enabled": "true",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
"""Makes Spark's readers take file names literally ([, {, * and ? are ordinary characters), and fail
on a page that does not match its checksum, if its writer left one, and on a file that is corrupt or
gone, whatever the cluster's settings say."""

SPARK_GLOB = re.compile(r"[][{}*?\\]")
"""For each path with such a character, Spark reads all paths of its list, as of 4.1."""


def read_table(
    spark: SparkSession, *folders: str, schema: StructType | str | None = None, **options: str
) -> DataFrame:
    """Reads the Parquet files of folders that a job wrote."""
    reader = spark.read.options(**CHECKED, **options)
    reader = reader.schema(schema) if schema else reader
    paths = [*map(spark_uri, folders)]
    if SPARK_GLOB.search("".join(paths)):
        return reduce(DataFrame.unionByName, map(reader.parquet, paths))
    return reader.parquet(*paths)


def write_table(rows: DataFrame, path: str, keys: Sequence[str] = (), **options: str) -> None:
    """Writes rows to a folder, partitioned by keys, in place of what is there."""
    writer = rows.write.options(**PARQUET, **options).partitionBy(*keys)
    writer.mode("overwrite").parquet(spark_uri(path))


def write_partitioned(
    rows: DataFrame,
    path: str,
    keys: Sequence[str],
    files: Mapping[tuple[Any, ...], int],
    spread_by: Column,
    order: Sequence[Column | str] = (),
) -> None:
    """Writes rows to path, partitioned by keys, in a given number of files for each combination of
    keys.

    files: number of files by the values of the keys. Each file is one task, so neither the input's
    partitioning nor a large combination shows in the output. spread_by: hash that assigns a row to
    one of its files. order: sort order of the rows in a file.
    """
    file, first = F.lit(0), 0
    for values, count in files.items():
        here = reduce(Column.__and__, [F.col(k) == v for k, v in zip(keys, values, strict=True)])
        number = F.pmod(spread_by, F.lit(count)).cast("int") + first
        file = F.when(here, number).otherwise(file)
        first += count
    spread = rows.repartitionById(first, file)
    if order:
        spread = spread.sortWithinPartitions(*keys, *order)
    write_table(spread, path, keys)


def write_unshuffled(
    rows: DataFrame, path: str, keys: Sequence[str], bytes_a_task: int, rows_a_file: int
) -> None:
    """Writes rows to path, partitioned by keys, without a shuffle.

    rows: as read from Parquet files. A task reads up to bytes_a_task of them, and writes one file
    for each combination of keys that it meets, or several of rows_a_file.
    """
    conf, name = rows.sparkSession.conf, "spark.sql.files."
    settings = {"maxPartitionBytes": bytes_a_task, "minPartitionNum": 1, "openCostInBytes": 0}
    before = {name + key: conf.get(name + key, None) for key in settings}
    for key, value in settings.items():
        conf.set(name + key, str(value))
    try:
        write_table(rows, path, keys, maxRecordsPerFile=str(rows_a_file))
    finally:
        for key, old in before.items():
            conf.unset(key) if old is None else conf.set(key, old)


# For a manifest


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
    counts = {"files": len(files), "bytes": sum(file.size for file in files)}
    return RunInput(path=path, format=kind, left_out=[*left_out], listing=listing, **counts)


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
            tasks = context.parallelize(links, min(len(uris), 1000))
            return dict(tasks.map(lambda file: (file[0], storage.sha256(*file))).collect())
        except SPARK_ERRORS:
            say("executors cannot read the run's files in Python; the driver reads them")
    with ThreadPoolExecutor(THREADS) as pool:  # each has a block of 8 MB
        return dict(zip(uris, pool.map(storage.sha256, uris), strict=True))
