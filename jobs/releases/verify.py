"""Checks that a release still matches its manifest, and compares two releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import product

import pyarrow.parquet as pq
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.accounts import digests
from gaixie.jobs.releases.counts import count_scores, pairs_by
from gaixie.jobs.releases.rows import (
    COLUMNS,
    read_release,
    source_hashes,
    split_key,
)
from gaixie.jobs.releases.store import build_of
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


def faults_of(
    root: str, manifest: ReleaseManifest, start_spark: Callable[[], SparkSession]
) -> list[str]:
    """Lists the faults of a release; empty if it matches its manifest.

    start_spark: returns the session, whose executors read every byte.
    """
    folder, spark = build_of(root, manifest), start_spark()
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
        table = count_scores(rows)
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


# Two releases


def difference(spark: SparkSession, root: str, a: ReleaseManifest, b: ReleaseManifest) -> str:
    """Returns text that says how release b differs from release a."""
    lines = [f"release {a.version} -> {b.version}"]
    lines += [*_setting_changes(a, b)] or [
        "signature, licence, columns, settings and runs are the same"
    ]
    lines += ["", f"{'pairs by stage':<18}{a.version:>14}{b.version:>14}{'difference':>12}"]
    places = [(f"{origin} {stage}", origin, stage) for origin, stage in product(ORIGINS, STAGES)]
    for name, origin, stage in [*places, ("total", None, None)]:
        before, after = (manifest.pairs_of(None, stage, origin) for manifest in (a, b))
        if before or after:
            lines.append(f"{name:<18}{before:>14,}{after:>14,}{after - before:>+12,}")
    return "\n".join([*lines, "", *_pair_changes(spark, root, a, b)])


def _pair_changes(
    spark: SparkSession, root: str, a: ReleaseManifest, b: ReleaseManifest
) -> Iterator[str]:
    sides = []
    for manifest, name in ((a, "old"), (b, "new")):
        columns = [F.col(c).alias(f"{c}_{name}") for c in ("spscore", "stage", "split")]
        sides.append(read_release(spark, build_of(root, manifest)).select("pair_id", *columns))
    joined = sides[0].join(sides[1], "pair_id", "full_outer")
    score = ~F.col("spscore_old").eqNullSafe(F.col("spscore_new"))
    moved = F.coalesce(F.col("split_old") != F.col("split_new"), F.lit(False))
    keys = ("stage_old", "stage_new", score.alias("score"), moved.alias("moved"))
    table = joined.groupBy(*keys).agg(F.count(F.lit(1)).alias("pairs")).toPandas()
    both = table.dropna(subset=["stage_old", "stage_new"])
    restaged = both[both["stage_old"] != both["stage_new"]]
    for name, part in (
        ("added", table[table["stage_old"].isna()]),
        ("removed", table[table["stage_new"].isna()]),
        ("in both", both),
        ("with another score", both[both["score"]]),
        ("in another stage", restaged),
    ):
        yield f"pairs {name}: {part['pairs'].sum():,}"
    for (old, new), count in sorted(pairs_by(restaged, "stage_old", "stage_new").items()):
        yield f"  stage {old:.0f} -> {new:.0f}: {count:,}"
    yield f"pairs in another split: {both[both['moved']]['pairs'].sum():,}"


def _setting_changes(a: ReleaseManifest, b: ReleaseManifest) -> Iterator[str]:
    for name in ("signature", "license", "title"):
        before, after = getattr(a, name), getattr(b, name)
        if before != after:
            yield f"{name}: {before} -> {after}"
    if a.signature != b.signature:
        yield "  scores are comparable only under the same signature"
    new = b.settings.model_dump()
    for name, before in sorted(a.settings.model_dump().items()):
        if before != new[name]:
            yield f"{name}: {before} -> {new[name]}"
    if a.columns != b.columns:
        sides = ((a.columns, b.columns), (b.columns, a.columns))
        names = [[n for n in one if one[n] != other.get(n)] for one, other in sides]
        gone, come = (", ".join(some) or "none" for some in names)
        yield f"columns: {gone} removed, {come} added"
    runs = [", ".join(run.run_id for run in manifest.runs) for manifest in (a, b)]
    if runs[0] != runs[1]:
        yield f"runs: {runs[0]} -> {runs[1]}"
