"""The steps of a scoring run, from its inputs to its manifest, in order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from pyspark.sql import SparkSession

from gaixie.jobs.corpus.inspection import inspect_inputs
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.reading import InputFiles
from gaixie.jobs.corpus.session import set_shuffle_partitions
from gaixie.jobs.corpus.settings import Input
from gaixie.jobs.scoring.accounting import account
from gaixie.jobs.scoring.dry_run import dry_run as dry_run
from gaixie.jobs.scoring.duplicates import find_duplicates, leave_out
from gaixie.jobs.scoring.examples import pick_examples
from gaixie.jobs.scoring.job import Job
from gaixie.jobs.scoring.job import load_scorer as load_scorer
from gaixie.jobs.scoring.new_only import files_of, seen_as
from gaixie.jobs.scoring.report import REPORT, print_summary, report_page
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.jobs.scoring.stages import Cells, count_cells, cut_stages, warnings_of
from gaixie.jobs.scoring.units import WORK, score_units
from gaixie.jobs.scoring.writing import write_quarantine, write_scored
from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, RunManifest
from gaixie.udfs.storage.storage import File

ROWS_PER_PARTITION = 250_000
"""Rows that one task searches for duplicates."""


def check_inputs(
    spark: SparkSession,
    inputs: list[InputFiles],
    settings: ScoreSettings,
    runs: Sequence[RunManifest],
) -> list[InputFiles]:
    """Checks the files to score, without those that the runs have scored."""
    seen, limits = files_of(runs), (settings.min_characters, settings.max_characters)

    def is_new(source: Input, file: File) -> bool:
        return seen_as(source, file, limits) not in seen

    wanted = is_new if settings.new_only else None
    return inspect_inputs(spark, inputs, wanted)


def run(job: Job, resume: bool, earlier_runs: Sequence[str]) -> None:
    """Scores, deduplicates, cuts the stages, writes, accounts, reports, and publishes.

    resume: keep the units that a killed run has finished. earlier_runs: those whose files the
    inputs leave out.
    """
    seconds: dict[str, float] = {}
    step = partial(_timed, seconds)
    job.delete("scored", "quarantine", REPORT)  # what a killed run left

    with step("score"):
        units = score_units(job, resume)
    with step("stages"), progress(job.spark, "finding duplicates and stages", units.read.total()):
        rows, cuts = units.read.total(), job.settings.cuts
        set_shuffle_partitions(job.spark, rows // ROWS_PER_PARTITION)
        pairs = units.rows(fit=True)
        duplicates = find_duplicates(pairs, rows, job.extra_columns.values())
        left_out = count_cells(duplicates, cuts) if duplicates else Cells()
        cells = count_cells(pairs, cuts)
        cells.subtract(left_out)
        stages = cut_stages(cells, cuts)
    with step("write"):
        if left_out and duplicates:
            pairs = leave_out(pairs, duplicates, left_out.total())
        scored = write_scored(job, units, pairs, stages)
        quarantine = write_quarantine(job, units)
    with step("report"):
        manifest = account(
            job,
            units.read,
            left_out,
            stages,
            {"scored": scored, "quarantine": quarantine},
            earlier_runs,
        )
        examples = pick_examples(job, manifest.stages)
    manifest = manifest.model_copy(update={"seconds": seconds})
    storage.write(job.path(REPORT), report_page(manifest, job.folder, examples))
    job.delete(WORK)
    job.check_lock()
    storage.write(job.path(NAME), manifest.to_json())  # last: now the run exists for readers
    print_summary(manifest, job.folder)
    for warning in warnings_of(manifest.stages):
        say(f"warning: {warning}")


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    """Adds the duration of the block to seconds."""
    started = time.monotonic()
    yield
    seconds[step] = round(time.monotonic() - started, 3)
