"""Makes the rows of a release: pairs of several runs, each once, split and in shards."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
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

from gaixie.jobs.corpus.accounts import digests
from gaixie.jobs.corpus.parquet import CHECKED, write_partitioned
from gaixie.jobs.corpus.reporting import BARS
from gaixie.jobs.errors import JobError
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spark import score_bin_column
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import (
    NAME,
    ReleaseLineage,
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
"""Columns of a release; kept columns of the runs follow."""

LINEAGE = ("method", "model", "version", "parameters", "license")
"""Columns of text that a release takes over from the runs that have them: how a pair came about."""

RUN = "run"
"""Column of a release that names the run that a pair was taken from."""

LENGTH_BINS = 10
"""Characters that one bin of the lengths spans."""


@dataclass(frozen=True)
class SourceRun:
    """A published run that a release takes pairs from."""

    run_id: str
    folder: str
    manifest: RunManifest
    digest: str
    """SHA-256 of its manifest."""
    rows: Counter[tuple[str, int]]
    """Pairs by origin and stage, in the chosen stages."""
    bytes_per_row: float
    """Of the columns that are released, as compressed in the run's files."""
    lineage: tuple[str, ...] = ()
    """The group and those of LINEAGE that it has, as text."""


def find_run(root: str, run_id: str, stages: Sequence[int], keep: Sequence[str]) -> SourceRun:
    """Looks at a run. Raises JobError if it is not published or lacks a column to keep."""
    folder = storage.join(root, "runs", run_id)
    try:
        manifest, digest = read_run(folder), storage.sha256(storage.join(folder, NAME))
    except FileNotFoundError:
        if storage.exists(folder):
            raise
        known = ", ".join(storage.children(storage.join(root, "runs"))[:20]) or "none"
        raise JobError(f"{folder}: no run '{run_id}'; there are: {known}") from None
    rows: Counter[tuple[str, int]] = Counter()
    for origin, counts in manifest.stages.items():
        for stage in stages:
            if pairs := counts.get(stage, 0):
                rows[origin, stage] = pairs
    if not rows:
        return SourceRun(run_id, folder, manifest, digest, rows, 0.0)
    if faults := run_faults(folder, manifest):
        raise JobError(_damaged(folder, faults))
    size, schema = _look_at_files(storage.join(folder, "scored"), rows, keep)
    for field in COLUMNS:
        if field.name not in schema.names and field.name not in ("origin", "stage"):
            raise JobError(
                f"{folder}: no column '{field.name}': run '{run_id}' was scored under "
                f"{manifest.signature}; score its pairs again with this version"
            )
    lacking = [name for name in keep if name not in schema.names or name in COLUMNS.names]
    if lacking:
        extra = [name for name in schema.names if name not in COLUMNS.names]
        raise JobError(
            f"--keep-columns {lacking[0]}: run '{run_id}' carries no such further column; "
            f"it has: {', '.join(extra) or 'none'}"
        )
    texts = {field.name for field in schema if pa.types.is_string(field.type)}
    lineage = tuple(name for name in (GROUP, *LINEAGE) if name in texts and name not in keep)
    return SourceRun(run_id, folder, manifest, digest, rows, size, lineage)


def check_digests(spark: SparkSession, runs: Sequence[SourceRun]) -> None:
    """Raises JobError if a file of a run is not what its manifest says; the executors read it."""
    for run in runs:
        uris = [
            storage.join(run.folder, file.path) for file in run.manifest.files.get("scored", [])
        ]
        sums = digests(spark, uris)
        if faults := run_faults(run.folder, run.manifest, sums.get):
            raise JobError(_damaged(run.folder, faults))


def _damaged(folder: str, faults: list[str]) -> str:
    more = f" (and {len(faults) - 1} more files)" if len(faults) > 1 else ""
    return f"{storage.join(folder, faults[0])}{more}; nothing is released from a damaged run"


def _look_at_files(
    folder: str, rows: Counter[tuple[str, int]], keep: Sequence[str]
) -> tuple[float, pa.Schema]:
    """Returns (bytes per row of a release's columns, schema of the files), from one footer."""
    origin, stage = rows.most_common(1)[0][0]
    files = storage.list_files(storage.join(folder, f"origin={origin}", f"stage={stage}"))
    files = [file for file in files if re.search(r"/[^/._][^/]*\.parquet$", file.uri)]
    if not files:
        raise JobError(f"{folder}/origin={origin}/stage={stage}: no files, the manifest has rows")
    with storage.open_file(max(files, key=lambda file: file.size).uri) as file:
        footer = pq.ParquetFile(file)
        groups = [footer.metadata.row_group(k) for k in range(footer.num_row_groups)]
        schema = footer.schema_arrow
        chunks = [group.column(k) for group in groups for k in range(group.num_columns)]
        names = {*COLUMNS.names, *keep, *LINEAGE}
        taken = [chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] in names]
        size = sum(chunk.total_compressed_size for chunk in taken)
        return size / max(footer.metadata.num_rows, 1), schema


