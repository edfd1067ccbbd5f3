"""The accounts of a run: what was read is what was written, quarantined or a duplicate."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType


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
