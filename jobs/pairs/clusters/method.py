"""Pairs Chinese sentences that say the same, found among many by hashing (method cluster).

Sentences that share a key, such as a topic or a URL, are candidates; without keys, all are. A
metric decides which candidates say the same, and clusters join those. Each month's sentences join
the clusters of the month before.

  fit -> sentences   distinct sentences; each is a node with its keys
      -> duplicates  sentences left out as near duplicates of another
      -> edges       candidates that say the same
      -> groups      the component of each sentence that has an edge; links: edges by component
      -> linked      clusters from the links, and pairs from the clusters
      -> clusters    every kept sentence and its cluster; the next month reads this

Each is a table, so a killed building continues after the last finished one.

Source: Dou, Jiang and Xu, "Improving Large-scale Paraphrase Acquisition and Generation" (MultiPIT,
2022), whose candidates are tweets that share a topic or a URL.
"""

from __future__ import annotations

from functools import reduce
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gaixie.jobs.corpus.input import Origin, Uri
from gaixie.jobs.corpus.parquet import read_table
from gaixie.jobs.corpus.session import set_shuffle_partitions
from gaixie.jobs.pairs.clusters import candidates
from gaixie.jobs.pairs.clusters.candidates import Bands, Identifier
from gaixie.jobs.pairs.clusters.linking import LINKED, MEMBER, Linking
from gaixie.jobs.pairs.method import ALONE, MADE, REPEATED, FromSentences, PairsInput
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST

if TYPE_CHECKING:
    from gaixie.jobs.pairs.build import PairsBuild

NEAR_DUPLICATE = "near_duplicate"
"""Reason: the sentence overlaps too much with another."""

NO_KEY = "no_key"
"""Reason: all keys of the sentence are empty."""

KEYS = 1_000
"""Maximum keys of a sentence, those with the least hash; each adds bucket entries."""

COMPONENT_EDGES = 1_000_000
"""Maximum edges of a component, the strongest ones, since one task links it."""

SENTENCES = 50_000
"""Sentences of one task; each has some tens of candidates."""

NEAR_BANDS, BANDS, BANDS_WITH_KEYS = (10, 6), (32, 4), (32, 2)
"""Bands and rows of the signatures that find near duplicates, and candidates."""

NEIGHBOURS = 16
"""Sentences of a bucket that are compared with all of it."""

