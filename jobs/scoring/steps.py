"""The steps of a scoring run, from its inputs to its manifest, in order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pandas as pd
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.markers import WORK, Markers
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.reading import read_files
from gaixie.jobs.corpus.session import set_shuffle_partitions
from gaixie.jobs.scoring.report import REPORT, pick_examples, print_summary, report_page
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.jobs.scoring.sorting import (
    Cells,
    count_cells,
    cut_stages,
    find_duplicates,
    leave_out,
    warnings_of,
)
from gaixie.jobs.scoring.units import Job, score_units, scored_rows, scorer_of
from gaixie.jobs.scoring.writing import Table, make_manifest, write_quarantine, write_scored
from gaixie.udfs.command_line import UserError, say
from gaixie.udfs.reports import number, print_table
from gaixie.udfs.spscore import JUDGEMENTS, SPScore
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.manifest import MANIFEST
from gaixie.udfs.text.segmenters import load_segmenter

ROWS_PER_PARTITION = 250_000
"""Rows that one task searches for duplicates."""

SAMPLE = 5_000
"""Rows of each input that a dry run scores."""


def load_metric(settings: ScoreSettings) -> tuple[SPScore, str]:
    """Loads the metric of a run; returns it and its signature. Raises UserError if it cannot."""
    try:
        with local_copy(None, settings.model) as (_, folder):
            metric = SPScore.load(folder or settings.tier)
        if settings.tier not in (None, metric.tier):
            raise ValueError(
                f"{settings.model}: a model of tier {metric.tier}, not {settings.tier}; "
                "give only one of model and tier"
            )
        if metric.tier == "full":
            metric.read_from = settings.read_from
        return metric, metric.signature(load_segmenter(settings.segmenter))
    except (ValueError, OSError, ImportError) as error:
        raise UserError(str(error)) from error


def score_inputs(job: Job, resume: bool, earlier_runs: Sequence[str]) -> None:
    """Scores, deduplicates, cuts the stages, writes, accounts, reports, and publishes.

    resume: keep the units that a killed run has finished. earlier_runs: those whose files the
    inputs leave out.
    """
    seconds: dict[str, float] = {}
    step = partial(_timed, seconds)
    job.check_lock()
    for name in ("scored", "quarantine", REPORT):  # what a killed run left
        storage.delete(job.path(name))

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
        schemas: dict[Table, StructType] = {"scored": scored}
        schemas["quarantine"] = write_quarantine(job, units)
    with step("report"):
        manifest = make_manifest(job, units.read, left_out, cut_points, schemas, earlier_runs)
        examples = pick_examples(job, manifest.stages)
    manifest = manifest.model_copy(update={"seconds": seconds})
    storage.write(job.path(REPORT), report_page(manifest, job.folder, examples))
    job.check_lock()
    Markers(job.path(WORK)).clear()
    job.check_lock()
    storage.write(job.path(MANIFEST), manifest.to_json())  # last: now the run exists for readers
    print_summary(manifest, job.folder)
    for warning in warnings_of(manifest.stages, manifest.quarantine):
        say(f"warning: {warning}")


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    """Adds the duration of the block to seconds."""
    started = time.monotonic()
    yield
    seconds[step] = round(time.monotonic() - started, 3)


def dry_run(job: Job) -> None:
    """Prints what a run would read, and what becomes of the first SAMPLE rows of each input."""
    for source in job.inputs:
        if not source.files:
            continue
        size = sum(file.size for file in source.files) / 1e6
        print(f"{source.settings.path}: {len(source.files)} {source.kind} files, {size:,.1f} MB")
        rows = read_files(job.spark, source, source.files).limit(SAMPLE)
        scored = scored_rows(rows, scorer_of(job)).select(
            "origin", "reason", "spscore", *JUDGEMENTS
        )
        sample = pd.DataFrame(scored.collect(), columns=scored.columns)
        fit = sample[sample["reason"].isna()]
        print(f"of the first {len(sample):,} rows, {len(fit):,} can be scored")
        for reason, count in sample["reason"].value_counts().items():
            print(f"quarantine {reason}: {count:,}")
        outputs = ("spscore", *JUDGEMENTS)
        means = [
            [str(origin), *(number(pairs[name].mean()) for name in outputs)]
            for origin, pairs in fit.groupby("origin")
        ]
        print_table(["origin", *(f"mean {name}" for name in outputs)], means)
    print(f"signature: {job.signature}")
    print(f"would write {job.folder}; dry run: nothing was written")
