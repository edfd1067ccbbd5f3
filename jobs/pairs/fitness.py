"""Judges which sentences can be in a pair, and finds the group of their foreign sentence."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import StringType, StructField, StructType
from xxhash import xxh3_128_hexdigest

from gaixie.udfs.text.code_points import CodePoints
from gaixie.udfs.text.normalise import UNDECODABLE, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons

NO_GROUP = "no_foreign"
"""Reason: the foreign sentence is null or empty."""

JUDGED = StructType([StructField("reason", StringType()), StructField("group", StringType())])


def judge_columns(min_characters: int, max_characters: int, alone: bool) -> Callable[..., Column]:
    """Returns a function of the columns (source, paraphrase, foreign) that gives JUDGED.

    reason: one of gaixie.udfs.text.validate.REASONS or NO_GROUP; null for what can be in a pair.
    group: XXH3-128 of the normalised foreign sentence in UTF-8, as 32 hexadecimal digits. alone:
    source is a sentence by itself, and paraphrase the same column.
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
    """Does what judge_columns says, on Arrow arrays of strings of shape (rows,)."""
    a = normalise_column(source)
    b = a if alone else normalise_column(paraphrase)
    codes = quarantine_reasons(*a, *b, min_characters, max_characters)
    reasons = np.array([None, *REASONS], object)[codes]
    if alone:  # equal to itself
        reasons[reasons == "identical"] = None
    text, flags = normalise_column(foreign)
    reasons[(np.diff(text.offsets) == 0) & (reasons == None)] = NO_GROUP  # noqa: E711, of each
    reasons[(flags & UNDECODABLE) != 0] = "undecodable"
    groups = [xxh3_128_hexdigest(sentence) for sentence in _utf8(text)]
    strings = pa.array(reasons.tolist(), pa.string()), pa.array(groups, pa.string())
    return pa.StructArray.from_arrays(strings, JUDGED.names)


def _utf8(text: CodePoints) -> list[bytes]:
    data, bounds = text.values.astype("<u4").tobytes(), (4 * text.offsets).tolist()
    return [
        data[start:end].decode("utf-32-le", "replace").encode() for start, end in pairwise(bounds)
    ]
