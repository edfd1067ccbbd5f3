"""Builds pairs by the method cluster.

  judged -> sentences   distinct sentences; each is a node with its keys
         -> duplicates  sentences left out as near duplicates of another
         -> edges       candidates that the identifier accepted
         -> linked      clusters from the edges, and pairs from the clusters
         -> clusters    every kept sentence and its cluster; the next month reads this

Each is a table of _work, so a killed building continues after the last finished one.
"""

from __future__ import annotations

from functools import reduce
from math import ceil
from typing import Any

from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F

from gaixie.jobs.corpus.accounts import observed
from gaixie.jobs.corpus.parquet import PARQUET
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.pairs.build import PAIRS, BuildPairs, row_count
from gaixie.jobs.pairs.cluster import candidates
from gaixie.jobs.pairs.cluster.buckets import Bands, Hashes, neighbours
from gaixie.jobs.pairs.cluster.components import components
from gaixie.jobs.pairs.cluster.linking import LINKED, MEMBER, Linking
from gaixie.jobs.pairs.cluster.sentences import NO_KEY, distinct_sentences, read_previous
from gaixie.jobs.pairs.cluster.stars import Linker
from gaixie.jobs.pairs.method import ALONE, REPEATED
from gaixie.jobs.pairs.models import refused
from gaixie.jobs.pairs.settings import BuildSettings
from gaixie.udfs.metrics.encoder import load_encoder

NEAR_DUPLICATE = "near_duplicate"
"""Reason: the sentence overlaps too much with another."""

COMPONENT_EDGES = 1_000_000
"""Maximum edges of a component, the strongest ones, since one task links it."""

SENTENCES = 50_000
"""Sentences of one task; each has some tens of candidates."""

FIT = "source string, group string, keys array<bigint>"


