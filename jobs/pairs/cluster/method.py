"""Pairs the sentences of clusters: sentences about one thing that say the same (method cluster).

Source: Dou, Jiang and Xu, "Improving Large-scale Paraphrase Acquisition and Generation" (MultiPIT,
2022): tweets that share a topic or a URL are candidates, a classifier identifies paraphrases, and
clusters give several references for one source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from gaixie.jobs.corpus.settings import Uri
from gaixie.jobs.pairs.method import Free, Group, Method, Option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gaixie.jobs.pairs.cluster.build import ClusterPairs
    from gaixie.jobs.pairs.settings import BuildSettings

UNITS = "hour|day|week|month"


def _known_key(key: str) -> str:
    if not all(re.fullmatch(rf"[^:]+(:({UNITS}))?", part) for part in key.split("+")):
        times = f"a time as COLUMN:{UNITS}, such as topic+created:day"
        raise ValueError(f"expected columns joined by +, {times}")
    return key


class ClusterSettings(Group):
    """cluster in conf/pairs.yaml."""

    key_columns: Annotated[
        tuple[Annotated[str, AfterValidator(_known_key)], ...], Option("key_column")
    ] = ()
    """compare only sentences that share a key, such as topic, url or topic+created:day"""
    clusters: Annotated[Uri | None, Option()] = None
    """output of an earlier month, whose clusters these sentences join"""
    references: Annotated[int | None, Option(), Free()] = Field(default=None, ge=2)
    """also write the sources with N or more paraphrases"""
    ngram: int = Field(default=2, ge=1, le=10)
    near_duplicate: float = Field(default=0.8, gt=0, le=1)
    near_duplicate_bands: int = Field(default=10, ge=1, le=500)
    near_duplicate_rows: int = Field(default=6, ge=1, le=50)
    overlap: float = Field(default=0.2, ge=0, lt=1)
    encoder: Annotated[str | None, Option()] = None
    """folder of an encoder: find candidates by embedding, not by overlap"""
    cosine: float = Field(default=0.8, ge=-1, le=1)
    bands: int | None = Field(default=None, ge=1, le=500)
    rows: int | None = Field(default=None, ge=1, le=63)
    neighbours: int = Field(default=16, ge=1, le=1000)
    identify: Annotated[str, Option()] = "core"
    """what decides that two say the same: core (default) | full | a classifier's folder"""
    min_meaning: float = Field(default=0.6, ge=0, le=1)
    min_probability: float = Field(default=0.5, ge=0, le=1)
    min_share: float = Field(default=0.5, ge=0, le=1)
    compared: int = Field(default=50, ge=2, le=1000)

    @property
    def columns(self) -> dict[str, str]:
        """Maps the input columns that make keys to their names in the table that is read."""
        names = [part.partition(":")[0] for key in self.key_columns for part in key.split("+")]
        return {name: f"key_{number}" for number, name in enumerate(dict.fromkeys(names))}

    @property
    def banding(self) -> tuple[int, int]:
        """Returns the bands and rows that select candidates: stricter without keys.

        With n-grams, sentences with an overlap of 0.3 meet within a key with probability 0.95;
        without keys, those with an overlap of 0.5 meet with 0.88. With embeddings, a row is one
        bit: a cosine of 0.8 meets with 0.97 and 0.77.
        """
        with_key, without = (10, 16) if self.encoder else (2, 4)
        return self.bands or 32, self.rows or (with_key if self.key_columns else without)


@dataclass(frozen=True)
class Cluster(Method):
    """The method cluster. gaixie.jobs.pairs.cluster.build makes its pairs, from all sentences at
    once."""

    origin = "human"
    options = ("text_column", "max_pairs")
    groups = ("cluster",)
    decides = ("max_pairs", "seed", "cluster")

    own: ClusterSettings

    @classmethod
    def of(cls, settings: BuildSettings) -> Cluster:
        return cls(settings.cluster)

    def builder(self) -> type[ClusterPairs]:
        from gaixie.jobs.pairs.cluster.build import ClusterPairs

        return ClusterPairs

    def items(self, rows: DataFrame) -> DataFrame:
        """Returns columns source, foreign (the same), malformed_line, keys."""
        from gaixie.jobs.pairs.cluster.sentences import key_hashes

        keys = key_hashes(self.own.key_columns, self.own.columns).alias("keys")
        texts = "source AS foreign", "source", "source AS paraphrase", "malformed_line"
        return rows.select("*", keys).selectExpr(*texts, "keys")
