"""Sorts the scored rows of a run: of the rows of a pair one stays, and cut points decide its stage.

RUN/scored/origin=…/stage=…/*.parquet    the distinct pairs, with features, judgements and score
RUN/quarantine/reason=…/*.parquet        the rows that cannot be scored

The rule of a stage is in gaixie.udfs.spscore.stages. Its cut points are the scores that the
settings give, or quantiles of the origin's pairs in this run: of its distinct scored pairs whose
judged meaning is at least min_meaning. They come from counts in bins of a ten-thousandth, so they
do not depend on units, machines or order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from gaixie.jobs.corpus.parquet import escape_undecodable, write_partitioned, write_unshuffled
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.reading import INPUT_FILE, column
from gaixie.jobs.corpus.session import cores
from gaixie.jobs.scoring.settings import Cuts
from gaixie.jobs.scoring.units import Job, ScoredUnits
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spark import held_back, score_bin_column, stage
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import SCORE_BINS, quantile
from gaixie.udfs.storage.tables import MALFORMED_LINE

SCORED_COLUMNS = ("pair_id", "source", "paraphrase", *FEATURES, *OUTPUTS)
"""Columns of scored files, before the input's own; folder names hold origin and stage."""

MIN_UNSHUFFLED = 256e6
"""Bytes from which a table of many files is written without a shuffle: smaller tables would get
uneven files."""

MAX_BROADCAST = 4_000_000
"""Maximum rows whose keys are sent to every executor; the keys take 32 MB and more."""

FEW = 250_000
"""Rows up to which all are compared: a narrow pass would not pay off."""

DUPLICATE_COLUMNS = ("row_key", "origin", "spscore", "meaning")

Cells = Counter[tuple[str, int, bool]]
"""Counts pairs by origin, score bin, and whether their meaning holds them below stage 2."""


# Duplicates


def find_duplicates(pairs: DataFrame, count: int, extra: Iterable[StructField]) -> DataFrame | None:
    """Returns the rows to leave out, with DUPLICATE_COLUMNS; None if there are certainly none.

    pairs: columns pair_id, source, paraphrase, DUPLICATE_COLUMNS and extra. count: their number, or
    more. Of the rows of a pair, one stays: that whose extra columns hash lowest, and among equals
    that whose texts do, whatever order they were read in.

    If there are more than FEW rows, a narrow pass first finds the hashes of pair_id that occur
    twice, 8 bytes a row. Only rows with one of these hashes are then compared: true duplicates, and
    the rare rows whose 64-bit hashes agree by chance. If the hashes are too many to send to every
    executor, the rows are shuffled by hash.
    """
    texts = F.xxhash64("source", "paraphrase").alias("texts")
    alike = pairs.select("pair_id", *DUPLICATE_COLUMNS, _tie(extra).alias("tie"), texts)
    key = "pair_id"
    if count > FEW:
        hashed = F.xxhash64("pair_id").alias("hash")
        hashes = pairs.groupBy(hashed).count().where("count > 1").select("hash").persist()
        if not (twice := hashes.count()):
            return None
        hashes = F.broadcast(hashes) if twice <= MAX_BROADCAST else hashes
        alike = alike.withColumn("hash", hashed).join(hashes, "hash", "left_semi")
        key = "hash, pair_id"
    rank = F.expr(f"row_number() OVER (PARTITION BY {key} ORDER BY tie, texts, row_key)")
    return alike.withColumn("rank", rank).where("rank > 1").select(*DUPLICATE_COLUMNS).persist()


def _tie(extra: Iterable[StructField]) -> Column:
    """Returns a hash of the extra columns, which decides between rows of one pair."""
    parts = []
    for field in sorted(extra, key=lambda field: field.name):
        value = column(field.name)
        if isinstance(field.dataType, ArrayType | MapType | StructType):
            value = F.to_json(value)  # maps cannot be hashed
        parts += [value.isNull(), value]  # a hash skips nulls
    return F.xxhash64(*parts) if parts else F.lit(0)


def leave_out(pairs: DataFrame, duplicates: DataFrame, count: int) -> DataFrame:
    """Returns pairs without the rows whose row_key is a duplicate's; the rest stays where it is.

    count: the duplicates. Every executor gets their keys, unless there are more than
    MAX_BROADCAST.
    """
    keys = duplicates.select("row_key")
    return pairs.join(F.broadcast(keys) if count <= MAX_BROADCAST else keys, "row_key", "left_anti")


# Stages


@dataclass(frozen=True)
class CutPoints:
    """Cut points, and counts of the pairs before they are written."""

    cuts: dict[str, list[float]]
    """Scores at which stages 1, 2 and 3 begin, by origin; NaN if a quantile had no pairs."""
    min_meaning: dict[str, float]
    cells: Cells
    """Distinct pairs."""

    def counts(self) -> dict[tuple[str, int], int]:
        """Counts the pairs by origin and stage, exact to one score bin at each cut point."""
        counts: Counter[tuple[str, int]] = Counter()
        for (origin, index, held), pairs in self.cells.items():
            number = sum(index / SCORE_BINS >= cut for cut in self.cuts[origin])
            counts[origin, min(number, 1) if held else number] += pairs
        return dict(sorted((+counts).items()))


def count_cells(pairs: DataFrame, cuts: Mapping[str, Cuts]) -> Cells:
    """Counts pairs, which have the columns origin, spscore and meaning."""
    held = held_back("origin", "meaning", min_meaning_of(cuts))
    counted = pairs.groupBy(*[F.col("origin"), score_bin_column(), held]).count().collect()
    return Counter({(origin, index, held): pairs for origin, index, held, pairs in counted})


def cut_stages(cells: Cells, cuts: Mapping[str, Cuts]) -> CutPoints:
    """Returns where the stages begin. cells: of the distinct pairs; cuts: the settings."""
    not_held = bins_of(Counter({key: pairs for key, pairs in cells.items() if not key[2]}))
    points = {
        origin: [*rule.scores]
        if rule.scores
        else [quantile(not_held.get(origin, {}), share) for share in rule.quantiles or ()]
        for origin, rule in cuts.items()
    }
    return CutPoints(points, min_meaning_of(cuts), cells)


def min_meaning_of(cuts: Mapping[str, Cuts]) -> dict[str, float]:
    return {origin: rule.min_meaning for origin, rule in cuts.items()}


def bins_of(cells: Cells) -> dict[str, Counter[int]]:
    """Counts pairs by origin and score bin."""
    bins: dict[str, Counter[int]] = {}
    for (origin, index, _), pairs in cells.items():
        if pairs:
            bins.setdefault(origin, Counter())[index] += pairs
    return bins


# Tables


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
    rows = rows.select(
        "source", "paraphrase", *extra, MALFORMED_LINE, INPUT_FILE, "origin", "reason"
    )
    if counts:
        job.check_lock()
        files, path = _files(job, units, counts), job.path("quarantine")
        with progress(job.spark, "writing the quarantine", sum(counts.values())):
            write_partitioned(rows, path, ("reason",), files, F.xxhash64("source"))
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
    at_once = cores(job.spark)  # whole rounds of tasks, or files of half the size at least
    tasks = min(ceil(tasks / at_once) * at_once, round(2 * tasks))
    largest = max(counts.values()) / tasks  # rows of the largest folder in one task
    # A file may exceed the target by a quarter; tasks have up to a fifth more rows than the mean.
    files = max(ceil(largest * units.bytes_per_row() / target - 0.25), 1)
    return ceil(size / tasks) + max(units.sizes), ceil(1.2 * largest / files)