def check_signatures(runs: Sequence[SourceRun]) -> None:
    """Raises JobError if two runs were scored under different signatures."""
    first = runs[0]
    for run in runs[1:]:
        if run.manifest.signature != first.manifest.signature:
            raise JobError(
                f"runs '{first.run_id}' and '{run.run_id}' have different metric signatures, so "
                f"their scores do not compare: {first.manifest.signature} and "
                f"{run.manifest.signature}"
            )


def read_runs(
    spark: SparkSession, runs: Sequence[SourceRun], stages: Sequence[int], keep: Sequence[str]
) -> DataFrame:
    """Reads the chosen stages: COLUMNS, keep, lineage_of the runs, and in run the number of the
    run."""
    parts: list[DataFrame] = []
    types: dict[str, tuple[DataType, str]] = {}
    for number, run in enumerate(runs):
        if not run.rows:
            continue
        folder = storage.spark_uri(storage.join(run.folder, "scored"))
        schema = COLUMNS
        if keep:
            extra = {field.name: field for field in spark.read.parquet(folder).schema}
            schema = StructType([*COLUMNS, *[extra[name] for name in keep]])
            for name in keep:
                first_type, first_run = types.setdefault(name, (extra[name].dataType, run.run_id))
                if first_type != extra[name].dataType:
                    raise JobError(
                        f"--keep-columns {name}: {first_type.simpleString()} in run "
                        f"'{first_run}', {extra[name].dataType.simpleString()} in '{run.run_id}'"
                    )
        lineage = [StructField(name, StringType()) for name in lineage_of(runs)]
        schema = StructType([*schema, *lineage])  # null where a run has no such column
        read = spark.read.options(**CHECKED).schema(schema)
        rows = read.parquet(folder).where(F.col("stage").isin(*stages))
        parts.append(rows.withColumn(RUN, F.lit(number)))
    return reduce(DataFrame.unionByName, parts)


def lineage_of(runs: Sequence[SourceRun]) -> list[str]:
    """Returns those of LINEAGE that any run has, and the group if all have it: the split goes by
    it."""
    shared = [GROUP] if all(GROUP in run.lineage for run in runs if run.rows) else []
    return shared + [name for name in LINEAGE if any(name in run.lineage for run in runs)]


def named_runs(rows: DataFrame, runs: Sequence[SourceRun]) -> DataFrame:
    """Puts the names of runs in place of their numbers in rows of read_runs."""
    names = F.array(*[F.lit(run.run_id) for run in runs])
    return rows.withColumn(RUN, F.get(names, F.col(RUN)))


def find_duplicates(rows: DataFrame) -> DataFrame:
    """Finds the rows whose pair an earlier run has too: pair_id, run, origin and stage."""
    rank = F.expr("row_number() OVER (PARTITION BY pair_id ORDER BY run)")
    ranked = rows.select("pair_id", "run", "origin", "stage").withColumn("rank", rank)
    return ranked.where("rank > 1").drop("rank")


def drop_duplicates(rows: DataFrame, duplicates: DataFrame, count: int) -> DataFrame:
    """Leaves the duplicates out of rows; count: how many they are."""
    keys = duplicates.select("pair_id", "run")
    return rows.join(
        F.broadcast(keys) if count <= 1_000_000 else keys, ["pair_id", "run"], "left_anti"
    )


# The split


def split_of(text: str, shares: Mapping[str, float], seed: int) -> str:
    """Returns the split of a source sentence. shares: of each of SPLITS, adding up to 1."""
    [split] = splits.splits_of(pa.array([text]), [*shares.values()], seed)
    return SPLITS[split]


def source_hashes(seed: int) -> Callable[..., Column]:
    """Returns gaixie.udfs.text.splits.source_hashes as an Arrow UDF: string -> 64 bits, signed."""

    @arrow_udf(LongType())  # type: ignore[call-overload]  # pyspark's stubs miss a default
    def hashes(source: pa.Array) -> pa.Array:
        return pa.array(splits.source_hashes(source, seed).view(np.int64))

    return hashes


def split_key(columns: Sequence[str]) -> Column:
    """Returns what decides a row's split: its group if the release has that column, else its
    source."""
    source = F.col("source")
    return F.coalesce(F.col(GROUP).cast("string"), source) if GROUP in columns else source


def split_column(shares: Mapping[str, float], seed: int, key: Column) -> Column:
    """Returns gaixie.udfs.text.splits.splits_of as a column of the key."""
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
    """Writes folder/split=…/subset=stage-…/*.parquet, the number of files that shards states.

    Hashes of pair_id and seed decide a row's file and its place there: files of one stage are even
    in size and mix, and they are the same however the rows were spread over machines. The stage is
    a column of the files, so the folders have a name of their own for it.
    """
    write_partitioned(
        rows.withColumn("subset", F.concat(F.lit("stage-"), F.col("stage").cast("string"))),
        storage.spark_uri(folder),
        ("split", "subset"),
        {(split, f"stage-{stage}"): files for (split, stage), files in shards.items()},
        spread_by=F.xxhash64(F.lit("file"), F.lit(seed), "pair_id"),
        order=(F.xxhash64(F.lit("order"), F.lit(seed), "pair_id"), "pair_id"),
        marker=False,  # a release holds what its manifest lists
    )