PUBLISHED = "id string, text string, cluster string, keys array<bigint>, new boolean"
"""Columns of OUTPUT/clusters. id: XXH3-128 of the normalised sentence, 32 hexadecimal digits.
cluster: id of the cluster's centre, null for a sentence that is alone. new: whether this run read
the sentence."""


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
    near_duplicate: float = Field(0.8, gt=0, le=1)
    """overlap (share of character bigrams) from which one of two sentences is dropped"""
    overlap: float = Field(0.2, ge=0, lt=1)
    """minimum overlap of candidates"""
    identify: Literal["core", "full"] = "core"
    """the tier of SPScore-zh whose meaning decides that two sentences say the same"""
    min_meaning: float = Field(0.6, ge=0, le=1)
    """meaning from which two sentences say the same"""
    min_share: float = Field(0.5, ge=0, le=1)
    """share of a cluster's members that each member must say the same as"""

    may_be_empty: ClassVar[bool] = True  # a sentence without a match may find one next month

    @property
    def paths(self) -> list[str]:
        return [*super().paths, *filter(None, [self.clusters])]

    @property
    def keys(self) -> dict[str, str]:
        """Maps the input columns that make keys to their names in the table that is read."""
        names = dict.fromkeys(part for key in self.key_column for part in key.split("+"))
        return {name: f"key_{number}" for number, name in enumerate(names)}

    @property
    def identifier(self) -> Identifier:
        """Returns what decides that two sentences say the same."""
        return Identifier(self.identify, self.min_meaning)

    def lineage(self) -> tuple[str | None, str | None]:
        return self.identify, self.identifier.describe()

    def check(self) -> None:
        self.identifier.describe()

    def table(self) -> PairsInput:
        return self.columns(self.text_column, self.text_column, keys=self.keys)

    def items(self, rows: DataFrame) -> DataFrame:
        keys = key_hashes(self.key_column, self.keys).alias("keys")
        texts = F.col("source").alias("foreign"), F.col("source").alias("paraphrase")
        return rows.select(*texts, "source", "malformed_line", keys)

    def make(self, build: PairsBuild, fit: DataFrame) -> DataFrame:
        """Returns the pairs and leftovers of all fit sentences."""
        has_key = F.size("keys") > 0 if self.key_column else F.lit(True)
        distinct = distinct_sentences(fit.where(has_key), self._before(build))
        sentences = self._keep(build, "sentences", distinct)
        count = build.figures["sentences"]
        set_shuffle_partitions(build.spark, ceil(count / SENTENCES))
        bands = Bands(*NEAR_BANDS, self.seed)
        met = candidates.neighbours(sentences, count, bands, NEIGHBOURS, False)
        near = candidates.near_duplicates(met, self.near_duplicate)
        duplicates = self._keep(build, "duplicates", near)
        kept = sentences.join(duplicates, "node", "left_anti")
        linked = self._linked(build, kept, self._edges(build, kept))
        joined = linked.where(F.col("reason") == MEMBER)
        joined = joined.select("node", F.col("group").alias("joined"))
        cluster = F.coalesce("cluster", "joined").alias("cluster")
        clusters = kept.join(joined, "node", "left").select("id", "text", cluster, "keys", "new")
        clusters = self._keep(build, "clusters", clusters)
        again = sentences.where("copies > 0")
        leftovers = {
            NO_KEY: fit.where(~has_key).withColumn("text", F.col("source")),
            REPEATED: again.select("text", F.explode(F.expr("sequence(1L, copies)"))),
            NEAR_DUPLICATE: sentences.join(duplicates, "node", "left_semi"),
            ALONE: clusters.where("new AND cluster IS NULL"),
        }
        rows = [
            part.select(F.lit(reason).alias("reason"), F.col("text").alias("source"))
            for reason, part in leftovers.items()
        ]
        rows.append(linked.where(F.coalesce("reason", F.lit("")) != MEMBER).drop("node"))
        made = reduce(lambda a, b: a.unionByName(b, True), rows)
        made = made.withColumn("dropped", F.lit(False))
        return build.spark.createDataFrame([], MADE).unionByName(made, True)

    def used(self, build: PairsBuild, pairs: DataFrame) -> int:
        texts = pairs.selectExpr("explode(array(source, paraphrase)) AS text").distinct()
        new = read_table(build.spark, f"{build.output}/clusters").where("new")
        return texts.join(new, "text", "left_semi").count()

    def _keep(self, build: PairsBuild, name: str, table: DataFrame) -> DataFrame:
        """Writes a table and reads it back, and notes its rows; see PairsBuild.keep."""
        kept, _ = build.keep(name, table)
        build.figures[name] = kept.count()
        return kept

    def _before(self, build: PairsBuild) -> DataFrame | None:
        """Reads table PUBLISHED of the earlier month.

        Raises UserError if none is published there, or if it has other keys.
        """
        if not self.clusters:
            return None
        root = self.clusters.rstrip("/")
        if not storage.exists(f"{root}/{MANIFEST}"):
            raise UserError(f"--clusters {root}: no {MANIFEST}, so nothing is published there")
        manifest = storage.read_json(f"{root}/{MANIFEST}")
        if manifest.get("method") != "cluster":
            raise UserError(f"--clusters {root}: pairs of another method, expected cluster")
        if (keys := tuple(manifest["settings"]["key_column"])) != self.key_column:
            raise UserError(f"--clusters {root}: its keys are {keys}; give the same keys")
        return read_table(build.spark, f"{root}/clusters", schema=PUBLISHED)

    def _edges(self, build: PairsBuild, kept: DataFrame) -> DataFrame:
        """Returns columns a, b, score: the pairs that say the same.

        Sentences with an overlap of 0.3 meet within a key with probability 0.95;
        without keys, those with an overlap of 0.5 meet with 0.88.
        """
        keyed, count = bool(self.key_column), build.figures["sentences"]
        if keyed:
            count = kept.agg(F.sum(F.size("keys"))).collect()[0][0] or 0
        bands = Bands(*(BANDS_WITH_KEYS if keyed else BANDS), self.seed + 1)
        met = candidates.neighbours(kept, count, bands, NEIGHBOURS, keyed)
        found = candidates.identified(met, self.identifier, self.overlap, self.near_duplicate)
        return self._keep(build, "edges", found)

    def _linked(self, build: PairsBuild, kept: DataFrame, edges: DataFrame) -> DataFrame:
        """Returns columns LINKED."""
        if not build.figures["edges"]:
            return build.spark.createDataFrame([], LINKED)
        build.figures |= build.markers.once("groups", lambda: _write_groups(build, kept, edges))
        groups, links = (read_table(build.spark, f"{build.work}/{n}") for n in ("groups", "links"))
        links = links.groupBy("component").agg(F.collect_list(F.struct("a", "b")).alias("edges"))
        columns = F.collect_list(F.struct("node", "id", "text", "cluster", "new"))
        sentences = kept.join(groups, "node").groupBy("component").agg(columns.alias("sentences"))
        limits = self.min_share, self.near_duplicate, self.seed, self.max_pairs
        linking = Linking(self.identifier, *limits)
        linked = sentences.join(links, "component").mapInArrow(linking, LINKED)
        return self._keep(build, "linked", linked)


