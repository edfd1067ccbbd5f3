"""Pairs several Chinese versions of one foreign sentence (method versions).

Versions that are equal after normalisation are merged. n versions make n (n - 1) / 2 pairs. If a
sentence has more than COMPARED versions, those with the least hash are paired, so time and memory
stay linear in the versions. At most max_pairs pairs are kept, those with the least hash of seed and
both texts, so neither other groups nor the order of rows changes the choice. The source is the text
with the smaller hash, whatever the order of the two.

Source: *Chinese Sentence Paraphrasing*, section 3.2, which pairs a human and a machine translation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from xxhash import xxh3_64_intdigest

from gaixie.jobs.pairs import method
from gaixie.jobs.pairs.method import MADE_ARROW, Candidate, Method, PairsInput
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.splitmix import GOLDEN, mix

if TYPE_CHECKING:
    from gaixie.jobs.pairs.build import PairsBuild

COMPARED = 2_000
"""Maximum versions of a sentence that are paired with each other: some two million pairs."""

MEMBERS = 100_000
"""Maximum distinct versions of a sentence that a task holds in memory."""

BATCH = 10_000
"""Pairs that return to Spark at once."""


class Versions(Method):
    """The method versions."""

    foreign_column: str
    """the column of the foreign sentence; versions have the same value in it"""
    text_column: str = "text"
    """the column of a Chinese version, or of a list of them"""
    max_pairs: int | None = Field(None, ge=1)
    """keep at most N pairs of one foreign sentence, chosen by a hash"""

    def table(self) -> PairsInput:
        return self.columns(self.foreign_column, self.text_column, may_have_lists=True)

    def items(self, rows: DataFrame) -> DataFrame:
        is_list = dict(rows.dtypes)["paraphrase"].startswith("array")
        version = "explode_outer(paraphrase)" if is_list else "paraphrase"
        rows = rows.selectExpr("source AS foreign", f"{version} AS source", "malformed_line")
        return rows.selectExpr("foreign", "source", "source AS paraphrase", "malformed_line")

    def make(self, build: PairsBuild, fit: DataFrame) -> DataFrame:
        """Pairs the versions of each group, which arrive one by one, so that a large group never
        becomes a single row."""

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            made = self.made_of(row for batch in batches for row in batch.to_pylist())
            while some := list(islice(made, BATCH)):
                yield pa.RecordBatch.from_pylist(some, MADE_ARROW)

        rows = fit.select("group", "foreign", "source").repartition("group")
        ordered = rows.sortWithinPartitions("group", F.xxhash64("source"))
        return ordered.mapInArrow(work, method.MADE)

    def used(self, build: PairsBuild, pairs: DataFrame) -> int:
        return pairs.selectExpr("group", "explode(array(source, paraphrase))").distinct().count()

    def made_of(self, rows: Iterable[dict[str, str]]) -> Iterator[dict[str, Any]]:
        """Yields rows MADE for rows sorted by group.

        Of a group with more than MEMBERS versions, the first are used; the others are over the
        limit.
        """
        for group, items in groupby(rows, key=lambda row: row["group"]):
            foreign, texts, over = "", Counter[str](), Counter[str]()
            for row in items:
                held = row["source"] in texts or len(texts) < MEMBERS
                (texts if held else over)[row["source"]] += 1
                foreign = min(foreign or row["foreign"], row["foreign"])
            repeats = (texts - Counter([*texts])).elements()
            left = [Candidate(method.REPEATED, text, None) for text in repeats]
            left += [Candidate(method.OVER_LIMIT, text, None) for text in over.elements()]
            for reason, source, paraphrase, _ in (*left, *self.pairs_of([*texts])):
                values = reason, source, paraphrase, foreign, group, None, False
                yield dict(zip(MADE_ARROW.names, values, strict=True))

    def pairs_of(self, versions: Sequence[str]) -> Iterator[Candidate]:
        """Yields the pairs and leftovers of a group's distinct versions."""
        distinct: dict[str, str] = {}
        for text in sorted(versions):
            normalised = normalise(text)
            if normalised in distinct:
                yield Candidate(method.REPEATED, text, None)
            distinct.setdefault(normalised, text)
        texts = list(distinct.values())
        hashes = [xxh3_64_intdigest(text.encode(), self.seed) for text in distinct]
        used = np.zeros(len(texts), bool)
        for first, second in choose(np.array(hashes, np.uint64), self.max_pairs):
            used[first] = used[second] = True
            yield Candidate(None, texts[first], texts[second])
        reason = method.OVER_LIMIT if len(texts) > 1 else method.ALONE
        for unused in np.flatnonzero(~used):
            yield Candidate(reason, texts[unused], None)


def choose(codes: np.ndarray, max_pairs: int | None) -> Iterator[tuple[int, int]]:
    """Yields (source, paraphrase) as indexes into distinct uint64 codes, shape (n,).

    The pairs are all those of the COMPARED least codes, or the max_pairs with the least key among
    them.
    """
    order = np.argsort(codes, kind="stable")[:COMPARED]
    first, second = np.triu_indices(len(order), 1)
    if max_pairs is not None:
        keys = mix(codes[order[first]] * GOLDEN ^ codes[order[second]])  # SplitMix64 of both
        least = np.argsort(keys, kind="stable")[:max_pairs]
        first, second = first[least], second[least]
    yield from zip(order[first].tolist(), order[second].tolist(), strict=True)
