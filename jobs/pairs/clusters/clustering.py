"""Builds clusters, and pairs from clusters.

  fit -> sentences   distinct sentences; each is a node with its keys
      -> duplicates  sentences left out as near duplicates of another
      -> edges       candidates that say the same
      -> groups      the component of each sentence that has an edge; links: edges by component
      -> linked      clusters from the links, and pairs from the clusters
      -> clusters    every kept sentence and its cluster; the next month reads this

Each is a table, so a killed building continues after the last finished one.
"""

from __future__ import annotations

from functools import reduce
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F

from gaixie.jobs.corpus.parquet import read_table
from gaixie.jobs.corpus.session import set_shuffle_partitions
from gaixie.jobs.pairs.build import PairsBuild
from gaixie.jobs.pairs.clusters.buckets import Bands, neighbours
from gaixie.jobs.pairs.clusters.candidates import identified, near_duplicates, with_texts
from gaixie.jobs.pairs.clusters.components import join_edges, strongest_edges
from gaixie.jobs.pairs.clusters.linking import LINKED, MEMBER, Linking
from gaixie.jobs.pairs.clusters.stars import Linker
from gaixie.jobs.pairs.groups import MADE
from gaixie.jobs.pairs.method import ALONE, REPEATED
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST

if TYPE_CHECKING:
    from gaixie.jobs.pairs.clusters.method import Clusters

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

PUBLISHED = "id string, text string, cluster string, keys array<bigint>, new boolean"
"""Columns of OUTPUT/clusters. id: XXH3-128 of the normalised sentence, 32 hexadecimal digits.
cluster: id of the cluster's centre, null for a sentence that is alone. new: whether this run read
the sentence."""


