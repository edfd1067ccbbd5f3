"""Makes pairs of sentences that are fit, group by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from gaixie.jobs.pairs.method import Method

BATCH = 10_000
"""Pairs that go back to Spark at once."""

MADE = "reason string, source string, paraphrase string, foreign string, group string"
_MADE = pa.schema([(column.split()[0], pa.string()) for column in MADE.split(", ")])


def by_reason(rows: DataFrame) -> Counter[str]:
    """Counts rows by their reason."""
    return Counter({row.reason: row["count"] for row in rows.groupBy("reason").count().collect()})


def make_pairs(fit: DataFrame, method: Method) -> DataFrame:
    """Returns columns MADE: what the method makes of each group of items that are fit.

    The items of a group come one after the other, so that a large one never makes a single row.
    """
    second = [] if method.alone else ["paraphrase"]
    rows = (
        fit.select("group", "foreign", "source", *second)
        .repartition("group")
        .sortWithinPartitions("group")
    )

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = _made(batches, method)
        while some := list(islice(made, BATCH)):
            yield pa.RecordBatch.from_pylist(some, _MADE)

    return rows.mapInArrow(make, MADE)


def _made(batches: Iterable[pa.RecordBatch], method: Method) -> Iterator[dict[str, Any]]:
    rows = (row for batch in batches for row in batch.to_pylist())
    for group, items in groupby(rows, key=lambda row: row["group"]):
        foreign, members = None, []
        for row in items:
            foreign = min(foreign or row["foreign"], row["foreign"])
            members.append((row["source"], row.get("paraphrase", row["source"])))
        for reason, source, paraphrase in method.make(members):
            yield {
                "reason": reason,
                "source": source,
                "paraphrase": paraphrase,
                "foreign": foreign,
                "group": group,
            }
