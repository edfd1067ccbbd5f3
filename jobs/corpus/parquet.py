"""Writes partitioned Parquet in files of about equal size, and reads footers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.storage import File

PARQUET = {
    f"parquet.enable.dictionary#{column}": "false"
    for column in ("source", "paraphrase", "pair_id", *FEATURES, *OUTPUTS)
} | {"parquet.page.write-checksum.enabled": "true"}
"""No dictionaries for columns whose values rarely repeat: this saves a quarter of the writing
time."""

LITERAL = {"__globPaths__": "false"}
"""Makes Spark's readers take file names literally: [, {, * and ? are ordinary characters."""

CHECKED = LITERAL | {
    "parquet.page.verify-checksum.enabled": "true",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
"""Makes reading fail on a page that does not match its checksum, if its writer left one, and on a
file that is corrupt or gone, whatever the cluster's settings say."""


def write_partitioned(
    rows: DataFrame,
    path: str,
    keys: Sequence[str],
    files: Mapping[tuple[Any, ...], int],
    spread_by: Column,
    order: Sequence[Column | str] = (),
    marker: bool = True,
) -> None:
    """Writes rows to path, partitioned by keys, in a given number of files for each combination of
    keys.

    files: number of files by the values of the keys. Each file is one task, so neither the input's
    partitioning nor a large combination shows in the output. spread_by: hash that assigns a row to
    one of its files. order: sort order of the rows in a file. marker: whether to leave _SUCCESS.
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
    writer = _writer(spread, keys)
    if not marker:
        writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    writer.parquet(path)


def write_unshuffled(
    rows: DataFrame, path: str, keys: Sequence[str], bytes_a_task: int, rows_a_file: int
) -> None:
    """Writes rows to path, partitioned by keys, without a shuffle.

    rows: as read from Parquet files. A task reads up to bytes_a_task of them, and writes one file
    for each combination of keys that it meets, or several of rows_a_file.
    """
    writer = _writer(rows, keys).option("maxRecordsPerFile", rows_a_file)
    with _splits_of(rows.sparkSession, bytes_a_task):
        writer.parquet(path)


def _writer(rows: DataFrame, keys: Sequence[str]) -> DataFrameWriter:
    return rows.write.options(**PARQUET).partitionBy(*keys).mode("overwrite")


@contextmanager
def _splits_of(spark: SparkSession, size: int) -> Iterator[None]:
    """Makes queries planned inside the block read files in pieces of this many bytes, no
    smaller."""
    name = "spark.sql.files."
    settings = {"maxPartitionBytes": size, "minPartitionNum": 1, "openCostInBytes": 0}
    before = {key: spark.conf.get(name + key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(name + key, str(value))
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(name + key)
            else:
                spark.conf.set(name + key, old)


class Footer(NamedTuple):
    """Contents of a Parquet file's footer."""

    schema: StructType
    unreadable: dict[str, str]
    """Types of columns that Spark does not know, by name; the schema omits them."""
    rows: int
    row_groups: int


def footer_reader(spark: SparkSession) -> Callable[[File], Footer | str]:
    """Returns a function that reads a footer, or returns what is wrong with the file."""
    jvm: Any = spark._jvm
    conf = spark._jsc.hadoopConfiguration()
    parquet = jvm.org.apache.parquet
    converter = jvm.org.apache.spark.sql.execution.datasources.parquet
    convert = converter.ParquetToSparkSchemaConverter(spark._jsparkSession.sessionState().conf())
    known: dict[str, tuple[StructType, dict[str, str]]] = {}  # keyed by the text of the schema

    def columns(schema: Any) -> tuple[StructType, dict[str, str]]:
        fields, unreadable = StructType(), {}
        for column in schema.getFields():
            name, alone = column.getName(), parquet.schema.MessageType(schema.getName(), [column])
            try:
                field = StructType.fromJson(json.loads(convert.convert(alone).json()))[0]
            except Exception:
                unreadable[name] = str(column.getLogicalTypeAnnotation() or column.toString())
                continue
            if field.dataType.typeName() == "time":
                unreadable[name] = field.dataType.simpleString()
            else:
                fields.add(field)
        return fields, unreadable

    def footer(file: File) -> Footer | str:
        try:
            path = jvm.org.apache.hadoop.fs.Path(file.uri)
            opened = parquet.hadoop.util.HadoopInputFile.fromPath(path, conf)
            reader = parquet.hadoop.ParquetFileReader.open(opened)
            try:
                schema = reader.getFooter().getFileMetaData().getSchema()
                if (text := schema.toString()) not in known:
                    known[text] = columns(schema)
                return Footer(*known[text], reader.getRecordCount(), reader.getRowGroups().size())
            finally:
                reader.close()
        except Exception as error:
            cause = getattr(error, "java_exception", None)
            fault = (cause.getMessage() if cause else str(error)) or type(error).__name__
            return fault.splitlines()[0]

    return footer
