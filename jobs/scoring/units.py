"""Scores a run unit by unit: some files of one input, or part of one, which --resume does not
score again.

RUN/_work/_unit=0/fit=…/*.parquet    the rows of a unit: scored, or with a reason why not
RUN/_work/unit-00000.json            what went in and what came out; written last
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from gaixie.jobs.corpus import parquet, reading, session
from gaixie.jobs.corpus.markers import WORK, Markers
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.reading import INPUT_FILE, InputFiles, Span
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.command_line import UserError, say
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spark import SCORED_FIELDS, score_columns
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.storage import File, spark_uri
from gaixie.udfs.storage.tables import MALFORMED_LINE
from gaixie.udfs.text.validate import MALFORMED, REASONS

UNIT_MB, UNIT_MB_A_CORE = 2048, 48
"""Input of a unit in MB, and its minimum for each core, so that a large cluster gets enough
tasks."""

MOST_UNITS = 1 << 16

QUICKLY = {"parquet.compression.codec.zstd.level": "1"}
"""How the rows of a unit are compressed, which are written again later."""

SPREAD_BYTES = 4_000_000
"""Input from which rows are spread over the cores if the files cannot be read in enough parts."""


@dataclass(frozen=True)
class Job:
    """One scoring run."""

    spark: SparkSession
    settings: ScoreSettings
    metric: SPScore
    signature: str
    """Of the metric and the segmenter: with the settings, it decides a score."""
    inputs: list[InputFiles]
    folder: str
    limit: int | None
    """Maximum number of rows to read."""
    check_lock: Callable[[], None]
    """Raises UserError if another process holds the run; called before each step that deletes or
    publishes."""

    @property
    def run_id(self) -> str:
        return self.folder.rpartition("/")[2]

    @property
    def extra_columns(self) -> dict[str, StructField]:
        """Returns the columns of the inputs that the run carries along, by name."""
        return {column.name: column for source in self.inputs for column in source.extra_columns}

    def path(self, name: str) -> str:
        return storage.join(self.folder, name)


@dataclass(frozen=True)
class Unit:
    """Some files of one input, or a span of one file, scored and stored together."""

    number: int
    input: InputFiles
    files: list[File]
    span: Span | None = None

    @property
    def name(self) -> str:
        return f"unit-{self.number:05d}"

    @property
    def folder(self) -> str:
        """Returns the folder of its rows, below the run's."""
        return f"{WORK}/_unit={self.number}"

    @property
    def rows(self) -> int | None:
        """Returns the rows of the files; None if their footers do not say."""
        counts = [self.input.rows.get(file.uri) for file in self.files]
        return None if self.span or None in counts else sum(filter(None, counts))


def divide(inputs: list[InputFiles], unit_mb: float) -> list[Unit]:
    """Divides the inputs into units: neighbouring files up to a size, or spans of a larger file.

    Raises UserError for more units than MOST_UNITS.
    """
    units: list[Unit] = []
    most = unit_mb * 1e6
    for source in inputs:
        size = most  # so that each input begins a unit
        for file in source.files:
            spans = source.spans(file, ceil(file.size / most))
            size += file.size
            if size > most or len(spans) > 1:
                units += [Unit(len(units) + k, source, [], span) for k, span in enumerate(spans)]
                size = file.size
            for unit in units[-len(spans) :]:
                unit.files.append(file)
    if len(units) > MOST_UNITS:
        fault = f"{len(units):,} units, at most {MOST_UNITS:,}: give a larger one"
        raise UserError(f"--unit-mb {unit_mb:g}: {fault}")
    return units


TEXTS = ("source", "paraphrase", "origin", MALFORMED_LINE, INPUT_FILE)

ROWS = StructType([*SCORED_FIELDS, *(StructField(name, StringType()) for name in TEXTS)])
ROWS = ROWS.add("row_key", "long").add("fit", "boolean")
"""Columns of the rows of a unit, besides those that the inputs have."""


@dataclass(frozen=True)
class ScoredUnits:
    """The rows of all units, once they are scored."""

    job: Job
    folders: list[str]
    read: Counter[str]
    """Rows read, by origin."""
    unfit: Counter[str]
    """Rows that cannot be scored, by reason."""

    def rows(self, fit: bool) -> DataFrame:
        """Reads the rows that are fit, or those that are not: the columns of scored_rows, and
        row_key, which is unique and stable."""
        base = spark_uri(self.job.path(WORK))
        schema = StructType([*ROWS, *self.job.extra_columns.values()])
        rows = parquet.read_table(self.job.spark, *self.folders, schema=schema, basePath=base)
        return rows.where(F.col("fit") == fit).drop("_unit")

    @cached_property
    def sizes(self) -> list[int]:
        """Returns the bytes of each file of the units."""
        return [file.size for folder in self.folders for file in parquet.data_files(folder)]

    def bytes_per_row(self) -> float:
        return sum(self.sizes) / max(self.read.total(), 1)


