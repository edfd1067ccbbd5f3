"""Makes the rows of a release: the pairs of several runs, without duplicates, split and in
shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import FloatType, IntegerType, StringType, StructField, StructType

from gaixie.jobs.corpus.parquet import digests, read_table, write_partitioned
from gaixie.jobs.corpus.reading import column
from gaixie.jobs.releases.request import ReleaseRequest
from gaixie.udfs.command_line import UserError
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, RunManifest, read_run
from gaixie.udfs.storage.published_files import run_faults
from gaixie.udfs.text.splits import GROUP, SPLITS, splits_of

COLUMNS = StructType(
    [
        *[StructField(name, StringType()) for name in ("pair_id", "source", "paraphrase")],
        *[StructField(name, FloatType()) for name in (*FEATURES, *OUTPUTS)],
        StructField("origin", StringType()),
        StructField("stage", IntegerType()),
    ]
)
"""Columns of a release; the columns kept from the runs follow."""

TEXTS = (GROUP, "method", "model", "version", "parameters", "license")
"""Text columns of a pair's group, and of how it was made; a release copies them from the runs that
have them."""

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
    schema: StructType
    """COLUMNS, the columns to keep, and those of TEXTS that the run has as text."""

    @property
    def bytes(self) -> float:
        """Returns the bytes of rows in the run's files."""
        size = sum(file.bytes for file in self.manifest.files.get("scored", ()))
        return size / max(self.manifest.total.scored, 1) * self.rows.total()


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
    by_stage = [(o, stage, n) for o, of in manifest.stages.items() for stage, n in of.items()]
    rows = Counter({(o, stage): n for o, stage, n in by_stage if n and stage in stages})
    if not rows:
        return SourceRun(run_id, folder, manifest, digest, rows, COLUMNS)
    _refuse(folder, run_faults(folder, manifest))
    with storage.open_file(storage.join(folder, manifest.files["scored"][0].path)) as opened:
        types = {field.name: field.type for field in pq.read_schema(opened)}
    for name in (*FEATURES, *OUTPUTS):
        if name not in types:
            fault = f"scored under {manifest.signature}; score its pairs again"
            raise UserError(f"{folder}: no column '{name}': {fault}")
    extra = types.keys() - {*COLUMNS.names, RUN, "split", "subset"}
    if lacking := [name for name in keep if name not in extra]:
        fault = f"run '{run_id}' has no such column; it has: {', '.join(sorted(extra)) or 'none'}"
        raise UserError(f"--keep-columns {lacking[0]}: {fault}")
    texts = [n for n in TEXTS if n not in keep and types.get(n) == pa.string()]
    kept = [StructField(name, from_arrow_type(types[name])) for name in (*keep, *texts)]
    return SourceRun(run_id, folder, manifest, digest, rows, StructType([*COLUMNS, *kept]))


def check_digests(spark: SparkSession, runs: Sequence[SourceRun]) -> None:
    """Raises UserError if a run's file differs from its manifest; the executors read the files."""
    for run in runs:
        scored = run.manifest.files.get("scored", [])
        sums = digests(spark, [storage.join(run.folder, file.path) for file in scored])
        _refuse(run.folder, run_faults(run.folder, run.manifest, sums.get))


def _refuse(folder: str, faults: list[str]) -> None:
    if faults:
        fault = storage.join(folder, faults[0])
        raise UserError(f"{fault}; nothing is released from a damaged run")


def check_alike(runs: Sequence[SourceRun], keep: Sequence[str]) -> None:
    """Raises UserError if two runs have different signatures, or types of a column to keep."""
    first, some = runs[0], [run for run in runs if run.rows]
    for run in runs[1:]:
        if run.manifest.signature != first.manifest.signature:
            both = f"{first.manifest.signature} and {run.manifest.signature}"
            names = f"runs '{first.run_id}' and '{run.run_id}'"
            raise UserError(f"{names} have scores that do not compare, of two signatures: {both}")
    for name in keep:
        kinds = {run.schema[name].dataType.simpleString(): run.run_id for run in some}
        if len(kinds) > 1:
            both = " and ".join(f"{kind} in run '{run}'" for kind, run in kinds.items())
            raise UserError(f"--keep-columns {name}: {both}")


def columns_of(runs: Sequence[SourceRun], keep: Sequence[str]) -> list[str]:
    """Returns the columns of a release: COLUMNS, those to keep, those of TEXTS that any run has,
    and RUN."""
    held = {name for run in runs if run.rows for name in run.schema.names}
    texts = [name for name in TEXTS if name in held and name not in keep]
    return [*COLUMNS.names, *keep, *texts, RUN]


def read_runs(spark: SparkSession, runs: Sequence[SourceRun], request: ReleaseRequest) -> DataFrame:
    """Reads the chosen stages: columns_of the runs, with the run's number in RUN."""
    parts = [
        read_table(spark, storage.join(run.folder, "scored"), schema=run.schema)
        .where(F.col("stage").isin(*request.stages))
        .withColumn(RUN, F.lit(number))
        for number, run in enumerate(runs)
        if run.rows
    ]
    rows = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts)
    return rows.select(*map(column, columns_of(runs, request.keep_columns)))


def named_runs(rows: DataFrame, runs: Sequence[SourceRun]) -> DataFrame:
    """Replaces run numbers by run names in rows of read_runs."""
    return rows.withColumn(RUN, F.get(F.array(*[F.lit(run.run_id) for run in runs]), F.col(RUN)))


def find_duplicates(rows: DataFrame) -> DataFrame:
    """Finds the rows whose pair an earlier run also has: pair_id, run, origin and stage."""
    rank = F.expr("row_number() OVER (PARTITION BY pair_id ORDER BY run)")
    ranked = rows.select("pair_id", "run", "origin", "stage").withColumn("rank", rank)
    return ranked.where("rank > 1").drop("rank")


def drop_duplicates(rows: DataFrame, duplicates: DataFrame, count: int) -> DataFrame:
    """Removes the duplicates from rows. count: their number."""
    keys = duplicates.select("pair_id", "run")
    keys = F.broadcast(keys) if count <= 1_000_000 else keys
    return rows.join(keys, ["pair_id", "run"], "left_anti")


def split_column(shares: Sequence[float], seed: int, columns: Sequence[str]) -> Column:
    """Returns the split of a row, by its group if it has one, else by its source."""
    if len(shares) == 1:
        return F.lit(SPLITS[0])

    @arrow_udf(StringType())  # type: ignore[call-overload]  # pyspark's stubs miss a default
    def split(key: pa.Array) -> pa.Array:
        return pa.array(SPLITS).take(pa.array(splits_of(key, shares, seed)))

    source = F.col("source")
    group = F.expr(f"nullif(cast({GROUP} AS string), '')") if GROUP in columns else source
    return split(F.coalesce(group, source))


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
