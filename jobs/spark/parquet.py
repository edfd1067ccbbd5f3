"""Writing Parquet in files of one size, partitioned."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS

PARQUET = {
    f"parquet.enable.dictionary#{column}": "false"
    for column in ("source", "paraphrase", "pair_id", *FEATURES, *OUTPUTS)
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
