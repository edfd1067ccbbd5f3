"""Makes the rows of a release: the pairs of several runs, without duplicates, split and in
shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import (
    DataType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from gaixie.jobs.corpus.parquet import read_table, write_partitioned
from gaixie.jobs.corpus.written import digests
from gaixie.udfs.command_line import UserError
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import (
    MANIFEST,
    ReleaseSettings,
    RunManifest,
    read_run,
)
from gaixie.udfs.storage.published_files import run_faults
from gaixie.udfs.text import splits
from gaixie.udfs.text.splits import GROUP, SPLITS

COLUMNS = StructType(
    [
        *[StructField(name, StringType()) for name in ("pair_id", "source", "paraphrase")],
        *[StructField(name, FloatType()) for name in (*FEATURES, *OUTPUTS)],
        StructField("origin", StringType()),
        StructField("stage", IntegerType()),
    ]
)
"""Columns of a release; the columns kept from the runs follow."""

LINEAGE = ("method", "model", "version", "parameters", "license")
"""Text columns that say how a pair was made; a release copies them from the runs that have them."""

RUN = "run"
"""Column of a release that names the run of a pair."""


@dataclass(frozen=True)
class SourceRun:
    """A published run whose pairs go into a release."""

    run_id: str
    folder: str
    manifest: RunManifest
    digest: str
    """SHA-256 of the run's manifest."""
    rows: Counter[tuple[str, int]]
    """Pairs by origin and stage, in the chosen stages."""
    bytes_per_row: float
    """Bytes of a pair in the run's files."""
    lineage: tuple[str, ...] = ()
    """The group and the columns of LINEAGE that the run has, as text."""


def find_run(root: str, run_id: str, stages: Sequence[int], keep: Sequence[str]) -> SourceRun:
    """Checks a run. Raises UserError if it is not published or lacks a column to keep."""
    folder = storage.join(root, "runs", run_id)
    try:
        manifest, digest = read_run(folder), storage.sha256(storage.join(folder, MANIFEST))
    except FileNotFoundError:
        if storage.exists(folder):
            raise
        known = ", ".join(storage.children(storage.join(root, "runs"))[:20]) or "none"
        raise UserError(f"{folder}: no run '{run_id}'; there are: {known}") from None
    rows = Counter(
        {
            (origin, stage): pairs
            for origin, counts in manifest.stages.items()
            for stage, pairs in counts.items()
            if pairs and stage in stages
        }
    )
    if not rows:
        return SourceRun(run_id, folder, manifest, digest, rows, 0.0)
    if faults := run_faults(folder, manifest):
        raise UserError(_damaged(folder, faults))
    scored = manifest.files["scored"]
    with storage.open_file(storage.join(folder, scored[0].path)) as opened:
        schema = pq.read_schema(opened)
    size = sum(file.bytes for file in scored) / max(manifest.total.scored, 1)
    for field in COLUMNS:
        if field.name not in schema.names and field.name not in ("origin", "stage"):
            raise UserError(
                f"{folder}: no column '{field.name}': run '{run_id}' was scored under "
                f"{manifest.signature}; score its pairs again with this version"
            )
    lacking = [name for name in keep if name not in schema.names or name in COLUMNS.names]
    if lacking:
        extra = [name for name in schema.names if name not in COLUMNS.names]
        raise UserError(
            f"--keep-columns {lacking[0]}: run '{run_id}' has no such further column; "
            f"it has: {', '.join(extra) or 'none'}"
        )
    texts = {field.name for field in schema if pa.types.is_string(field.type)}
    lineage = tuple(name for name in (GROUP, *LINEAGE) if name in texts and name not in keep)
    return SourceRun(run_id, folder, manifest, digest, rows, size, lineage)


def check_digests(spark: SparkSession, runs: Sequence[SourceRun]) -> None:
    """Raises UserError if a run's file differs from its manifest; the executors read the files."""
    for run in runs:
        uris = [
            storage.join(run.folder, file.path) for file in run.manifest.files.get("scored", [])
        ]
        sums = digests(spark, uris)
        if faults := run_faults(run.folder, run.manifest, sums.get):
            raise UserError(_damaged(run.folder, faults))


def _damaged(folder: str, faults: list[str]) -> str:
    more = f" (and {len(faults) - 1} more files)" if len(faults) > 1 else ""
    return f"{storage.join(folder, faults[0])}{more}; nothing is released from a damaged run"


def check_signatures(runs: Sequence[SourceRun]) -> None:
    """Raises UserError if two runs were scored under different signatures."""
    first = runs[0]
    for run in runs[1:]:
        if run.manifest.signature != first.manifest.signature:
            raise UserError(
                f"runs '{first.run_id}' and '{run.run_id}' have different metric signatures, so "
                f"their scores are not comparable: {first.manifest.signature} and "
                f"{run.manifest.signature}"
            )


