"""Writes the tables of a run, counts them, closes the accounts, and states all in the manifest.

RUN/scored/origin=…/stage=…/*.parquet    the distinct pairs, with features, judgements and score
RUN/quarantine/reason=…/*.parquet        the rows that cannot be scored
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from math import ceil
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.parquet import read_table, write_partitioned, write_unshuffled
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.publish import now
from gaixie.jobs.corpus.reading import column
from gaixie.jobs.corpus.session import cores
from gaixie.jobs.corpus.written import escape_undecodable, input_entry, written_files
from gaixie.jobs.scoring.sorting import Cells, CutPoints, bins_of
from gaixie.jobs.scoring.units import Job, ScoredUnits
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spark import stage
from gaixie.udfs.spscore import JUDGEMENTS, OUTPUTS
from gaixie.udfs.spscore.stages import SCORE_BINS, STAGES, quantile
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import RunManifest, RunRows
from gaixie.udfs.storage.tables import MALFORMED_LINE

SCORED_COLUMNS = ("pair_id", "source", "paraphrase", *FEATURES, *OUTPUTS)
"""Columns of scored files, before the input's own; folder names hold origin and stage."""

MIN_UNSHUFFLED = 256e6
"""Bytes from which a table of many files is written without a shuffle: smaller tables would get
uneven files."""

Table = Literal["scored", "quarantine"]

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

BARS, TENTHS = 20, 10
"""Number of bins for the score and for a judgement in a manifest's histograms."""


def write_scored(
    job: Job, units: ScoredUnits, pairs: DataFrame, cut_points: CutPoints
) -> StructType:
    """Writes the distinct pairs, one folder for each origin and stage; returns their schema."""
    number = stage("spscore", "origin", "meaning", cut_points.cuts, cut_points.min_meaning)
    pairs = pairs.withColumn("stage", number)
    extra = [column(name) for name in job.extra_columns]
    pairs = pairs.select(*SCORED_COLUMNS, *extra, "origin", "stage")
    if counts := cut_points.counts():
        job.check_lock()
        keys, path = ("origin", "stage"), job.path("scored")
        with progress(job.spark, "writing scored pairs", sum(counts.values())):
            if split := _split(job, units, counts):
                write_unshuffled(pairs, path, keys, *split)
            else:
                files = _files(job, units, counts)
                write_partitioned(pairs, path, keys, files, F.xxhash64("pair_id"))
    return pairs.schema


def write_quarantine(job: Job, units: ScoredUnits) -> StructType:
    """Writes the rows that cannot be scored, one folder for each reason; returns their schema."""
    counts = {(reason,): rows for reason, rows in units.unfit.items()}
    rows = units.rows(fit=False)
    if ("undecodable",) in counts:
        rows = escape_undecodable(rows, ("source", "paraphrase", MALFORMED_LINE))
    extra = [column(name) for name in job.extra_columns]
    rows = rows.select("source", "paraphrase", *extra, MALFORMED_LINE, "origin", "reason")
    if counts:
        job.check_lock()
        files = _files(job, units, counts)
        write_partitioned(rows, job.path("quarantine"), ("reason",), files, F.xxhash64("source"))
    return rows.schema


def _files(job: Job, units: ScoredUnits, counts: Mapping[Any, int]) -> dict[Any, int]:
    """Returns the number of files of target_file_mb for each folder's rows."""
    rows_per_file = int(job.settings.target_file_mb * 1e6 / units.bytes_per_row())
    return {key: max(round(rows / max(rows_per_file, 1)), 1) for key, rows in counts.items()}


def _split(
    job: Job, units: ScoredUnits, counts: dict[tuple[str, int], int]
) -> tuple[int, int] | None:
    """Returns (bytes a task, rows a file) so that tasks that write what they read make files of
    about target_file_mb, or half of it if that keeps more cores busy. Returns None for too little
    input."""
    size, target = sum(units.sizes), job.settings.target_file_mb * 1e6
    tasks = size / (target * len(counts))
    if tasks < 1 or size < MIN_UNSHUFFLED:
        return None
    a_wave = cores(job.spark)
    tasks = min(ceil(tasks / a_wave) * a_wave, round(2 * tasks))
    largest = max(counts.values()) / tasks
    files = max(ceil(largest * units.bytes_per_row() / target - 0.25), 1)
    return ceil(size / tasks) + max(units.sizes), ceil(1.2 * largest / files)


