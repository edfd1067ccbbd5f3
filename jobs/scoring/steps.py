"""The steps of a scoring run, from its inputs to its manifest, in order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from gaixie.jobs.corpus.markers import WORK, Markers
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.session import set_shuffle_partitions
from gaixie.jobs.scoring.accounting import account
from gaixie.jobs.scoring.cut_points import Cells, count_cells, cut_stages, warnings_of
from gaixie.jobs.scoring.duplicates import find_duplicates, leave_out
from gaixie.jobs.scoring.examples import pick_examples
from gaixie.jobs.scoring.job import Job
from gaixie.jobs.scoring.report import REPORT, print_summary, report_page
from gaixie.jobs.scoring.units import score_units
from gaixie.jobs.scoring.writing import write_quarantine, write_scored
from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST

ROWS_PER_PARTITION = 250_000
"""Rows that one task searches for duplicates."""


def score_inputs(job: Job, resume: bool, earlier_runs: Sequence[str]) -> None:
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
        rows, rules = units.read.total(), job.settings.cuts
        set_shuffle_partitions(job.spark, rows // ROWS_PER_PARTITION)
        pairs = units.rows(fit=True)
        duplicates = find_duplicates(pairs, rows, job.extra_columns.values())
        left_out = count_cells(duplicates, rules) if duplicates else Cells()
        cells = count_cells(pairs, rules)
        cells.subtract(left_out)
        cut_points = cut_stages(cells, rules)
    with step("write"):
        if left_out and duplicates:
            pairs = leave_out(pairs, duplicates, left_out.total())
        scored = write_scored(job, units, pairs, cut_points)
        quarantine = write_quarantine(job, units)
    with step("report"):
        manifest = account(
            job,
            units.read,
            left_out,
            cut_points,
            {"scored": scored, "quarantine": quarantine},
            earlier_runs,
        )
        examples = pick_examples(job, manifest.stages)
    manifest = manifest.model_copy(update={"seconds": seconds})
    storage.write(job.path(REPORT), report_page(manifest, job.folder, examples))
    job.check_lock()
    Markers(job.path(WORK)).clear()
    job.check_lock()
    storage.write(job.path(MANIFEST), manifest.to_json())  # last: now the run exists for readers
    print_summary(manifest, job.folder)
    for warning in warnings_of(manifest.stages):
        say(f"warning: {warning}")


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    """Adds the duration of the block to seconds."""
    started = time.monotonic()
    yield
    seconds[step] = round(time.monotonic() - started, 3)
