"""Pairs Chinese sentences that say the same, found among many by hashing (method cluster).

Sentences that share a key, such as a topic or a URL, are candidates; without keys, all are. A
metric decides which candidates say the same, and clusters join those. Each month's sentences join
the clusters of the month before.

Source: Dou, Jiang and Xu, "Improving Large-scale Paraphrase Acquisition and Generation" (MultiPIT,
2022), whose candidates are tweets that share a topic or a URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.corpus.input import Origin, Uri
from gaixie.jobs.corpus.parquet import read_table
from gaixie.jobs.pairs.clusters.candidates import Identifier
from gaixie.jobs.pairs.clusters.clustering import Clustering
from gaixie.jobs.pairs.method import FromSentences, PairsInput

if TYPE_CHECKING:
    from gaixie.jobs.pairs.build import PairsBuild


class Clusters(FromSentences):
    """The method cluster."""

    origin: Origin = "human"
    """parallel | back_translation | llm | human"""
    max_pairs: int | None = Field(None, ge=1)
    """keep at most N pairs of one cluster, chosen by a hash"""
    key_column: tuple[str, ...] = ()
    """compare only sentences that share a key: a column, or several joined by +"""
    clusters: Uri | None = None
    """output of an earlier month, whose clusters these sentences join"""
    ngram: int = Field(2, ge=1, le=10)
    """characters of an n-gram; overlap is the share of n-grams that two sentences share"""
    near_duplicate: float = Field(0.8, gt=0, le=1)
    """overlap from which one of two sentences is dropped"""
    near_duplicate_bands: int = Field(10, ge=1, le=500)
    """bands of the signature that finds near duplicates"""
    near_duplicate_rows: int = Field(6, ge=1, le=50)
    """rows of a band of that signature"""
    overlap: float = Field(0.2, ge=0, lt=1)
    """minimum overlap of candidates"""
    bands: int = Field(32, ge=1, le=500)
    """bands of the signature that finds candidates"""
    rows: int | None = Field(None, ge=1, le=63)
    """rows of a band of that signature; by default 2 with keys, 4 without"""
    neighbours: int = Field(16, ge=1, le=1000)
    """sentences of a bucket that are compared with all of it"""
    identify: Literal["core", "full"] = "core"
    """the tier of SPScore-zh whose meaning decides that two sentences say the same"""
    min_meaning: float = Field(0.6, ge=0, le=1)
    """meaning from which two sentences say the same"""
    min_share: float = Field(0.5, ge=0, le=1)
    """share of a cluster's members that each member must say the same as"""
    compared: int = Field(50, ge=2, le=1000)
    """members compared with each other; later ones are compared with these"""

    may_be_empty: ClassVar[bool] = True  # a sentence without a match may find one next month

    @property
    def paths(self) -> list[str]:
        return [*super().paths, *filter(None, [self.clusters])]

    @property
    def columns(self) -> dict[str, str]:
        """Maps the input columns that make keys to their names in the table that is read."""
        names = dict.fromkeys(part for key in self.key_column for part in key.split("+"))
        return {name: f"key_{number}" for number, name in enumerate(names)}

    @property
    def band_rows(self) -> int:
        """Returns the rows of a band that selects candidates: stricter without keys.

        Sentences with an overlap of 0.3 meet within a key with probability 0.95; without keys,
        those with an overlap of 0.5 meet with 0.88.
        """
        return self.rows or (2 if self.key_column else 4)

    def lineage(self) -> tuple[str | None, str | None]:
        return self.identify, self.identifier.describe()

    @property
    def identifier(self) -> Identifier:
        """Returns what decides that two sentences say the same."""
        return Identifier(self.identify, self.min_meaning)

    def check(self) -> None:
        self.identifier.describe()

    def table(self) -> PairsInput:
        return PairsInput.of(self, self.text_column, self.text_column, keys=self.columns)

    def items(self, rows: DataFrame) -> DataFrame:
        keys = key_hashes(self.key_column, self.columns)
        texts = F.col("source").alias("foreign"), F.col("source").alias("paraphrase")
        return rows.select(*texts, "source", "malformed_line", keys.alias("keys"))

    def make(self, build: PairsBuild, fit: DataFrame) -> DataFrame:
        return Clustering(build, self).make(fit)

    def used(self, build: PairsBuild, pairs: DataFrame) -> DataFrame:
        texts = pairs.selectExpr("explode(array(source, paraphrase)) AS text")
        new = read_table(build.spark, f"{build.output}/clusters").where("new")
        return texts.join(new, "text", "left_semi")


def key_hashes(keys: tuple[str, ...], columns: dict[str, str]) -> Column:
    """Returns a hash of each key of a row: array<bigint>.

    A key is empty if one of its columns is null or empty. columns: their names in the table.
    """
    hashes = [F.lit(None).cast("bigint")]
    for key in keys:
        names = [columns[name] for name in key.split("+")]
        parts = [F.nullif(F.trim(F.col(name).cast("string")), F.lit("")) for name in names]
        is_filled = F.concat(*parts).isNotNull()
        hashes.append(F.when(is_filled, F.xxhash64(F.lit(key), *parts)))
    return F.array_compact(F.array(*hashes))
