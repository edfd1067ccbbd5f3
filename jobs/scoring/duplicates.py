"""Finds the rows that repeat a pair, and leaves them out: of the rows of a pair, one stays."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from gaixie.jobs.corpus.reading import column as column_of

MAX_BROADCAST = 2_000_000
"""Maximum rows whose keys are sent to every executor; the keys take 16 MB and more."""

FEW = 250_000
"""Rows up to which all are compared: a narrow pass would not pay off."""

KEPT = ("row_key", "origin", "spscore", "meaning")


def find_duplicates(pairs: DataFrame, count: int, extra: Iterable[StructField]) -> DataFrame | None:
    """Finds the rows to leave out, with the columns KEPT; returns None if there are certainly none.

    pairs: columns pair_id, KEPT and extra. count: their number, or more. Of the rows of a pair, it
    keeps the one whose extra columns hash lowest, and among equals the one with the lowest row_key,
    whatever order they were read in.

    If there are more than FEW rows, a narrow pass first finds the hashes of pair_id that occur
    twice, 8 bytes a row. Only rows with one of these hashes are then compared: true duplicates, and
    a collision in 10^12 pairs of rows. No row is sent twice for this: if the hashes are too many
    for every executor, a row's hash decides the task in which it meets its like.
    """
    alike, key = pairs.select("pair_id", *KEPT, _tie(extra).alias("tie")), "pair_id"
    if count > FEW:
        hashed = F.xxhash64("pair_id").alias("hash")
        hashes = pairs.groupBy(hashed).count().where("count > 1").select("hash").persist()
        if not (twice := hashes.count()):
            return None
        hashes = F.broadcast(hashes) if twice <= MAX_BROADCAST else hashes
        alike = alike.withColumn("hash", hashed).join(hashes, "hash", "left_semi")
        key = "hash, pair_id"
    rank = F.expr(f"row_number() OVER (PARTITION BY {key} ORDER BY tie, row_key)")
    return alike.withColumn("rank", rank).where("rank > 1").select(*KEPT).persist()


def _tie(extra: Iterable[StructField]) -> Column:
    """Returns a hash of the extra columns, which decides between rows of one pair."""
    parts = []
    for field in sorted(extra, key=lambda field: field.name):
        column = column_of(field.name)
        if isinstance(field.dataType, ArrayType | MapType | StructType):
            column = F.to_json(column)  # maps cannot be hashed
        parts += [column.isNull(), column]  # a hash skips nulls
    return F.xxhash64(*parts) if parts else F.lit(0)


def leave_out(pairs: DataFrame, left_out: DataFrame, count: int) -> DataFrame:
    """Returns pairs without the rows whose row_key is in left_out; the rest stays where it is read.

    count: rows of left_out. Every executor gets their keys; if there are more than MAX_BROADCAST,
    it gets one bit for each row of pairs instead, 0.13 GB for a billion, in bitmaps of 4 kB.
    """
    if count <= MAX_BROADCAST:
        return pairs.join(F.broadcast(left_out.select("row_key")), "row_key", "left_anti")
    bucket, bit = F.bitmap_bucket_number("row_key"), F.bitmap_bit_position("row_key")
    bitmaps = left_out.groupBy(bucket.alias("bucket")).agg(
        F.bitmap_construct_agg(bit).alias("bits")
    )
    byte = F.substring("bits", F.shiftright(bit.cast("int"), 3) + 1, F.lit(1))
    is_set = F.getbit(F.ascii(F.decode(byte, "ISO-8859-1")), bit.cast("int") % 8) == 1
    found = pairs.withColumn("bucket", bucket).join(F.broadcast(bitmaps), "bucket", "left")
    return found.where(F.col("bits").isNull() | ~is_set).drop("bucket", "bits")
