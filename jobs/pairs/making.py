"""From sentences that are fit to pairs, group by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.pairs.method import Method

BATCH = 10_000
"""Pairs that go back to Spark at once."""

MADE = "reason string, source string, paraphrase string, foreign string, group string"


def by_reason(rows: DataFrame) -> Counter[str]:
    return Counter({row.reason: row["count"] for row in rows.groupBy("reason").count().collect()})


def make_pairs(fit: DataFrame, method: Method) -> DataFrame:
    """Columns MADE: what the method makes of each group of items that are fit."""
    members = F.collect_list(F.struct("source", "paraphrase")).alias("members")
    groups = fit.groupBy("group").agg(F.min("foreign").alias("foreign"), members)

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = []
        for batch in batches:
            for group in batch.to_pylist():
                texts = [(text["source"], text["paraphrase"]) for text in group["members"]]
                for reason, source, paraphrase in method.make(texts):
                    made.append((reason, source, paraphrase, group["foreign"], group["group"]))
                    if len(made) == BATCH:
                        yield _batch(made)
                        made = []
        yield _batch(made)

    return groups.mapInArrow(make, MADE)


def _batch(made: Sequence[tuple[str | None, ...]]) -> pa.RecordBatch:
    columns = zip(*made, strict=True) if made else [()] * 5
    names = ["reason", "source", "paraphrase", "foreign", "group"]
    return pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], names)
