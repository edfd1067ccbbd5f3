"""Judges which items can be in a pair, and which group they belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import arrow_udf
from xxhash import xxh3_128_hexdigest

from gaixie.udfs.text.normalise import UNDECODABLE, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons

NO_GROUP = "no_foreign"
"""Reason: the foreign sentence is null or empty."""

NAMES = ("reason", "source", "paraphrase", "foreign", "group", "parameters")
MADE = ", ".join(f"{name} string" for name in NAMES) + ", dropped boolean"
"""Columns of what a method makes. parameters: null if they are those of the whole building.
dropped: whether this is a further candidate of a sentence that another row accounts for."""
MADE_ARROW = pa.schema([*((name, pa.string()) for name in NAMES), ("dropped", pa.bool_())])


def judge_columns(min_characters: int, max_characters: int, alone: bool) -> Callable[..., Column]:
    """Returns a function of the columns (source, paraphrase, foreign): see judge_batch."""

    @arrow_udf("reason string, group string")
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
    """Returns (reason, group) of items whose sentences are strings of shape (rows,).

    reason: one of gaixie.udfs.text.validate.REASONS or NO_GROUP; null if the item can be in a pair.
    group: XXH3-128 of the normalised foreign sentence in UTF-8, as 32 hexadecimal digits. alone:
    source is a single sentence, and paraphrase is the same column.
    """
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
    columns = pa.array(reasons.tolist(), pa.string()), pa.array(groups, pa.string())
    return pa.StructArray.from_arrays(columns, ["reason", "group"])


def by_reason(rows: DataFrame) -> Counter[str]:
    """Counts rows by reason."""
    return Counter({row.reason: row["count"] for row in rows.groupBy("reason").count().collect()})
