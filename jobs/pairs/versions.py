"""Pairs several Chinese versions of one foreign sentence (method versions).

Versions that are equal after normalisation are merged. n versions make n (n - 1) / 2 pairs, or
twice as many in both directions. If a sentence has more than COMPARED versions, those with the
least hash are paired, so time and memory stay linear in the versions. At most max_pairs pairs are
kept, those with the least hash of seed and both texts, so neither other groups nor the order of
rows changes the choice. In one direction, the source is the text with the smaller hash, whatever
the order of the two.

Source: *Chinese Sentence Paraphrasing*, section 3.2, which pairs a human and a machine translation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field
from pyspark.sql import DataFrame
from xxhash import xxh3_64_intdigest

from gaixie.jobs.pairs.groups import make_groups
from gaixie.jobs.pairs.method import ALONE, OVER_LIMIT, REPEATED, Candidate, Method, PairsInput
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.splitmix import GOLDEN, mix

if TYPE_CHECKING:
    from gaixie.jobs.pairs.build import PairsBuild

COMPARED = 2_000
"""Maximum versions of a sentence that are paired with each other: some two million pairs."""


class Versions(Method):
    """The method versions."""

    foreign_column: str
    """the column of the foreign sentence; versions have the same value in it"""
    text_column: str = "text"
    """the column of a Chinese version, or of a list of them"""
    max_pairs: int | None = Field(None, ge=1)
    """keep at most N pairs of one foreign sentence, chosen by a hash"""

    def table(self) -> PairsInput:
        return PairsInput.of(self, self.foreign_column, self.text_column, may_have_lists=True)

    def items(self, rows: DataFrame) -> DataFrame:
        is_list = dict(rows.dtypes)["paraphrase"].startswith("array")
        version = "explode_outer(paraphrase)" if is_list else "paraphrase"
        rows = rows.selectExpr("source AS foreign", f"{version} AS source", "malformed_line")
        return rows.selectExpr("foreign", "source", "source AS paraphrase", "malformed_line")

    def make(self, build: PairsBuild, fit: DataFrame) -> DataFrame:
        return make_groups(fit, self.pairs_of)

    def used(self, build: PairsBuild, pairs: DataFrame) -> DataFrame:
        return pairs.selectExpr("group", "explode(array(source, paraphrase))")

    def pairs_of(self, members: list[tuple[str, str]]) -> Iterator[Candidate]:
        """Yields the pairs and leftovers of a group."""
        distinct: dict[str, str] = {}
        for text in sorted(source for source, _ in members):
            normalised = normalise(text)
            if normalised in distinct:
                yield Candidate(REPEATED, text, None)
            distinct.setdefault(normalised, text)
        texts = list(distinct.values())
        if len(texts) == 1:
            yield Candidate(ALONE, texts[0], None)
            return
        hashes = [xxh3_64_intdigest(text.encode(), self.seed) for text in distinct]
        used = np.zeros(len(texts), bool)
        for first, second in choose(np.array(hashes, np.uint64), self.both, self.max_pairs):
            used[first] = used[second] = True
            yield Candidate(None, texts[first], texts[second])
        for unused in np.flatnonzero(~used):
            yield Candidate(OVER_LIMIT, texts[unused], None)


def choose(
    codes: np.ndarray, both_directions: bool, max_pairs: int | None
) -> Iterator[tuple[int, int]]:
    """Yields (source, paraphrase) as indexes into distinct uint64 codes, shape (n,), n >= 2.

    The pairs are all those of the COMPARED least codes, or the max_pairs with the least key among
    them. Memory is linear in n and max_pairs.
    """
    order = np.argsort(codes, kind="stable")[:COMPARED]
    codes = codes[order]
    kept = np.empty((0, 2), np.int64), np.empty(0, np.uint64)
    for first in range(len(codes)):
        second = np.arange(0 if both_directions else first + 1, len(codes))
        second = second[second != first]
        pairs = np.stack([np.full_like(second, first), second], axis=1)
        if max_pairs is None:
            yield from map(tuple, order[pairs].tolist())
            continue
        keys = mix(codes[first : first + 1] * GOLDEN ^ codes[second])  # SplitMix64 of both
        pairs, keys = np.concatenate([kept[0], pairs]), np.concatenate([kept[1], keys])
        least = np.argsort(keys, kind="stable")[:max_pairs]
        kept = pairs[least], keys[least]
    yield from map(tuple, order[kept[0]].tolist())
