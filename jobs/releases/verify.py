"""Checks that a release is still what its manifest says, and compares two releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.releases.rows import COLUMNS, read_release, recount, source_hashes, split_key
from gaixie.jobs.releases.store import build_of
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import DataFile, ReleaseFile, ReleaseManifest
from gaixie.udfs.storage.published_files import THREADS, fault_of, stored_files
from gaixie.udfs.text.splits import GROUP


def describe_files(folder: str, files: Iterable[storage.File]) -> list[ReleaseFile]:
    """Describes files below a build folder for a manifest; Parquet files are DataFiles."""

    def describe(file: storage.File) -> ReleaseFile:
        path, digest = file.uri.removeprefix(f"{folder}/"), storage.sha256(file.uri)
        if not path.endswith(".parquet"):
            return ReleaseFile(path=path, bytes=file.size, sha256=digest)
        return DataFile(path=path, bytes=file.size, sha256=digest, rows=_rows(file.uri))

    with ThreadPoolExecutor(THREADS) as pool:
        return [*pool.map(describe, files)]


def _rows(uri: str) -> int:
    with storage.open_file(uri) as file:
        return pq.ParquetFile(file).metadata.num_rows


def faults_of(
    root: str, manifest: ReleaseManifest, start_spark: Callable[[], SparkSession]
) -> list[str]:
    """Lists what is wrong with a release; nothing if it is what its manifest says.

    start_spark: gives the session, once the files themselves are in order.
    """
    folder = build_of(root, manifest)
    faults = [*_file_faults(folder, manifest.files)]
    if any(fault.startswith("data/") for fault in faults):
        return [*faults, "data/: counts and split were not looked at, for the faults of its files"]
    return faults + _row_faults(start_spark(), folder, manifest)


def _file_faults(folder: str, listed: list[ReleaseFile]) -> Iterator[str]:
    stored = stored_files(folder)

    def look(entry: ReleaseFile) -> str | None:
        path, file = entry.path, stored.get(entry.path)
        if fault := fault_of(entry, file, storage.sha256):
            return fault
        if file and isinstance(entry, DataFile):
            try:
                rows = _rows(file.uri)
            except (pa.ArrowException, OSError) as error:
                return f"{path}: not readable as Parquet: {str(error).splitlines()[0]}"
            if rows != entry.rows:
                return f"{path}: {rows} rows, the manifest has {entry.rows}"
        return None

    with ThreadPoolExecutor(THREADS) as pool:
        yield from filter(None, pool.map(look, listed))
    for path in sorted(stored.keys() - {entry.path for entry in listed}):
        yield f"{path}: not in the manifest"


def _row_faults(spark: SparkSession, folder: str, manifest: ReleaseManifest) -> list[str]:
    schema = COLUMNS
    if GROUP in manifest.columns:
        schema = StructType([*COLUMNS]).add(GROUP, manifest.columns[GROUP])
    rows = read_release(spark, folder, schema)
    try:
        counts = recount(rows).rows
    except RuntimeError as error:
        return [str(error)]
    faults = []
    listed = flat_counts(manifest)
    for key in sorted({*counts, *listed}):
        if counts[key] != listed[key]:
            split, stage, origin = key
            faults.append(
                f"data/split={split}/subset=stage-{stage}: {counts[key]} rows of {origin}, "
                f"the manifest has {listed[key]}"
            )
    outputs = [F.col(name) for name in OUTPUTS if name in manifest.columns]
    fit = reduce(Column.__and__, [output.isNotNull() & output.between(0, 1) for output in outputs])
    if unfit := rows.where(~fit).count():
        faults.append(f"data/: {unfit} pairs have a judgement or score that is not within 0 and 1")
    if twice := rows.groupBy("pair_id").count().where("count > 1").count():
        faults.append(f"data/: {twice} pairs are there more than once")
    if len(manifest.counts) > 1:
        hashes = source_hashes(manifest.settings.seed)(split_key(schema.names))
        sides = rows.groupBy(hashes.alias("key")).agg(F.countDistinct("split").alias("splits"))
        if shared := sides.where("splits > 1").count():
            what = "groups" if GROUP in schema.names else "source sentences"
            faults.append(f"data/: {shared} {what} are in more than one split")
    return faults


def flat_counts(manifest: ReleaseManifest) -> Counter[tuple[str, int, str]]:
    """Counts pairs by split, stage and origin."""
    counts: Counter[tuple[str, int, str]] = Counter()
    for split, stages in manifest.counts.items():
        for stage, origins in stages.items():
            for origin, pairs in origins.items():
                counts[split, stage, origin] = pairs
    return counts


# Two releases


def difference(spark: SparkSession, root: str, a: ReleaseManifest, b: ReleaseManifest) -> str:
    """Returns how release b differs from release a, as text."""
    old, new = a.version, b.version
    lines = [f"release {old} -> {new}"]
    changes = [*_setting_changes(a, b)]
    lines += changes or ["signature, licence, columns, settings and runs are the same"]
    lines += ["", f"{'pairs by stage':<18}{old:>14}{new:>14}{'difference':>12}"]
    counts = [_by_origin_and_stage(manifest) for manifest in (a, b)]
    for origin in ORIGINS:
        for stage in range(4):
            before, after = (count[origin, stage] for count in counts)
            if before or after:
                name = f"{origin} {stage}"
                lines.append(f"{name:<18}{before:>14,}{after:>14,}{after - before:>+12,}")
    before, after = (count.total() for count in counts)
    lines += [f"{'total':<18}{before:>14,}{after:>14,}{after - before:>+12,}", ""]

    sides = []
    for manifest, name in ((a, "old"), (b, "new")):
        rows = read_release(spark, build_of(root, manifest))
        columns = [F.col(c).alias(f"{c}_{name}") for c in ("spscore", "stage", "split")]
        sides.append(rows.select("pair_id", *columns))
    joined = sides[0].join(sides[1], "pair_id", "full_outer")
    score = ~F.col("spscore_old").eqNullSafe(F.col("spscore_new"))
    moved = F.col("split_old") != F.col("split_new")
    keys = ("stage_old", "stage_new", score.alias("score"), moved.alias("moved"))
    kinds: Counter[str] = Counter()
    stages: Counter[tuple[int, int]] = Counter()
    for x, y, rescored, resplit, count in joined.groupBy(*keys).count().collect():
        if x is None or y is None:
            kinds["added" if x is None else "removed"] += count
            continue
        kinds["in both"] += count
        kinds["with another score"] += count * bool(rescored)
        kinds["in another split"] += count * bool(resplit)
        if x != y:
            kinds["in another stage"] += count
            stages[x, y] += count
    for name in ("added", "removed", "in both", "with another score", "in another stage"):
        lines.append(f"pairs {name}: {kinds[name]:,}")
    lines += [f"  stage {x} -> {y}: {count:,}" for (x, y), count in sorted(stages.items())]
    lines.append(f"pairs in another split: {kinds['in another split']:,}")
    return "\n".join(lines)


def _setting_changes(a: ReleaseManifest, b: ReleaseManifest) -> Iterator[str]:
    for name in ("signature", "license", "title"):
        before, after = getattr(a, name), getattr(b, name)
        if before != after:
            yield f"{name}: {before} -> {after}"
    if a.signature != b.signature:
        yield "  scores compare only under one signature"
    new = b.settings.model_dump()
    for name, before in sorted(a.settings.model_dump().items()):
        if before != new[name]:
            yield f"{name}: {before} -> {new[name]}"
    if a.columns != b.columns:
        sides = ((a.columns, b.columns), (b.columns, a.columns))
        names = [[n for n in one if one[n] != other.get(n)] for one, other in sides]
        gone, come = (", ".join(some) or "none" for some in names)
        yield f"columns: {gone} gone, {come} new"
    runs = [", ".join(run.run_id for run in manifest.runs) for manifest in (a, b)]
    if runs[0] != runs[1]:
        yield f"runs: {runs[0]} -> {runs[1]}"


def _by_origin_and_stage(manifest: ReleaseManifest) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for (_, stage, origin), pairs in flat_counts(manifest).items():
        counts[origin, stage] += pairs
    return counts