class Clustering:
    """The steps of one building."""

    def __init__(self, build: PairsBuild, settings: Clusters):
        self.build, self.settings, self.spark = build, settings, build.spark
        self.before = read_previous(build, settings) if settings.clusters else None

    def make(self, fit: DataFrame) -> DataFrame:
        """Returns the pairs and leftovers of all fit sentences."""
        has_key = F.size("keys") > 0 if self.settings.key_column else F.lit(True)
        beyond = Observation()
        distinct = distinct_sentences(fit.where(has_key), self.before, beyond)
        sentences = self.keep("sentences", distinct, beyond)
        set_shuffle_partitions(self.spark, ceil(sentences.count() / SENTENCES))
        duplicates = self._duplicates(sentences)
        kept = sentences.join(duplicates, "node", "left_anti")
        linked = self._linked(kept, self._edges(kept))
        joined = linked.where(F.col("reason") == MEMBER)
        joined = joined.select("node", F.col("group").alias("joined"))
        cluster = F.coalesce("cluster", "joined").alias("cluster")
        clusters = kept.join(joined, "node", "left").select("id", "text", cluster, "keys", "new")
        clusters = self.keep("clusters", clusters, folder=self.build.output)
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
        return self.spark.createDataFrame([], MADE).unionByName(made, True)

    def keep(self, name: str, table: DataFrame, *counted: Observation, **given: Any) -> DataFrame:
        """Writes a table and reads it back, and notes its counts; see PairsBuild.keep."""
        kept, counts = self.build.keep(name, table, *counted, **given)
        self.build.figures[name] = counts["rows"]
        if counts.get("count"):
            self.build.figures[f"{name}_crowded"] = counts["count"]
        return kept

    def _duplicates(self, sentences: DataFrame) -> DataFrame:
        """Returns the nodes of near duplicates of earlier sentences."""
        settings, crowded = self.settings, Observation()
        bands, rows = settings.near_duplicate_bands, settings.near_duplicate_rows
        hashes = Bands(settings.ngram, bands, rows, settings.seed)
        count = self.build.figures["sentences"]
        met = neighbours(sentences, count, hashes, settings.neighbours, False, crowded)
        met = with_texts(met, sentences)
        found = near_duplicates(met, settings.ngram, settings.near_duplicate)
        return self.keep("duplicates", found, crowded)

    def _edges(self, kept: DataFrame) -> DataFrame:
        """Returns columns a, b, score: the pairs that say the same."""
        settings, crowded = self.settings, Observation()
        hashes = Bands(settings.ngram, settings.bands, settings.band_rows, settings.seed + 1)
        keyed, count = bool(settings.key_column), self.build.figures["sentences"]
        if keyed:
            [[total]] = kept.agg(F.sum(F.size("keys"))).collect()
            count = total or 0
        met = neighbours(kept, count, hashes, settings.neighbours, keyed, crowded)
        limits = settings.ngram, settings.overlap, settings.near_duplicate
        found = identified(with_texts(met, kept), settings.identifier, *limits)
        return self.keep("edges", found, crowded)

    def _linked(self, kept: DataFrame, edges: DataFrame) -> DataFrame:
        """Returns columns LINKED."""
        settings = self.settings
        if not self.build.figures["edges"]:
            return self.spark.createDataFrame([], LINKED)
        counts = self.build.markers.once("groups", lambda: self._write_groups(kept, edges))
        self.build.figures |= counts
        groups = read_table(self.spark, f"{self.build.work}/groups")
        links = read_table(self.spark, f"{self.build.work}/links")
        links = links.groupBy("component").agg(F.collect_list(F.struct("a", "b")).alias("edges"))
        columns = F.collect_list(F.struct("node", "id", "text", "cluster", "new"))
        sentences = kept.join(groups, "node").groupBy("component").agg(columns.alias("sentences"))
        linking = Linking(
            Linker(settings.min_meaning, settings.min_share, settings.compared),
            settings.identifier,
            (settings.ngram, settings.near_duplicate),
            settings.seed,
            settings.both,
            settings.max_pairs,
        )
        return self.keep("linked", sentences.join(links, "component").mapInArrow(linking, LINKED))

    def _write_groups(self, kept: DataFrame, edges: DataFrame) -> dict[str, int]:
        """Writes groups (node, component) and links (a, b, component); the driver joins them.

        Of a component with too many edges, the strongest are kept, and the sentences that have one
        or with which newcomers are compared.
        """
        files, path = storage.arrow_filesystem(f"{self.build.work}/edges")
        table = pq.read_table(path, filesystem=files)
        a, b, score = (table[name].to_numpy() for name in ("a", "b", "score"))
        centres, members = self._members(kept, edges)
        nodes, components = join_edges(np.append(a, centres), np.append(b, members))
        component = components[np.searchsorted(nodes, a)]
        rows = strongest_edges(component, score, a, b, COMPONENT_EDGES)
        links = {"a": a[rows], "b": b[rows], "component": component[rows]}
        is_needed = np.isin(nodes, np.concatenate([a[rows], b[rows], members]))
        groups = {"node": nodes[is_needed], "component": components[is_needed]}
        self.build.check_lock()
        for name, columns in (("links", links), ("groups", groups)):
            storage.write_table(f"{self.build.work}/{name}/0.parquet", pa.table(columns))
        return {"edges_over_limit": len(a) - len(rows)}

    def _members(self, kept: DataFrame, edges: DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Returns (hash of the cluster, node), int64: members of published clusters that matter.

        These are the members that have an edge and, of their clusters, those with which newcomers
        are compared: the centre, then by node.
        """
        if self.before is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        published = kept.where("cluster IS NOT NULL")
        nodes = edges.select(F.explode(F.array("a", "b")).alias("node"))
        touched = published.join(nodes, "node", "left_semi")
        members = published.join(touched.select("cluster").distinct(), "cluster", "left_semi")
        first = first_members(members, self.settings.compared).select("cluster", "node")
        both = first.union(touched.select("cluster", "node"))
        found = both.select(F.xxhash64("cluster").alias("centre"), "node").toArrow()
        return found["centre"].to_numpy(), found["node"].to_numpy()


def distinct_sentences(
    fit: DataFrame, before: DataFrame | None, left_out: Observation
) -> DataFrame:
    """Returns a row for each distinct sentence.

    Columns: node (bigint, a hash of id: two of 17 million sentences share one with a probability of
    1 in 130,000), id, text, new, copies (further rows of fit with the same sentence), cluster,
    keys.

    fit: source, group (the id), keys. before: PUBLISHED; its sentences are not new, and keep their
    text and cluster. left_out: observes "count", the number of keys beyond KEYS.
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
    beyond = F.greatest(F.size("keys") - KEYS, F.lit(0))
    distinct = distinct.observe(left_out, F.sum(beyond).alias("count"))
    distinct = distinct.withColumn("keys", F.slice("keys", 1, KEYS))
    copies = "count - CAST(first.new AS INT) AS copies"
    return distinct.selectExpr("node", "id", "first.text", "first.new", copies, "cluster", "keys")


def first_members(members: DataFrame, most: int) -> DataFrame:
    """Returns the first members of each published cluster: the centre, then by node."""
    order = Window.partitionBy("cluster").orderBy(F.col("id") != F.col("cluster"), "node")
    return members.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= most)


def read_previous(build: PairsBuild, settings: Clusters) -> DataFrame:
    """Reads table PUBLISHED of the output that settings.clusters names.

    Raises UserError if none is published there, or if it has other keys.
    """
    root = str(settings.clusters).rstrip("/")
    if not storage.exists(f"{root}/{MANIFEST}"):
        raise UserError(f"--clusters {root}: no {MANIFEST}, so nothing is published there")
    manifest = storage.read_json(f"{root}/{MANIFEST}")
    if manifest.get("method") != "cluster":
        raise UserError(f"--clusters {root}: pairs of another method, expected cluster")
    if (keys := tuple(manifest["settings"]["key_column"])) != settings.key_column:
        raise UserError(f"--clusters {root}: its keys are {keys}; give the same keys")
    return read_table(build.spark, f"{root}/clusters", schema=PUBLISHED)
