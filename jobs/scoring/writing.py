"""Writes the tables of a run.

RUN/scored/origin=…/stage=…/*.parquet    the distinct pairs, with features, judgements and score
RUN/quarantine/reason=…/*.parquet        the rows that cannot be scored
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.parquet import write_partitioned, write_unshuffled
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.reading import column
from gaixie.jobs.corpus.session import cores
from gaixie.jobs.corpus.written import escape_undecodable
from gaixie.jobs.scoring.cut_points import CutPoints
from gaixie.jobs.scoring.units import ScoredUnits
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spark import stage
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.tables import MALFORMED_LINE

if TYPE_CHECKING:
    from gaixie.jobs.scoring.steps import Job

SCORED_COLUMNS = ("pair_id", "source", "paraphrase", *FEATURES, *OUTPUTS)
"""Columns of scored files, before the input's own; folder names hold origin and stage."""

MIN_UNSHUFFLED = 256e6
"""Bytes from which a table of many files is written without a shuffle: smaller tables would get
uneven files."""


def write_scored(
    job: Job, units: ScoredUnits, pairs: DataFrame, cut_points: CutPoints
) -> StructType:
    """Writes the distinct pairs, one folder for each origin and stage; returns their schema."""
    rule = {"cuts": cut_points.cuts, "min_meaning": cut_points.min_meaning}
    pairs = pairs.withColumn("stage", stage("spscore", "origin", "meaning", **rule))
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