def make_manifest(
    job: Job,
    read: Counter[str],
    left_out: Cells,
    cut_points: CutPoints,
    schemas: Mapping[Table, StructType],
    earlier_runs: Sequence[str],
) -> RunManifest:
    """Returns the manifest of a run whose tables are written, without its times.

    read: rows by origin; left_out: the duplicates. Raises RuntimeError unless read = scored +
    quarantined + duplicates for every origin, as counted from the written files.
    """

    def written(name: Table, *keys: str | Column) -> Counter[Any]:
        if not storage.exists(job.path(name)):
            return Counter()
        rows = read_table(job.spark, job.path(name), schema=schemas[name]).groupBy(*keys).count()
        return Counter({tuple(row)[:-1]: row["count"] for row in rows.collect()})

    tenths = written("scored", "origin", "stage", *map(_tenth, JUDGEMENTS))
    by_stage = {origin: dict.fromkeys(STAGES, 0) for origin in read}
    by_reason: dict[str, dict[str, int]] = {origin: {} for origin in read}
    for (origin, number, *_), pairs in tenths.items():
        by_stage.setdefault(origin, dict.fromkeys(STAGES, 0))[number] += pairs
    for (origin, reason), rows in written("quarantine", "origin", "reason").items():
        by_reason.setdefault(origin, {})[reason] = rows
    duplicates = {origin: bins.total() for origin, bins in bins_of(left_out).items()}
    rows_of = close_accounts(read, by_stage, by_reason, duplicates)
    cuts = {origin: points for origin, points in cut_points.cuts.items() if origin in read}
    bins = bins_of(cut_points.cells)
    files = {name: written_files(job.spark, job.folder, name) for name in schemas}
    return RunManifest(
        run_id=job.run_id,
        created=now(),
        gaixie=version("gaixie"),
        spark=job.spark.version,
        signature=job.signature,
        settings=job.settings.model_dump(),
        limit=job.limit,
        inputs=[
            input_entry(one.settings.path, one.kind, one.files, one.left_out) for one in job.inputs
        ],
        rows=rows_of,
        earlier_runs=list(earlier_runs),
        stages=by_stage,
        quarantine=by_reason,
        cuts={o: [None if cut != cut else cut for cut in points] for o, points in cuts.items()},
        min_meaning={origin: cut_points.min_meaning[origin] for origin in cuts},
        quantiles={o: {s: quantile(counts, s) for s in QUANTILES} for o, counts in bins.items()},
        histograms=histograms(bins, tenths),
        seconds={},
        files={name: found for name, found in files.items() if found},
    )


def close_accounts(
    read: Mapping[str, int],
    scored: Mapping[str, Mapping[int, int]],
    quarantined: Mapping[str, Mapping[str, int]],
    duplicates: Mapping[str, int],
) -> dict[str, RunRows]:
    """Returns the accounts of each origin. Raises RuntimeError unless they close."""
    accounts = {}
    for origin in {**read, **scored, **quarantined, **duplicates}:
        accounts[origin] = rows = RunRows(
            read=read.get(origin, 0),
            scored=sum(scored.get(origin, {}).values()),
            quarantined=sum(quarantined.get(origin, {}).values()),
            duplicates=duplicates.get(origin, 0),
        )
        if rows.read != rows.scored + rows.quarantined + rows.duplicates:
            fault = f"the accounts do not close: {rows}; nothing was published"
            raise RuntimeError(f"origin {origin}: {fault}")
    return accounts


def _tenth(name: str) -> Column:
    """Returns the tenth of 0 to 1 that a column's value falls in."""
    return F.least(F.floor(F.col(name) * TENTHS), F.lit(TENTHS - 1)).cast("int").alias(f"_{name}")


def histograms(
    bins: Mapping[str, Mapping[int, int]], tenths: Mapping[tuple[Any, ...], int]
) -> dict[str, dict[str, list[int]]]:
    """Counts pairs by origin, output and bin.

    bins: pairs by origin and score bin. tenths: pairs by origin, stage, and the tenth of each of
    JUDGEMENTS.
    """
    found = {
        origin: {"spscore": [0] * BARS} | {name: [0] * TENTHS for name in JUDGEMENTS}
        for origin in bins
    }
    for origin, counts in bins.items():
        for index, pairs in counts.items():
            found[origin]["spscore"][min(index * BARS // SCORE_BINS, BARS - 1)] += pairs
    for (origin, _, *places), pairs in tenths.items():
        for name, place in zip(JUDGEMENTS, places, strict=True):
            found[origin][name][place] += pairs
    return found
