"""Finds the distinct sentences of a run and of earlier months, with their numbers and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.parquet import CHECKED
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.cluster.method import ClusterSettings
from gaixie.udfs.storage.manifest import NAME

NO_KEY = "no_key"
"""Reason: all keys of the sentence are empty."""

KEYS = 1_000
"""Maximum keys of a sentence, those with the least hash; each adds bucket entries."""

PUBLISHED = "id string, text string, cluster string, keys array<bigint>, new boolean"
"""Columns of OUTPUT/clusters. id: XXH3-128 of the normalised sentence, 32 hexadecimal digits.
cluster: id of the cluster's centre, null for a sentence that is alone. new: whether this run read
the sentence."""


def key_hashes(keys: Sequence[str], columns: Mapping[str, str]) -> Column:
    """Returns a hash of each key of a row: array<bigint>.

    A key is columns joined by +; each is a name or, for a time, NAME:UNIT. A key is empty if one of
    its columns is null, empty or not a time. columns: the names of the columns in the table.
    """
    hashes = [F.lit(None).cast("bigint")]
    for key in keys:
        parts = []
        for part in key.split("+"):
            name, _, unit = part.partition(":")
            column = F.col(columns[name])
            if unit:
                column = F.date_trunc(unit, column.try_cast("timestamp"))
            parts.append(F.nullif(F.trim(column.cast("string")), F.lit("")))
        is_filled = F.concat(*parts).isNotNull()
        hashes.append(F.when(is_filled, F.xxhash64(F.lit(key), *parts)))
    return F.array_compact(F.array(*hashes))


def distinct_sentences(
    fit: DataFrame, before: DataFrame | None, left_out: Observation | None = None
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
    if left_out is not None:
        beyond = F.greatest(F.size("keys") - KEYS, F.lit(0))
        distinct = distinct.observe(left_out, F.sum(beyond).alias("count"))
    distinct = distinct.withColumn("keys", F.slice("keys", 1, KEYS))
    copies = "count - CAST(first.new AS INT) AS copies"
    return distinct.selectExpr("node", "id", "first.text", "first.new", copies, "cluster", "keys")


def read_previous(spark: SparkSession, storage: Storage, settings: ClusterSettings) -> DataFrame:
    """Reads table PUBLISHED of the output that settings.clusters names.

    Raises JobError if none is published there, or if it has other keys.
    """
    root = str(settings.clusters).rstrip("/")
    if not storage.exists(f"{root}/{NAME}"):
        raise JobError(f"--clusters {root}: no {NAME}, so nothing is published there")
    manifest = storage.read_json(f"{root}/{NAME}")
    method, keys = manifest.get("method"), settings.key_columns
    if method != "cluster" or not storage.exists(f"{root}/clusters"):
        raise JobError(f"--clusters {root}: pairs of the method {method}, expected cluster")
    if (before := tuple(manifest["settings"]["cluster"]["key_columns"])) != keys:
        was, is_now = (", ".join(names) or "none" for names in (before, keys))
        raise JobError(f"--clusters {root}: its keys are {was}, not {is_now}; give the same keys")
    return spark.read.options(**CHECKED).schema(PUBLISHED).parquet(f"{root}/clusters")