class ClusterPairs(BuildPairs):
    """The steps of build_pairs for the method cluster."""

    carried = ("keys",)
    needs_pairs = False  # a sentence without a match may find one next month

    is_dry = True
    """Whether tables are kept in memory, until start."""

    def prepared(self, settings: BuildSettings) -> BuildSettings:
        """Loads what the method needs; adds the identifier to the lineage."""
        own = self.own = settings.cluster
        self.before = read_previous(self.spark, self.storage, own) if own.clusters else None
        self.known: dict[str, DataFrame] = {}
        """Finished tables by name."""
        with refused():
            limits = own.min_meaning, own.min_probability
            self.identifier = candidates.load_identifier(own.identify, *limits)
            if own.encoder:
                load_encoder(own.encoder)
        names = {"model": own.identify, "model_version": self.identifier.describe()}
        return settings.model_copy(update=names)

    def start(self, resume: bool) -> None:
        super().start(resume)
        self.is_dry = False
        self.storage.delete(f"{self.output}/references")
        if not self.steps.is_done("clusters"):
            self.storage.delete(f"{self.output}/clusters")

    def judged(self, limit: int | None, observed: Observation) -> DataFrame:
        rows = super().judged(limit, observed).withColumn("foreign", F.lit(None).cast("string"))
        if not self.own.key_columns:
            return rows
        no_key = F.when(F.size("keys") == 0, F.lit(NO_KEY))
        return rows.withColumn("reason", F.coalesce("reason", no_key))

    def make(self) -> None:
        self.figures = self.steps.once("made", self._make)

    def _make(self) -> dict[str, Any]:
        path, fit = f"{self.work}/judged/fit=true", self.spark.createDataFrame([], FIT)
        if self.storage.exists(path):
            fit = self.read(path, FIT)
        self.write_work("made", "making pairs", self.made_of(fit))
        return self.figures

    def made_of(self, fit: DataFrame) -> DataFrame:
        """Returns columns MADE for all fit sentences; runs the steps from sentences to clusters."""
        own, keys, crowded = self.own, Observation(), Observation()
        sentences = self.keep("sentences", distinct_sentences(fit, self.before, keys), keys)
        count = sentences.count()
        self._spread(count)
        bands, rows = own.near_duplicate_bands, own.near_duplicate_rows
        near = Bands(own.ngram, bands, rows, self.settings.seed)
        met = neighbours(sentences, count, near, bands, own.neighbours, False, crowded)
        texts = candidates.with_texts(met, sentences, ["text"])
        duplicates = candidates.near_duplicates(texts, own.ngram, own.near_duplicate)
        kept = sentences.join(self.keep("duplicates", duplicates, crowded), "node", "left_anti")
        edges = self.keep("edges", *self._edges(kept, count))
        linked = self.spark.createDataFrame([], LINKED)
        if self.figures["edges"]:
            linked = self._linked(kept, edges)
        joined = linked.where(F.col("reason") == MEMBER)
        joined = joined.select("node", F.col("group").alias("joined"))
        cluster = F.coalesce("cluster", "joined").alias("cluster")
        clusters = kept.join(joined, "node", "left").select("id", "text", cluster, "keys", "new")
        self.keep("clusters", clusters, folder=self.output)
        return self._made(linked)

    def _spread(self, count: int) -> None:
        """Gives joins one task for SENTENCES sentences, if the session would use fewer tasks."""
        name, wanted = "spark.sql.shuffle.partitions", ceil(count / SENTENCES)
        if int(self.spark.conf.get(name) or 0) < wanted:
            self.spark.conf.set(name, str(wanted))

    def _edges(self, kept: DataFrame, count: int) -> tuple[DataFrame, Observation]:
        own, seed, crowded = self.own, self.settings.seed + 1, Observation()
        bands, rows = own.banding
        hashes: Hashes = Bands(own.ngram, bands, rows, seed)
        may_be = candidates.Candidates(own.ngram, (own.overlap, own.near_duplicate), None)
        columns = ["text"]
        if own.encoder:
            kept = self.keep("vectors", candidates.with_vectors(kept, own.encoder))
            hashes = candidates.Hyperplanes(bands, rows, seed)
            may_be = candidates.Candidates(own.ngram, (0, own.near_duplicate), own.cosine)
            columns.append("vector")
        keyed = bool(own.key_columns)
        if keyed:
            [[total]] = kept.agg(F.sum(F.size("keys"))).collect()
            count = total or 0
        met = neighbours(kept, count, hashes, bands, own.neighbours, keyed, crowded)
        pairs = candidates.with_texts(met, kept, columns)
        return candidates.identified(pairs, self.identifier, may_be), crowded

    def _linked(self, kept: DataFrame, edges: DataFrame) -> DataFrame:
        """Returns table LINKED."""
        own, settings, ends = self.own, self.settings, edges.select("a", "b")
        compared = kept.where("cluster IS NOT NULL")
        if self.before is not None:
            nodes = edges.select(F.explode(F.array("a", "b")).alias("node"))
            touched = compared.join(nodes, "node", "left_semi")
            members = compared.join(touched.select("cluster").distinct(), "cluster", "left_semi")
            compared = _first_members(members, own.compared)
            members = compared.select("cluster", "node").union(touched.select("cluster", "node"))
            ends = ends.union(members.select(F.xxhash64("cluster"), "node"))
        groups = self.keep("groups", components(ends, self.keep))
        edges = edges.join(groups.withColumnRenamed("node", "a"), "a")
        kept, edges, weak = _bounded(kept, edges, compared)
        self.figures["edges_over_limit"] = weak
        links = edges.groupBy("component").agg(F.collect_list(F.struct("a", "b")).alias("edges"))
        columns = F.collect_list(F.struct("node", "id", "text", "cluster", "new"))
        sentences = kept.join(groups, "node").groupBy("component").agg(columns.alias("sentences"))
        linking = Linking(
            Linker(self.identifier.least, own.min_share, own.compared),
            self.identifier,
            (own.ngram, own.near_duplicate),
            settings.seed,
            settings.both,
            settings.max_pairs,
        )
        return self.keep("linked", sentences.join(links, "component").mapInArrow(linking, LINKED))

    def _made(self, linked: DataFrame) -> DataFrame:
        """Returns columns MADE: the sentences in no pair, and the pairs."""
        sentences, duplicates = self.known["sentences"], self.known["duplicates"]
        again = sentences.where("copies > 0")
        parts = {
            REPEATED: again.select("text", F.explode(F.expr("sequence(1L, copies)"))),
            NEAR_DUPLICATE: sentences.join(duplicates, "node", "left_semi"),
            ALONE: self.known["clusters"].where("new AND cluster IS NULL"),
        }
        rows = [
            part.select(F.lit(reason).alias("reason"), F.col("text").alias("source"))
            for reason, part in parts.items()
        ]
        in_clusters = linked.where(F.coalesce("reason", F.lit("")) != MEMBER)
        group = F.when(F.col("reason").isNull(), F.col("group")).alias("group")
        rows.append(in_clusters.select("reason", "source", "paraphrase", group))
        made = reduce(lambda a, b: a.unionByName(b, True), rows)
        foreign = F.lit(None).cast("string").alias("foreign")
        return made.select("reason", "source", "paraphrase", foreign, "group")

    def write_pairs(self) -> None:
        super().write_pairs()
        if self.own.references:
            with progress(self.spark, "writing references", None):
                several = _references(self.published(PAIRS), self.own.references).coalesce(1)
                self.check_lock()
                several.write.options(**PARQUET).parquet(f"{self.output}/references")

    def used(self, pairs: DataFrame) -> int:
        texts = pairs.select(F.explode(F.array("source", "paraphrase")).alias("text")).distinct()
        if self.before is None:
            return texts.count()
        return texts.join(self.published("clusters").where("new"), "text", "left_semi").count()

    def keep(
        self,
        name: str,
        table: DataFrame,
        crowded: Observation | None = None,
        folder: str | None = None,
    ) -> DataFrame:
        """Writes a table to _work or to folder, and reads it back; a finished table is only read.

        A dry run keeps it in memory. crowded: the observation of neighbours.
        """
        path = f"{folder or self.work}/{name}"

        def write() -> dict[str, Any]:
            self.check_lock()
            written = Observation()
            with progress(self.spark, name, None):
                watched = table.observe(written, row_count("rows"))
                watched.write.options(**PARQUET).mode("overwrite").parquet(path)
            left = observed(crowded).get("count") if crowded is not None else None
            return written.get | {"crowded": left}

        if self.is_dry:
            rows = table.cache()
            self.figures[name] = rows.count()
        else:
            counts = self.steps.once(name, write)
            rows = self.read(path, table.schema)
            self.figures[name] = counts["rows"]
            if counts["crowded"]:
                self.figures[f"{name}_crowded"] = counts["crowded"]
        self.known[name] = rows
        return rows


