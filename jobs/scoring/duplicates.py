"""Which rows of a run are left out: all of a pair but one."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

MAX_BROADCAST = 2_000_000
"""Rows that every executor may be given: their keys take 16 MB and more."""

KEPT = ("row_key", "origin", "spscore", "meaning")


FEW = 250_000
"""Rows of which all are compared: fewer than a narrow pass would pay for."""


def find_duplicates(pairs: DataFrame, count: int, extra: Iterable[StructField]) -> DataFrame | None:
    """The rows to leave out, with the columns KEPT; None if there are none for sure.

    pairs: columns pair_id, KEPT and extra. count: their number, or more. Of the rows of a pair the one stays whose extra columns hash
    lowest, and of these the one with the lowest row_key, whatever order they were read in.

    Of more than FEW, a narrow pass first finds the hashes of pair_id that are there twice, 8 bytes a row;
    then only rows with one of these, the true duplicates and a collision in 10^12 pairs of rows, are compared.
    """
    if count > FEW:
        hashed = F.xxhash64("pair_id").alias("hash")
        hashes = pairs.groupBy(hashed).count().where("count > 1").select("hash").persist()
        if not (twice := hashes.count()):
            return None
        hashes = F.broadcast(hashes) if twice <= MAX_BROADCAST else hashes
        pairs = pairs.withColumn("hash", hashed).join(hashes, "hash", "left_semi")
    parts = []
    for field in extra:
        column = F.col(f"`{field.name}`")
        if isinstance(field.dataType, ArrayType | MapType | StructType):
            column = F.to_json(column)  # a map cannot be hashed
        parts += [column.isNull(), column]  # a hash passes over nulls
    tie = (F.xxhash64(*parts) if parts else F.lit(0)).alias("tie")
    rank = F.expr("row_number() OVER (PARTITION BY pair_id ORDER BY tie, row_key)")
    alike = pairs.select("pair_id", *KEPT, tie)
    return alike.withColumn("rank", rank).where("rank > 1").select(*KEPT).persist()
