"""cluster: sentences about one thing, of which some say the same, make clusters, and these make pairs.

  judged -> sentences   distinct; each a node with its keys
         -> duplicates  near duplicates of another, left out
         -> edges       candidates that were identified
         -> linked      clusters out of the edges, and pairs out of clusters
         -> clusters    every sentence that is kept, and its cluster: what the next month begins with

Each is a table of _work, so that a killed building goes on behind the last that is finished.

Source: Dou, Jiang and Xu, "Improving Large-scale Paraphrase Acquisition and Generation" (MultiPIT, 2022),
where tweets that share a topic or a URL are candidates, a classifier identifies paraphrases, and clusters
give several references for one source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F

from gaixie.jobs.corpus.accounts import observed
from gaixie.jobs.corpus.inputs import MALFORMED_LINE
from gaixie.jobs.corpus.parquet import CHECKED, PARQUET
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.build import PAIRS, WORK, BuildPairs
from gaixie.jobs.pairs.cluster.buckets import Bands, Hashes, neighbours
from gaixie.jobs.pairs.cluster.candidates import (
    ByCosine,
    ByOverlap,
    Hyperplanes,
    identified,
    near_duplicates,
    with_texts,
    with_vectors,
)
from gaixie.jobs.pairs.cluster.components import components
from gaixie.jobs.pairs.cluster.groups import LINKED, MEMBER, link_groups
from gaixie.jobs.pairs.cluster.identify import Identifier, load_identifier
from gaixie.jobs.pairs.cluster.link import Linker
from gaixie.jobs.pairs.cluster.previous import read_previous
from gaixie.jobs.pairs.cluster.sentences import NO_KEY, distinct_sentences, key_hashes
from gaixie.jobs.pairs.method import REPEATED
from gaixie.jobs.pairs.settings import BuildSettings
from gaixie.jobs.pairs.versions import ALONE

NEAR_DUPLICATE = "near_duplicate"
"""Reason of a sentence that overlaps too far with another."""

COMPONENT_EDGES = 1_000_000
"""Of a larger component the strongest edges count: one task links it."""

SENTENCES = 50_000
"""Of a task: each has some tens of candidates."""

TITLES = {
    "sentences": "distinct sentences",
    "duplicates": "near duplicates",
    "vectors": "embeddings",
    "edges": "identifying",
    "groups": "components",
    "linked": "linking clusters",
    "clusters": "writing clusters",
}


class Cluster:
    """The method, as far as reading and counting go."""

    unit = "sentences"
    alone = True

    def __init__(self, settings: BuildSettings):
        self._own = settings.cluster

    def items(self, rows: DataFrame) -> DataFrame:
        """Columns of rows: source, foreign (the same), malformed_line, keys."""
        keys = key_hashes(self._own.key_columns, self._own.columns).alias("keys")
        texts = [F.col("source").alias(name) for name in ("foreign", "source", "paraphrase")]
        return rows.select(*texts, MALFORMED_LINE, keys)

    def make(self, members: list[tuple[str, str]]) -> Iterator[Any]:
        raise NotImplementedError("clusters are made of all sentences, not of a group")


class ClusterPairs(BuildPairs):
    """The steps of build_pairs for the method cluster."""

    carried = ("keys",)

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        settings: BuildSettings,
        output: str,
        limit: int | None,
    ):
        self.own = settings.cluster
        self.before = read_previous(spark, storage, self.own) if self.own.clusters else None
        try:
            self.identifier: Identifier = load_identifier(
                self.own.identify, self.own.min_meaning, self.own.min_probability
            )
            if self.own.encoder:
                from gaixie.udfs.metrics.encoder import load_encoder

                load_encoder(self.own.encoder)
        except (OSError, ValueError) as error:
            raise JobError(str(error)) from error
        names = {"model": self.own.identify, "model_version": self.identifier.describe()}
        super().__init__(spark, storage, settings.model_copy(update=names), output, limit)
        self.method = Cluster(settings)
        self.dry = False
        self.known: dict[str, DataFrame] = {}
        """Finished tables by name."""

    def start(self, resume: bool) -> None:
        super().start(resume)
        self.storage.delete(f"{self.output}/references")
        if not self.steps.done("clusters"):
            self.storage.delete(f"{self.output}/clusters")

    def judged(self, limit: int | None, observed: Observation | None) -> DataFrame:
        rows = super().judged(limit, observed).withColumn("foreign", F.lit(None).cast("string"))
        if not self.own.key_columns:
            return rows
        no_key = F.when(F.size("keys") == 0, F.lit(NO_KEY))
        return rows.withColumn("reason", F.coalesce("reason", no_key))

    def make(self) -> None:
        if self.steps.done("made"):
            self.figures = (self.steps.done("made") or {})["figures"]
            return
        self.link(self._fit())
        with progress(self.spark, "making pairs", None):
            made = self.leftovers().unionByName(self._pairs_made())
            self._write(made.withColumn("fit", F.col("reason").isNull()), "made", "fit")
        self.steps.finish("made", {"figures": self.figures})

    def _fit(self) -> DataFrame:
        path = f"{self.output}/{WORK}/judged/fit=true"
        schema = "source string, group string, keys array<bigint>"
        if not self.storage.exists(path):
            return self.spark.createDataFrame([], schema)
        return self.spark.read.options(**CHECKED).schema(schema).parquet(path)

    def link(self, fit: DataFrame) -> None:
        """The steps from sentences that are fit to clusters."""
        own, seed = self.own, self.settings.seed
        sentences = self.keep("sentences", distinct_sentences(fit, self.before))
        count = sentences.count()
        self._spread(count)
        crowded = Observation()
        bands, rows = own.near_duplicate_bands, own.near_duplicate_rows
        near = Bands(own.ngram, bands, rows, seed)
        met = neighbours(sentences, count, near, bands, own.neighbours, False, crowded)
        texts = with_texts(met, sentences, ["text"])
        duplicates = self.keep(
            "duplicates", near_duplicates(texts, own.ngram, own.near_duplicate), crowded
        )
        kept = sentences.join(duplicates, "node", "left_anti")
        edges = self.keep("edges", *self._edges(kept, count))
        if self.figures["edges"]:
            linked = self._linked(kept, edges)
        else:
            linked = self.spark.createDataFrame([], LINKED)
            self.known["linked"] = linked
        joined = linked.where(F.col("reason") == MEMBER)
        joined = joined.select("node", F.col("group").alias("joined"))
        clusters = kept.join(joined, "node", "left").select(
            "id", "text", F.coalesce("cluster", "joined").alias("cluster"), "keys", "new"
        )
        self.keep("clusters", clusters, folder=self.output)

    def _spread(self, count: int) -> None:
        """Lets joins have tasks of SENTENCES, where the session would have fewer of them."""
        name, wanted = "spark.sql.shuffle.partitions", ceil(count / SENTENCES)
        if int(self.spark.conf.get(name) or 0) < wanted:
            self.spark.conf.set(name, str(wanted))

    def _edges(self, kept: DataFrame, count: int) -> tuple[DataFrame, Observation]:
        own, seed, crowded = self.own, self.settings.seed, Observation()
        bands, rows = own.banding
        copy = (own.ngram, own.overlap, own.near_duplicate)
        hashes: Hashes = Bands(own.ngram, bands, rows, seed + 1)
        may_be: Any = ByOverlap(*copy)
        columns = ["text"]
        if own.encoder:
            kept = self.keep("vectors", with_vectors(kept, own.encoder))
            hashes = Hyperplanes(bands, rows, seed + 1)
            may_be = ByCosine(own.ngram, own.cosine, own.near_duplicate)
            columns.append("vector")
        keyed = bool(own.key_columns)
        if keyed:
            [total] = kept.agg(F.sum(F.size("keys"))).collect()
            count = total[0] or 0
        met = neighbours(kept, count, hashes, bands, own.neighbours, keyed, crowded)
        return identified(with_texts(met, kept, columns), self.identifier, may_be), crowded

    def _linked(self, kept: DataFrame, edges: DataFrame) -> DataFrame:
        """Table LINKED."""
        ends = edges.select("a", "b")
        if self.before is not None:  # a cluster is linked with all its members
            nodes = edges.select(F.explode(F.array("a", "b")).alias("node"))
            published = kept.where("cluster IS NOT NULL")
            touched = published.join(nodes, "node", "left_semi").select("cluster").distinct()
            members = published.join(touched, "cluster")
            ends = ends.unionByName(
                members.select(F.xxhash64("cluster").alias("a"), F.col("node").alias("b"))
            )
        groups = self.keep("groups", components(ends, self.keep))
        of_edges = edges.join(groups.withColumnRenamed("node", "a"), "a")
        of_edges = _strongest(of_edges)
        links = of_edges.groupBy("component").agg(F.collect_list(F.struct("a", "b")).alias("edges"))
        columns = F.struct("node", "id", "text", "cluster", "new")
        sentences = kept.join(groups, "node").groupBy("component")
        grouped = sentences.agg(F.collect_list(columns).alias("sentences"))
        grouped = grouped.join(links, "component")
        linker = Linker(self.identifier.least, self.own.min_share, self.own.compared)
        both, most = self.settings.directions == "both", self.settings.max_pairs
        copy = (self.own.ngram, self.own.near_duplicate)

        def link(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return link_groups(batches, linker, identifier, copy, seed, both, most)

        identifier, seed = self.identifier, self.settings.seed
        return self.keep("linked", grouped.mapInArrow(link, LINKED))

    def leftovers(self) -> DataFrame:
        """Columns MADE of what is in no pair."""
        sentences, duplicates = self.known["sentences"], self.known["duplicates"]
        again = sentences.where("copies > 0")
        again = again.withColumn("_copy", F.explode(F.expr("sequence(1L, copies)")))
        near = sentences.join(duplicates, "node", "left_semi")
        alone = self.known["clusters"].where("new AND cluster IS NULL")
        linked = self.known["linked"].where("reason IS NOT NULL").where(F.col("reason") != MEMBER)
        parts = [
            again.select(F.lit(REPEATED).alias("reason"), F.col("text").alias("source")),
            near.select(F.lit(NEAR_DUPLICATE).alias("reason"), F.col("text").alias("source")),
            alone.select(F.lit(ALONE).alias("reason"), F.col("text").alias("source")),
            linked.select("reason", "source"),
        ]
        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionByName(part)
        empty = [F.lit(None).cast("string").alias(n) for n in ("paraphrase", "foreign", "group")]
        return rows.select("reason", "source", *empty)

    def _pairs_made(self) -> DataFrame:
        foreign = F.lit(None).cast("string").alias("foreign")
        pairs = self.known["linked"].where("reason IS NULL")
        return pairs.select("reason", "source", "paraphrase", foreign, "group")

    def write_pairs(self) -> None:
        super().write_pairs()
        if not self.own.references:
            return
        pairs = self.spark.read.options(**CHECKED).parquet(f"{self.output}/{PAIRS}")
        with progress(self.spark, "writing references", None):
            several = _references(pairs, self.own.references)
            self.check_lock()
            several.coalesce(1).write.options(**PARQUET).parquet(f"{self.output}/references")

    def _used(self, pairs: DataFrame) -> int:
        texts = pairs.select(F.explode(F.array("source", "paraphrase")).alias("text")).distinct()
        if self.before is None:
            return texts.count()
        clusters = self.spark.read.options(**CHECKED).parquet(f"{self.output}/clusters")
        return texts.join(clusters.where("new"), "text", "left_semi").count()

    def keep(
        self,
        name: str,
        table: DataFrame,
        crowded: Observation | None = None,
        folder: str | None = None,
    ) -> DataFrame:
        """Writes a table of _work, or of folder, and reads it again; a finished one is read.

        A dry run keeps it in memory. crowded: what neighbours observes.
        """
        path, schema = f"{folder or f'{self.output}/{WORK}'}/{name}", table.schema
        counts: dict[str, Any]
        if self.dry:
            rows = table.cache()
            counts = {"rows": rows.count()}
        else:
            if not self.steps.done(name):
                written = Observation()
                self.check_lock()
                with progress(self.spark, TITLES.get(name, name), None):
                    watched = table.observe(written, F.count(F.lit(1)).alias("rows"))
                    watched.write.options(**PARQUET).mode("overwrite").parquet(path)
                left = observed(crowded).get("count") if crowded is not None else None
                self.steps.finish(name, {"rows": written.get["rows"], "crowded": left})
            counts = self.steps.done(name) or {}
            rows = self.spark.read.options(**CHECKED).schema(schema).parquet(path)
        self.figures[name] = counts["rows"]
        if crowded is not None and counts.get("crowded"):
            self.figures[f"{name}_crowded"] = counts["crowded"]
        self.known[name] = rows
        return rows

    def dry_run(self) -> None:
        """Says what would become of the first rows, by themselves."""
        from gaixie.jobs.pairs.cluster.dry_run import dry_run

        dry_run(self)


def _strongest(edges: DataFrame) -> DataFrame:
    """Edges without the weakest of components that have too many."""
    counts = edges.groupBy("component").count().where(F.col("count") > COMPONENT_EDGES)
    if counts.isEmpty():
        return edges
    order = Window.partitionBy("component").orderBy(F.desc("score"), "a", "b")
    ranked = edges.withColumn("rank", F.row_number().over(order))
    return ranked.where(F.col("rank") <= COMPONENT_EDGES).drop("rank")


def _references(pairs: DataFrame, least: int) -> DataFrame:
    """Columns source, references, group: of each group the source with the most paraphrases, if so many."""
    turned = F.col("paraphrase").alias("source"), F.col("source").alias("paraphrase"), "group"
    both = pairs.select("source", "paraphrase", "group").union(pairs.select(*turned)).distinct()
    several = both.groupBy("group", "source").agg(
        F.array_sort(F.collect_list("paraphrase")).alias("references")
    )
    several = several.where(F.size("references") >= least)
    best = F.min(F.struct(-F.size("references"), "source", "references")).alias("best")
    chosen = several.groupBy("group").agg(best)
    return chosen.select("best.source", "best.references", "group").orderBy("group")
