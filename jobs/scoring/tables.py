"""Writing the tables of a run, and looking at what was written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.spark.storage import Storage
from udfs.features import FEATURES
from udfs.spscore import JUDGEMENTS, OUTPUTS

PARQUET = {
    f"parquet.enable.dictionary#{column}": "false"
    for column in ("source", "paraphrase", "pair_id", *FEATURES, *OUTPUTS)
}
"""No dictionaries for columns whose values hardly repeat: a quarter less work to write them."""

MEASURED = [*FEATURES, *OUTPUTS]
"""What of a scored pair is a number."""
BARS = 50
"""Of a histogram from 0 to 1."""
EXAMPLES = 3
"""Pairs of each quarter that a report shows."""


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


@dataclass(frozen=True)
class Sample:
    """What a sample of the scored pairs shows, beside their counts."""

    rows: int = 0
    correlations: list[list[float]] = field(
        default_factory=lambda: [[float("nan")] * len(MEASURED)] * len(MEASURED)
    )
    """Of ranks, over MEASURED; may be NaN."""
    judgements: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Pairs by origin and judgement, in BARS bins of equal width from 0 to 1."""
    examples: list[dict] = field(default_factory=list)
    """Some pairs of each quarter by score, lowest first: source, paraphrase, origin, stage, quarter
    (0 to 3), and MEASURED, None where missing."""


def sample_scored(
    spark: SparkSession,
    storage: Storage,
    path: str,
    schema: StructType,
    counts: Counter[tuple[Any, ...]],
    rows: int = 30_000,
) -> Sample:
    """Looks at some scored pairs: their share of every origin and stage.

    counts: rows by origin and stage. The pairs come from the front of one file of each: which pairs
    share a file is decided by a hash.
    """
    total = sum(counts.values())
    columns = ["source", "paraphrase", "origin", "stage", *MEASURED]
    parts = []
    for (origin, stage), count in counts.items():
        file = storage.list(f"{path}/origin={origin}/stage={stage}")[0].path
        front = spark.read.schema(schema).option("basePath", path).parquet(file)
        parts.append(front.select(columns).limit(max(rows * count // total, 1)))
    sample = reduce(DataFrame.unionAll, parts).toPandas().sort_values(["spscore", "source"])
    judgements = {
        origin: {name: np.histogram(pairs[name], BARS, (0, 1))[0].tolist() for name in JUDGEMENTS}
        for origin, pairs in sample.groupby("origin")
    }
    examples = []
    for number, quarter in enumerate(np.array_split(np.arange(len(sample)), 4)):
        middle = (np.arange(EXAMPLES) + 0.5) / EXAMPLES * len(quarter)
        for pair in sample.iloc[quarter[np.unique(middle.astype(int))[: len(quarter)]]].to_dict(
            "records"
        ):
            missing = {name: None for name in MEASURED if pair[name] != pair[name]}
            examples.append(pair | missing | {"quarter": number})
    matrix = sample[MEASURED].corr("spearman").to_numpy().tolist()
    return Sample(len(sample), matrix, judgements, examples)