def read_runs(
    spark: SparkSession, runs: Sequence[SourceRun], stages: Sequence[int], keep: Sequence[str]
) -> DataFrame:
    """Reads the chosen stages: COLUMNS, keep, lineage_of the runs, and the run's number in run."""
    parts: list[DataFrame] = []
    types: dict[str, tuple[DataType, str]] = {}
    names = lineage_of(runs)
    for number, run in enumerate(runs):
        if not run.rows:
            continue
        folder = storage.join(run.folder, "scored")
        extra = read_table(spark, folder).schema if keep else StructType()
        for name in keep:
            kind, first = types.setdefault(name, (extra[name].dataType, run.run_id))
            if kind != extra[name].dataType:
                both = (
                    f"{kind.simpleString()} in run '{first}', {extra[name].dataType.simpleString()}"
                )
                raise UserError(f"--keep-columns {name}: {both} in '{run.run_id}'")
        own = [StructField(name, StringType()) for name in names if name in run.lineage]
        schema = StructType([*COLUMNS, *(extra[name] for name in keep), *own])
        rows = read_table(spark, folder, schema=schema).where(F.col("stage").isin(*stages))
        lacking = {name: F.lit(None).cast("string") for name in names if name not in run.lineage}
        parts.append(rows.withColumns(lacking | {RUN: F.lit(number)}))
    return reduce(DataFrame.unionByName, parts)


def lineage_of(runs: Sequence[SourceRun]) -> list[str]:
    """Returns the columns of LINEAGE that any run has, and the group, which decides the split, if
    all runs have it."""
    shared = [GROUP] if all(GROUP in run.lineage for run in runs if run.rows) else []
    return shared + [name for name in LINEAGE if any(name in run.lineage for run in runs)]


def named_runs(rows: DataFrame, runs: Sequence[SourceRun]) -> DataFrame:
    """Replaces run numbers by run names in rows of read_runs."""
    names = F.array(*[F.lit(run.run_id) for run in runs])
    return rows.withColumn(RUN, F.get(names, F.col(RUN)))


def find_duplicates(rows: DataFrame) -> DataFrame:
    """Finds the rows whose pair an earlier run also has: pair_id, run, origin and stage."""
    rank = F.expr("row_number() OVER (PARTITION BY pair_id ORDER BY run)")
    ranked = rows.select("pair_id", "run", "origin", "stage").withColumn("rank", rank)
    return ranked.where("rank > 1").drop("rank")


def drop_duplicates(rows: DataFrame, duplicates: DataFrame, count: int) -> DataFrame:
    """Removes the duplicates from rows. count: their number."""
    keys = duplicates.select("pair_id", "run")
    return rows.join(
        F.broadcast(keys) if count <= 1_000_000 else keys, ["pair_id", "run"], "left_anti"
    )


# The split


def source_hashes(seed: int) -> Callable[..., Column]:
    """Wraps gaixie.udfs.text.splits.source_hashes as an Arrow UDF: string -> 64 bits, signed."""

    @arrow_udf(LongType())  # type: ignore[call-overload]  # pyspark's stubs miss a default
    def hashes(source: pa.Array) -> pa.Array:
        return pa.array(splits.source_hashes(source, seed).view(np.int64))

    return hashes


def split_key(columns: Sequence[str]) -> Column:
    """Returns the key of a row's split: its group if the release has that column, else its
    source."""
    source = F.col("source")
    return F.coalesce(F.col(GROUP).cast("string"), source) if GROUP in columns else source


def split_column(shares: Mapping[str, float], seed: int, key: Column) -> Column:
    """Computes gaixie.udfs.text.splits.splits_of as a column of the key."""
    ends = splits.bounds([*shares.values()])
    if len(ends) == 1:
        return F.lit(SPLITS[ends[0][0]])
    position = F.shiftrightunsigned(source_hashes(seed)(key), 11) / F.lit(float(2**53))
    split = F.lit(SPLITS[ends[-1][0]])
    for number, end in reversed(ends[:-1]):
        split = F.when(position < end, SPLITS[number]).otherwise(split)
    return split


# The shards


def shards_of(
    rows: Mapping[tuple[str, int], int], settings: ReleaseSettings, bytes_per_row: float
) -> dict[tuple[str, int], int]:
    """Returns the number of files of each (split, stage). rows: pairs by origin and stage."""
    by_stage: Counter[int] = Counter()
    for (_, stage), count in rows.items():
        by_stage[stage] += count
    shards = {}
    for split, share in settings.split.items():
        for stage, count in sorted(by_stage.items()):
            if share > 0:
                size_mb = count * share * bytes_per_row / 1e6
                shards[split, stage] = settings.shards or max(
                    round(size_mb / settings.shards_mb), 1
                )
    return shards


def write_shards(
    rows: DataFrame, folder: str, shards: Mapping[tuple[str, int], int], seed: int
) -> None:
    """Writes folder/split=…/subset=stage-…/*.parquet, with the number of files that shards gives.

    Hashes of pair_id and seed decide a row's file and place in it. So the files of a stage are
    equal in size and mix, and do not depend on how the rows were spread over machines. The stage is
    a column of the files, so the folders use another name for it.
    """
    write_partitioned(
        rows.withColumn("subset", F.concat(F.lit("stage-"), F.col("stage").cast("string"))),
        folder,
        ("split", "subset"),
        {(split, f"stage-{stage}"): files for (split, stage), files in shards.items()},
        spread_by=F.xxhash64(F.lit("file"), F.lit(seed), "pair_id"),
        order=(F.xxhash64(F.lit("order"), F.lit(seed), "pair_id"), "pair_id"),
    )


def read_release(spark: SparkSession, folder: str, schema: StructType = COLUMNS) -> DataFrame:
    """Reads a build folder's data, with the split and subset of its folders."""
    fields = [StructField(name, StringType()) for name in ("split", "subset")]
    path = storage.join(folder, "data")
    return read_table(spark, path, schema=StructType([*schema, *fields]))
