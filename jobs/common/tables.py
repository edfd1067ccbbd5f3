"""Writing the tables of a run, and looking at what was written."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.common.storage import Storage
from udfs.features import FEATURES

PARQUET = {
    f"parquet.enable.dictionary#{column}": "false"
    for column in ("source", "paraphrase", "pair_id", *FEATURES, "spscore")
}
"""No dictionaries for columns whose values hardly repeat: a quarter less work to write them."""


def write_partitioned(
    rows: DataFrame,
    path: str,
    keys: tuple[str, ...],
    counts: dict[tuple[Any, ...], int],
    rows_a_file: int,
    spread_by: str,
) -> None:
    """Writes rows to path, partitioned by keys, in files of about rows_a_file.

    counts: rows of each combination of keys. Each combination gets as many tasks as it needs files,
    so neither the input's partitioning nor a large origin shows in the output. spread_by: the column
    whose hash decides the file.
    """
    file, first = F.lit(0), 0
    for values, count in counts.items():
        files = max(round(count / rows_a_file), 1)
        here = reduce(Column.__and__, [F.col(k) == v for k, v in zip(keys, values, strict=True)])
        number = F.pmod(F.xxhash64(spread_by), F.lit(files)).cast("int") + first
        file = F.when(here, number).otherwise(file)
        first += files
    spread = rows.repartitionById(first, file)
    spread.write.options(**PARQUET).partitionBy(*keys).mode("overwrite").parquet(path)


def written_counts(
    spark: SparkSession, path: str, schema: StructType, keys: tuple[str, str]
) -> Counter[tuple[Any, ...]]:
    """Rows by keys, as the written files have them."""
    counts = spark.read.schema(schema).parquet(path).groupBy(*keys).count()
    return Counter({tuple(row)[:2]: row["count"] for row in counts.collect()})


def close_accounts(
    read: Counter[str],
    scored: Counter[tuple[Any, ...]],
    quarantined: Counter[tuple[Any, ...]],
    duplicates: dict[str, int],
) -> None:
    """Raises RuntimeError unless read = scored + quarantined + duplicates for every origin."""
    for origin in read:
        parts = (
            sum(n for (name, _), n in scored.items() if name == origin),
            sum(n for (name, _), n in quarantined.items() if name == origin),
            duplicates.get(origin, 0),
        )
        if read[origin] != sum(parts):
            raise RuntimeError(
                f"origin {origin}: {read[origin]} rows read, but {parts[0]} scored + "
                f"{parts[1]} quarantined + {parts[2]} duplicates; nothing was published"
            )


def sample_scored(
    spark: SparkSession,
    storage: Storage,
    path: str,
    schema: StructType,
    counts: Counter[tuple[Any, ...]],
    rows: int = 30_000,
) -> tuple[list[list[float]], int, list[dict]]:
    """Rank correlations of features and score, their sample's size, and ten scored pairs.

    counts: rows by origin and stage. The sample has its share of every origin and stage, from the
    front of one file of each: which pairs share a file is decided by a hash.
    """
    names = [*FEATURES, "spscore"]
    total = sum(counts.values())
    columns = ["source", "paraphrase", "origin", "stage", *names]
    parts = []
    for (origin, stage), count in counts.items():
        file = storage.list(f"{path}/origin={origin}/stage={stage}")[0].path
        front = spark.read.schema(schema).option("basePath", path).parquet(file)
        parts.append(front.select(columns).limit(max(rows * count // total, 1)))
    sample = reduce(DataFrame.unionAll, parts).toPandas().sort_values(["spscore", "source"])
    matrix = sample[names].corr("spearman").to_numpy().tolist()
    steps = sorted({round(k * (len(sample) - 1) / 9) for k in range(10)})
    examples = sample.iloc[steps].to_dict("records")
    for row in examples:
        row.update({name: None for name in names if row[name] != row[name]})
    return matrix, len(sample), examples