def key_hashes(keys: tuple[str, ...], columns: dict[str, str]) -> Column:
    """Returns a hash of each key of a row: array<bigint>.

    A key is empty if one of its columns is null or empty. columns: their names in the table.
    """
    hashes = [F.lit(None).cast("bigint")]
    for key in keys:
        names = [columns[name] for name in key.split("+")]
        parts = [F.nullif(F.trim(F.col(name).cast("string")), F.lit("")) for name in names]
        hashes.append(F.when(F.concat(*parts).isNotNull(), F.xxhash64(F.lit(key), *parts)))
    return F.array_compact(F.array(*hashes))


def distinct_sentences(fit: DataFrame, before: DataFrame | None) -> DataFrame:
    """Returns a row for each distinct sentence.

    Columns: node (bigint, a hash of id: two of 17 million sentences share one with a probability of
    1 in 130,000), id, text, new, copies (further rows of fit with the same sentence), cluster,
    keys.

    fit: source, group (the id), keys. before: PUBLISHED; its sentences are not new, and keep their
    text and cluster.
    """
    texts = "group AS id", "source AS text", "CAST(NULL AS STRING) AS cluster"
    rows = fit.selectExpr(*texts, "keys", "true AS new")
    if before is not None:
        rows = rows.unionByName(before.withColumn("new", F.lit(False)))
    grouped = rows.withColumn("node", F.xxhash64("id")).groupBy("node", "id")
    distinct = grouped.agg(
        F.min(F.struct("new", "text")).alias("first"),
        F.count_if("new").alias("count"),
        F.max("cluster").alias("cluster"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_set("keys")))).alias("keys"),
    )
    distinct = distinct.withColumn("keys", F.slice("keys", 1, KEYS))
    copies = "count - CAST(first.new AS INT) AS copies"
    return distinct.selectExpr("node", "id", "first.text", "first.new", copies, "cluster", "keys")


def _write_groups(build: PairsBuild, kept: DataFrame, edges: DataFrame) -> dict[str, int]:
    """Writes groups (node, component) and links (a, b, component); the driver joins them.

    A published cluster with an edge is in a component as a whole. Of a component with too many
    edges, the strongest are kept, and the sentences that have one or are published.
    """
    files, path = storage.arrow_filesystem(f"{build.work}/edges")
    links = pq.read_table(path, filesystem=files).to_pandas()
    nodes = edges.select(F.explode(F.array("a", "b")).alias("node"))
    published = kept.where("cluster IS NOT NULL")
    touched = published.join(nodes, "node", "left_semi").select("cluster").distinct()
    members = published.join(touched, "cluster", "left_semi")
    members = members.select(F.xxhash64("cluster").alias("a"), F.col("node").alias("b"))
    members = members.toArrow().to_pandas()
    components = join_edges(pd.concat([links[["a", "b"]], members]))
    links["component"] = links["a"].map(components)
    links = links.sort_values(["score", "a", "b"], ascending=[False, True, True])
    strongest = links.groupby("component").head(COMPONENT_EDGES)
    needed = np.unique(np.concatenate([strongest["a"], strongest["b"], members["b"]]))
    groups = pd.DataFrame({"node": needed, "component": components[needed].to_numpy()})
    build.check_lock()
    for name, table in (("links", strongest.drop(columns="score")), ("groups", groups)):
        told = pa.Table.from_pandas(table, preserve_index=False)
        storage.write_table(f"{build.work}/{name}/0.parquet", told)
    return {"edges_over_limit": len(links) - len(strongest)}


def join_edges(edges: pd.DataFrame) -> pd.Series:
    """Returns the least node of each node's connected component, by node; edges: a, b, int64."""
    nodes, ends = np.unique(edges[["a", "b"]].to_numpy(np.int64), return_inverse=True)
    a, b = ends.reshape(-1, 2).T
    graph = coo_array((np.ones(len(a), np.int8), (a, b)), (len(nodes), len(nodes)))
    _, label = connected_components(graph, directed=False)
    return pd.Series(nodes, nodes).groupby(label).transform("min")
