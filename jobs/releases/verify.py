"""Counts and checks the files and rows of a release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import product
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.written import digests
from gaixie.jobs.releases.rows import (
    COLUMNS,
    read_release,
    source_hashes,
    split_key,
)
from gaixie.jobs.releases.store import build_of
from gaixie.udfs.spark import score_bin_column
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS, STAGES
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import DataFile, ReleaseFile, ReleaseManifest
from gaixie.udfs.storage.published_files import THREADS, file_faults
from gaixie.udfs.text.splits import GROUP, SPLITS


def describe_files(
    spark: SparkSession, folder: str, files: Sequence[storage.File]
) -> list[ReleaseFile]:
    """Describes the files below a build folder for a manifest; Parquet files become DataFiles.

    The executors read the files; the driver reads the Parquet footers.
    """
    sums = digests(spark, [file.uri for file in files])

    def describe(file: storage.File) -> ReleaseFile:
        path, digest = file.uri.removeprefix(f"{folder}/"), sums[file.uri]
        if not path.endswith(".parquet"):
            return ReleaseFile(path=path, bytes=file.size, sha256=digest)
        with storage.open_file(file.uri) as opened:
            rows = pq.read_metadata(opened).num_rows
        return DataFile(path=path, bytes=file.size, sha256=digest, rows=rows)

    with ThreadPoolExecutor(THREADS) as pool:
        return [*pool.map(describe, files)]


def count_pairs(rows: DataFrame) -> pd.DataFrame:
    """Counts rows of read_release, reading them once: columns split, stage, origin, bin (of the
    score), pairs, and for each of OUTPUTS the sum of its values.

    Raises RuntimeError if a row is in the folder of another stage.
    """
    keys = "split", "subset", "stage", "origin", score_bin_column().alias("bin")
    sums = [F.sum(F.col(output).cast("double")).alias(output) for output in OUTPUTS]
    table = rows.groupBy(*keys).agg(F.count(F.lit(1)).alias("pairs"), *sums).toPandas()
    wrong = table[table["subset"] != "stage-" + table["stage"].astype(str)]
    for row in wrong.itertuples():
        raise RuntimeError(f"data/split={row.split}/subset={row.subset}: rows of stage {row.stage}")
    return table.drop(columns="subset")


def pairs_by(counts: pd.DataFrame, *keys: str) -> Counter[Any]:
    """Sums the pairs of a table of counts by one or more keys."""
    by: Any = [*keys] if len(keys) > 1 else keys[0]
    return Counter(counts.groupby(by)["pairs"].sum().to_dict())


def faults_of(spark: SparkSession, root: str, manifest: ReleaseManifest) -> list[str]:
    """Lists the faults of a release; empty if it matches its manifest. The executors read every
    byte."""
    folder = build_of(root, manifest)
    there = {file.uri for file in storage.list_files(folder)}
    uris = [storage.join(folder, file.path) for file in manifest.files]
    sums = digests(spark, [uri for uri in uris if uri in there])
    faults = file_faults(folder, manifest.files, sums.get)
    if any(fault.startswith("data/") for fault in faults):
        return [*faults, "data/: counts and split were not checked, because files have faults"]
    return faults + _row_faults(spark, folder, manifest)


def _row_faults(spark: SparkSession, folder: str, manifest: ReleaseManifest) -> list[str]:
    schema = COLUMNS
    if GROUP in manifest.columns:
        schema = StructType([*COLUMNS]).add(GROUP, manifest.columns[GROUP])
    rows = read_release(spark, folder, schema)
    try:
        table = count_pairs(rows)
    except RuntimeError as error:
        return [str(error)]
    faults = []
    counts = pairs_by(table, "split", "stage", "origin")
    for place in sorted({*counts, *product(SPLITS, STAGES, ORIGINS)}):
        found, listed = counts[place], manifest.pairs_of(*place)
        if found != listed:
            faults.append(
                f"data/split={place[0]}/subset=stage-{place[1]}: {found} rows of {place[2]}, "
                f"the manifest has {listed}"
            )
    outputs = [F.col(name) for name in OUTPUTS if name in manifest.columns]
    fit = reduce(Column.__and__, [output.isNotNull() & output.between(0, 1) for output in outputs])
    if unfit := rows.where(~fit).count():
        faults.append(f"data/: {unfit} pairs have a judgement or score outside 0 to 1")
    if twice := rows.groupBy("pair_id").count().where("count > 1").count():
        faults.append(f"data/: {twice} pairs occur more than once")
    if len(manifest.counts) > 1:
        hashes = source_hashes(manifest.settings.seed)(split_key(schema.names))
        sides = rows.groupBy(hashes.alias("key")).agg(F.countDistinct("split").alias("splits"))
        if shared := sides.where("splits > 1").count():
            what = "groups" if GROUP in schema.names else "source sentences"
            faults.append(f"data/: {shared} {what} are in more than one split")
    return faults