def scorer_of(job: Job) -> Callable[..., Column]:
    """Returns the UDF that scores a pair; see gaixie.udfs.spark.score_columns."""
    settings = job.settings
    lengths = settings.min_characters, settings.max_characters
    return score_columns(job.metric, settings.segmenter, *lengths)


def score_units(job: Job, resume: bool) -> ScoredUnits:
    """Scores the inputs unit by unit; with resume, only the units that are not finished.

    Raises UserError if the inputs have no rows.
    """
    unit_mb = job.settings.unit_mb or max(UNIT_MB, UNIT_MB_A_CORE * session.cores(job.spark))
    units = divide(job.inputs, unit_mb)
    finished = [n for n in storage.children(job.path(WORK)) if re.fullmatch(r"unit-\d+\.json", n)]
    if finished and not resume:
        count = len(finished)
        say(f"{count} finished units of run '{job.run_id}' are deleted; --resume keeps them")
    markers = Markers(job.path(WORK))
    job.check_lock()
    markers.start({}, resume, f"run '{job.run_id}'")
    scored, score = ScoredUnits(job, [], Counter(), Counter()), scorer_of(job)
    for unit in units:
        job.check_lock()
        left = None if job.limit is None else job.limit - scored.read.total()
        if left is not None and left <= 0:
            break
        title = f"scoring unit {unit.number + 1} of {len(units)}"
        work = partial(_score_unit, job, unit, score, title, left)
        done = markers.once(unit.name, work, _fingerprint(job, unit, left))
        scored.read.update(done["rows"])
        scored.unfit.update(done["unfit"])
        scored.folders.append(job.path(unit.folder))
    if not scored.read.total():
        job.check_lock()
        markers.clear()
        raise UserError(f"{job.settings.inputs[0].path}: no rows, expected at least one")
    return scored


def _score_unit(
    job: Job, unit: Unit, score: Callable[..., Column], title: str, limit: int | None
) -> dict[str, Any]:
    """Scores a unit into its folder. Returns rows by origin, and unfit rows by reason.

    limit: the maximum of rows.
    """
    read, unfit = Observation(), Observation()
    rows = reading.read_files(job.spark, unit.input, unit.files, unit.span)
    parts = sum(unit.input.pieces[file.uri] for file in unit.files)
    if unit.span:
        parts = (unit.span[1] - unit.span[0]) // unit.input.piece_length
    if limit is not None:
        rows, parts = rows.limit(limit), 1
    few = parts < 2 * session.cores(job.spark)
    if few and sum(file.size for file in unit.files) > SPREAD_BYTES:
        rows = rows.repartition(4 * session.cores(job.spark))
    rows = rows.observe(read, *_counts_by("origin", (*ORIGINS, reading.NO_ORIGIN)))
    scored = scored_rows(rows, score).withColumn("row_key", row_key(unit.number))
    scored = scored.observe(unfit, *_counts_by("reason", (*REASONS, MALFORMED)))
    named = reading.errors_name_the_file(unit.files, unit.input.form)
    with named, progress(job.spark, title, unit.rows):
        parquet.write_table(scored, job.path(unit.folder), ["fit"], **QUICKLY)
    return {"rows": +Counter(read.get), "unfit": +Counter(unfit.get)}


def row_key(unit: int) -> Column:
    """Returns a number of each row, unique in the run: 16 bits for the unit, 17 for the task, 30
    for the row in it."""
    task = F.shiftleft(F.spark_partition_id().cast("long"), 30)
    return F.lit(unit << 47) + task + F.monotonically_increasing_id() % F.lit(1 << 33)


def _fingerprint(job: Job, unit: Unit, left: int | None) -> str:
    """Returns a digest of what decides a unit's result. left: rows left of the limit."""
    files = [[f.uri, f.size, round(f.modified.timestamp() * 1000)] for f in unit.files]
    limits = job.settings.min_characters, job.settings.max_characters, left
    parts = files, unit.span, unit.input.settings.model_dump(), job.signature, limits
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def scored_rows(rows: DataFrame, score: Callable[..., Column]) -> DataFrame:
    """Scores rows of read_files, or says why not: adds SCORED_FIELDS and ``fit``.

    Only rows that cannot be scored keep INPUT_FILE.
    """
    known = ("source", "paraphrase", "origin", INPUT_FILE)
    extra = [name for name in rows.columns if name not in known]
    scored = rows.withColumn("_scored", score("source", "paraphrase", "origin"))
    reason = F.coalesce(reading.line_fault(), F.col("_scored.reason"))
    file = F.when(reason.isNotNull(), reading.file_of_row())  # nobody asks for the others'
    return scored.select(
        reason.isNull().alias("fit"),
        reason.alias("reason"),
        F.col("_scored.pair_id"),
        "source",
        "paraphrase",
        *[F.col(f"_scored.{name}") for name in (*FEATURES, *OUTPUTS)],
        "origin",
        file.alias(INPUT_FILE),
        *[reading.column(name) for name in extra],
    )


def _counts_by(name: str, values: Iterable[str]) -> list[Column]:
    """Counts the rows that hold each of the values in a column."""
    return [F.count_if(F.col(name) == value).alias(value) for value in values]
