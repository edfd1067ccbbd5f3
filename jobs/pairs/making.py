"""Judges which sentences can be in a pair, and makes pairs of them, group by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import StringType, StructField, StructType
from xxhash import xxh3_128_hexdigest

from gaixie.jobs.pairs.method import OVER_LIMIT, REPEATED, Made, Method
from gaixie.udfs.text.normalise import UNDECODABLE, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons

NO_GROUP = "no_foreign"
"""Reason: the foreign sentence is null or empty."""

JUDGED = StructType([StructField("reason", StringType()), StructField("group", StringType())])

MEMBERS = 100_000
"""Maximum distinct items of a group that are paired; one task holds them all in memory."""

BATCH = 10_000
"""Pairs that return to Spark at once."""

MADE = "reason string, source string, paraphrase string, foreign string, group string"
_MADE = pa.schema([(column.split()[0], pa.string()) for column in MADE.split(", ")])


def judge_columns(min_characters: int, max_characters: int, alone: bool) -> Callable[..., Column]:
    """Returns a function of the columns (source, paraphrase, foreign) that gives JUDGED.

    reason: one of gaixie.udfs.text.validate.REASONS or NO_GROUP; null if the item can be in a pair.
    group: XXH3-128 of the normalised foreign sentence in UTF-8, as 32 hexadecimal digits. alone:
    source is a single sentence, and paraphrase is the same column.
    """

    @arrow_udf(JUDGED)
    def judge(source: pa.Array, paraphrase: pa.Array, foreign: pa.Array) -> pa.Array:
        return judge_batch(source, paraphrase, foreign, min_characters, max_characters, alone)

    return judge


def judge_batch(
    source: pa.Array,
    paraphrase: pa.Array,
    foreign: pa.Array,
    min_characters: int,
    max_characters: int,
    alone: bool,
) -> pa.StructArray:
    """Computes judge_columns on Arrow arrays of strings of shape (rows,)."""
    a = normalise_column(source)
    b = a if alone else normalise_column(paraphrase)
    codes = quarantine_reasons(*a, *b, min_characters, max_characters)
    reasons = np.array([None, *REASONS], object)[codes]
    if alone:  # a single sentence equals itself
        reasons[reasons == "identical"] = None
    text, flags = normalise_column(foreign)
    reasons[(np.diff(text.offsets) == 0) & (reasons == None)] = NO_GROUP  # noqa: E711, of each
    reasons[(flags & UNDECODABLE) != 0] = "undecodable"
    data, bounds = text.values.astype("<u4").tobytes(), pairwise((4 * text.offsets).tolist())
    sentences = (data[start:end].decode("utf-32-le", "replace") for start, end in bounds)
    groups = [xxh3_128_hexdigest(sentence.encode()) for sentence in sentences]
    strings = pa.array(reasons.tolist(), pa.string()), pa.array(groups, pa.string())
    return pa.StructArray.from_arrays(strings, JUDGED.names)


def by_reason(rows: DataFrame) -> Counter[str]:
    """Counts rows by reason."""
    return Counter({row.reason: row["count"] for row in rows.groupBy("reason").count().collect()})


def make_pairs(fit: DataFrame, method: Method) -> DataFrame:
    """Returns columns MADE: what the method makes of each group of fit items.

    The items of a group arrive one by one, so a large group never becomes a single row. If a group
    has more than MEMBERS items, those with the least hash are used; the others are over the limit.
    """
    second = [] if method.alone else ["paraphrase"]
    rows = fit.select("group", "foreign", "source", *second).repartition("group")

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = _made(batches, method)
        while some := list(islice(made, BATCH)):
            yield pa.RecordBatch.from_pylist(some, _MADE)

    order = "group", F.xxhash64("source", *second)
    return rows.sortWithinPartitions(*order).mapInArrow(make, MADE)


def _made(batches: Iterable[pa.RecordBatch], method: Method) -> Iterator[dict[str, Any]]:
    rows = (row for batch in batches for row in batch.to_pylist())
    for group, items in groupby(rows, key=lambda row: row["group"]):
        foreign, members = None, Counter[tuple[str, str]]()
        for row in items:
            item = row["source"], row.get("paraphrase", row["source"])
            if item not in members and len(members) == MEMBERS:
                made = _left(OVER_LIMIT, item, method)
                yield made._asdict() | {"foreign": row["foreign"], "group": group}
                continue
            foreign = min(foreign or row["foreign"], row["foreign"])
            members[item] += 1
        again = (
            _left(REPEATED, item, method) for item in (members - Counter([*members])).elements()
        )
        for made in chain(again, method.make([*members])):
            yield made._asdict() | {"foreign": foreign, "group": group}


def _left(reason: str, item: tuple[str, str], method: Method) -> Made:
    return Made(reason, item[0], None if method.alone else item[1])
