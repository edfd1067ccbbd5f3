"""versions: several Chinese versions of one foreign sentence are pairs already.

Equal versions (normalised) are merged. Of n versions come n (n - 1) / 2 pairs, or twice as many with both
directions; at most max_pairs of them, those with the least hash of seed and both texts, so that a choice
stays when other groups or the order of rows change. In one direction the source is the one of the two with
the smaller hash: neither the place in the input nor the text itself decides.

Source: *Chinese Sentence Paraphrasing*, section 3.2, where a human and a machine translation are paired.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType
from xxhash import xxh3_64_intdigest

from gaixie.jobs.corpus.inputs import MALFORMED_LINE
from gaixie.jobs.pairs.method import REPEATED, Made
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.splitmix import GOLDEN, mix

ALONE = "alone"
"""Reason of the only version of its foreign sentence."""

OVER_LIMIT = "over_limit"
"""Reason of a version that is in none of the max_pairs pairs."""


@dataclass(frozen=True)
class Versions:
    """The method; max_pairs None: all pairs."""

    both_directions: bool
    max_pairs: int | None
    seed: int
    json_lists: bool
    """Whether lists come as the text of a JSON array, as they do from JSON lines."""

    unit = "sentences"
    alone = True

    def items(self, rows: DataFrame) -> DataFrame:
        """Columns of rows: source (the foreign sentence), paraphrase (a version, or a list), malformed_line."""
        text = F.col("paraphrase")
        if isinstance(rows.schema["paraphrase"].dataType, ArrayType):
            rows = rows.withColumn("version", F.explode_outer(text))
        elif self.json_lists:
            parsed = F.when(text.startswith("["), F.from_json(text, "array<string>"))
            versions = F.coalesce(parsed, F.array(text))
            rows = rows.withColumn("version", F.explode_outer(versions))
        else:
            rows = rows.withColumn("version", text)
        return rows.select(
            F.col("source").alias("foreign"),
            F.col("version").alias("source"),
            F.col("version").alias("paraphrase"),
            MALFORMED_LINE,
        )

    def make(self, members: list[tuple[str, str]]) -> Iterator[Made]:
        distinct: dict[str, str] = {}
        for text in sorted(source for source, _ in members):
            normalised = normalise(text)
            if normalised in distinct:
                yield Made(REPEATED, text, None)
            distinct.setdefault(normalised, text)
        texts = list(distinct.values())
        if len(texts) == 1:
            yield Made(ALONE, texts[0], None)
            return
        codes = [xxh3_64_intdigest(text.encode(), self.seed) for text in distinct]
        used = np.zeros(len(texts), bool)
        for first, second in choose(
            np.array(codes, np.uint64), self.both_directions, self.max_pairs
        ):
            used[first] = used[second] = True
            yield Made(None, texts[first], texts[second])
        for unused in np.flatnonzero(~used):
            yield Made(OVER_LIMIT, texts[unused], None)


def choose(
    codes: np.ndarray, both_directions: bool, max_pairs: int | None
) -> Iterator[tuple[int, int]]:
    """(source, paraphrase) as indexes into distinct uint64 codes, shape (n,), n >= 2.

    All pairs, or the max_pairs with the least key. Memory is linear in n and max_pairs.
    """
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    kept = np.empty((0, 2), np.int64), np.empty(0, np.uint64)
    for first in range(len(codes)):
        second = np.arange(0 if both_directions else first + 1, len(codes))
        second = second[second != first]
        pairs = np.stack([np.full_like(second, first), second], axis=1)
        if max_pairs is None:
            yield from map(tuple, order[pairs].tolist())
            continue
        keys = _keys(codes[first : first + 1], codes[second])
        pairs, keys = np.concatenate([kept[0], pairs]), np.concatenate([kept[1], keys])
        least = np.argsort(keys, kind="stable")[:max_pairs]
        kept = pairs[least], keys[least]
    yield from map(tuple, order[kept[0]].tolist())


def _keys(source: np.ndarray, paraphrase: np.ndarray) -> np.ndarray:
    """Key of each ordered pair of codes: SplitMix64 of both; uint64."""
    return mix(source * GOLDEN ^ paraphrase)
