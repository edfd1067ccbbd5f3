"""Reads and writes the Parquet files of jobs, partitioned and in files of about equal size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.storage import spark_uri

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


def read_table(
    spark: SparkSession, *folders: str, schema: StructType | str | None = None, **options: str
) -> DataFrame:
    """Reads the Parquet files of folders that a job wrote."""
    reader = spark.read.options(**CHECKED, **options)
    reader = reader.schema(schema) if schema else reader
    return reader.parquet(*map(spark_uri, folders))


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