# What was written


@dataclass(frozen=True)
class Counts:
    """What written files hold."""

    rows: Counter[tuple[str, int, str]]
    """Counts pairs by split, stage and origin."""
    bins: dict[tuple[str, int], Counter[int]]
    """Pairs by origin and stage, and by score bin."""
    lengths: dict[tuple[str, int, str], Counter[int]]
    """Sentences by origin, stage and side, and by length in bins of LENGTH_BINS characters."""


def read_release(spark: SparkSession, folder: str, schema: StructType = COLUMNS) -> DataFrame:
    """Reads a build folder's data, with split and subset of the folders."""
    fields = [StructField(name, StringType()) for name in ("split", "subset")]
    path = storage.spark_uri(storage.join(folder, "data"))
    return spark.read.schema(StructType([*schema, *fields])).parquet(path)


def count_lineage(
    spark: SparkSession, folder: str, columns: Mapping[str, str]
) -> list[ReleaseLineage]:
    """Counts a build folder's pairs by run, origin, method, model and licence."""
    known = [name for name in LINEAGE if columns.get(name) == "string"]
    fields = [StructField(name, StringType()) for name in (*known, RUN)]
    rows = read_release(spark, folder, StructType([*COLUMNS, *fields]))
    nulls = {name: F.lit(None).cast("string") for name in LINEAGE if name not in known}
    keys = (RUN, "origin", "method", "model", "license")
    table = rows.withColumns(nulls).groupBy(*keys, "stage").count().collect()
    pairs: dict[tuple, dict[int, int]] = defaultdict(dict)
    for *key, stage, count in sorted(table, key=lambda row: [str(value) for value in row]):
        pairs[tuple(key)][stage] = count
    return [
        ReleaseLineage(
            run_id=run, origin=origin, method=method, model=model, license=licence, pairs=stages
        )
        for (run, origin, method, model, licence), stages in pairs.items()
    ]


@dataclass(frozen=True)
class Judged:
    """What the judgements in written files come to, by stage and name of the output."""

    bins: dict[tuple[int, str], Counter[int]]
    """Pairs by bin, of BARS from 0 to 1."""
    means: dict[tuple[int, str], float]


def judged(rows: DataFrame) -> Judged:
    """Counts the judgements and the score of rows of read_release."""
    named = [F.struct(F.lit(name).alias("name"), F.col(name).alias("value")) for name in OUTPUTS]
    values = rows.select("stage", F.explode(F.array(*named)).alias("output"))
    value = F.col("output.value").cast("double")
    bar = F.least(F.floor(value * BARS), F.lit(BARS - 1)).cast("int")
    table = values.groupBy("stage", "output.name", bar.alias("bin")).agg(
        F.count(F.lit(1)).alias("pairs"), F.sum(value).alias("sum")
    )
    bins: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
    sums: Counter[tuple[int, str]] = Counter()
    for stage, name, index, pairs, total in table.collect():
        bins[stage, name][index] += pairs
        sums[stage, name] += total
    return Judged(dict(bins), {key: sums[key] / bins[key].total() for key in bins})


def recount(rows: DataFrame) -> Counts:
    """Counts rows of read_release. Raises RuntimeError if one is in a wrong folder."""
    keys = ("split", "subset", "stage", "origin")
    table = rows.groupBy(*keys, score_bin_column().alias("bin")).count()
    counts: Counter[tuple[str, int, str]] = Counter()
    bins: dict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for split, subset, stage, origin, index, pairs in table.collect():
        if subset != f"stage-{stage}":
            raise RuntimeError(f"data/split={split}/subset={subset}: rows of stage {stage}")
        counts[split, stage, origin] += pairs
        bins[origin, stage][index] += pairs
    lengths_of = {"source": F.col("sl"), "paraphrase": F.col("sl") * F.col("lr")}
    sides = [F.struct(F.lit(s).alias("side"), n.alias("length")) for s, n in lengths_of.items()]
    sentences = rows.select("origin", "stage", F.explode(F.array(*sides)).alias("sentence"))
    length = F.floor(F.round("sentence.length") / LENGTH_BINS).cast("int").alias("bin")
    lengths: dict[tuple[str, int, str], Counter[int]] = defaultdict(Counter)
    by_length = sentences.groupBy("origin", "stage", "sentence.side", length).count()
    for origin, stage, side, index, pairs in by_length.collect():
        lengths[origin, stage, side][index] += pairs
    return Counts(counts, dict(bins), dict(lengths))