def _first_members(members: DataFrame, most: int) -> DataFrame:
    """Returns the members of published clusters that newcomers are compared with: the centre, then
    by node. Other members matter only if they have an edge."""
    order = Window.partitionBy("cluster").orderBy(F.col("id") != F.col("cluster"), "node")
    return members.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= most)


def _bounded(
    kept: DataFrame, edges: DataFrame, compared: DataFrame
) -> tuple[DataFrame, DataFrame, int]:
    """Drops the weakest edges of components that have too many. Returns sentences, edges and the
    number dropped.

    It also drops sentences that lose all their edges, unless newcomers are compared with them: they
    would stay alone, and one task holds all sentences of a component in memory.
    """
    counts = edges.groupBy("component").count().where(F.col("count") > COMPONENT_EDGES)
    [[weak]] = counts.agg(F.sum(F.col("count") - COMPONENT_EDGES)).collect()
    if not weak:
        return kept, edges, 0
    order = Window.partitionBy("component").orderBy(F.desc("score"), "a", "b")
    ranked = edges.withColumn("rank", F.row_number().over(order))
    strongest = ranked.where(F.col("rank") <= COMPONENT_EDGES).drop("rank")
    linked = strongest.select(F.explode(F.array("a", "b")).alias("node"))
    linked = linked.union(compared.select("node"))
    return kept.join(linked, "node", "left_semi"), strongest, weak


def _references(pairs: DataFrame, least: int) -> DataFrame:
    """Returns columns source, references, group: the source with the most paraphrases of each
    group, if it has at least so many."""
    turned = pairs.select("paraphrase", "source", "group")
    both = pairs.select("source", "paraphrase", "group").union(turned).distinct()
    references = F.array_sort(F.collect_list("paraphrase")).alias("references")
    several = both.groupBy("group", "source").agg(references)
    several = several.where(F.size("references") >= least)
    best = F.min(F.struct(-F.size("references"), "source", "references")).alias("best")
    chosen = several.groupBy("group").agg(best)
    return chosen.select("best.source", "best.references", "group").orderBy("group")
