"""Judges which sentences can be in a pair, and makes the pairs of each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import StringType, StructField, StructType
from xxhash import xxh3_128_hexdigest

from gaixie.jobs.pairs.method import OVER_LIMIT, REPEATED, Candidate
from gaixie.udfs.text.normalise import UNDECODABLE, normalise, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons

NO_GROUP = "no_foreign"
"""Reason: the foreign sentence is null or empty."""

JUDGED = StructType([StructField("reason", StringType()), StructField("group", StringType())])

MEMBERS = 100_000
"""Maximum distinct items of a group that are paired; one task holds them all in memory."""

BATCH = 10_000
"""Pairs that return to Spark at once."""

NAMES = ("reason", "source", "paraphrase", "foreign", "group", "parameters")
MADE = ", ".join(f"{name} string" for name in NAMES) + ", dropped boolean"
"""Columns of what a method makes. parameters: null if they are those of the whole building.
dropped: whether this is a further candidate of a sentence that another row accounts for."""
MADE_ARROW = pa.schema([*((name, pa.string()) for name in NAMES), ("dropped", pa.bool_())])

PairsOf = Callable[[list[tuple[str, str]]], Iterator[Candidate]]
"""Yields the pairs and leftovers of one group, given its distinct items (source, paraphrase)."""


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


def make_groups(fit: DataFrame, pairs_of: PairsOf, alone: bool = True) -> DataFrame:
    """Returns columns MADE: what pairs_of makes of each group of fit items.

    alone: whether an item is one sentence. The items of a group arrive one by one, so a large group
    never becomes a single row. If a group has more than MEMBERS items, those with the least hash
    are used; the others are over the limit.
    """
    second = [] if alone else ["paraphrase"]
    rows = fit.select("group", "foreign", "source", *second).repartition("group")

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = made_of_groups(batches, pairs_of, alone)
        while some := list(islice(made, BATCH)):
            yield pa.RecordBatch.from_pylist(some, MADE_ARROW)

    order = "group", F.xxhash64("source", *second)
    return rows.sortWithinPartitions(*order).mapInArrow(make, MADE)


def made_of_groups(
    batches: Iterable[pa.RecordBatch], pairs_of: PairsOf, alone: bool
) -> Iterator[dict[str, Any]]:
    """Yields rows MADE for rows sorted by group: group, foreign, source, and paraphrase unless
    alone."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for group, items in groupby(rows, key=lambda row: row["group"]):
        foreign, members = None, Counter[tuple[str, str]]()
        for row in items:
            item = row["source"], row.get("paraphrase", row["source"])
            if item in members or len(members) < MEMBERS:
                foreign = min(foreign or row["foreign"], row["foreign"])
                members[item] += 1
            else:
                yield _row(Candidate(OVER_LIMIT, item[0], item[1]), row["foreign"], group, alone)
        left = [Candidate(REPEATED, *item) for item in (members - Counter([*members])).elements()]
        for made in (*left, *pairs_of([*members])):
            yield _row(made, foreign, group, alone)


def _row(made: Candidate, foreign: str | None, group: str, alone: bool) -> dict[str, Any]:
    paraphrase = None if alone and made.reason else made.paraphrase
    row = {"reason": made.reason, "source": made.source, "paraphrase": paraphrase}
    return row | {"foreign": foreign, "group": group, "parameters": None, "dropped": False}


def distinct_sentences(members: list[tuple[str, str]]) -> Iterator[Candidate]:
    """Yields the distinct sentences of a group without a reason, and the others as repeated."""
    known: set[str] = set()
    for text in sorted(source for source, _ in members):
        normalised = normalise(text)
        yield Candidate(REPEATED if normalised in known else None, text, None)
        known.add(normalised)
