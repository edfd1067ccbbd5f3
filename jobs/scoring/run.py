"""The steps of a scoring run, from its inputs to its manifest, in order.

A pair is read by jobs/corpus/reading.py and scored by udfs/spark.py, both called in units.py; then
sorting.py gives it its stage and writes it. Before, jobs/corpus/inspection.py checks the files and
finds their columns.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pandas as pd
from pydantic import ValidationError
from pyspark.sql import SparkSession

from gaixie.jobs.corpus import inspection, markers, reading, session
from gaixie.jobs.corpus.files import FoundFiles, find_files, shown
from gaixie.jobs.corpus.input import Input
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.runs import CLEANED, RunLock, read_runs
from gaixie.jobs.scoring import report, sorting
from gaixie.jobs.scoring.settings import Cuts, ScoreSettings
from gaixie.jobs.scoring.units import Job, score_units, scored_rows, scorer_of
from gaixie.udfs.command_line import UserError, as_user_error, say
from gaixie.udfs.reports import number, print_table
from gaixie.udfs.spscore import JUDGEMENTS, OUTPUTS, SPScore
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.manifest import MANIFEST, RunManifest, read_run
from gaixie.udfs.storage.storage import File
from gaixie.udfs.text.segmenters import load_segmenter

ROWS_PER_PARTITION = 250_000
"""Rows that one task searches for duplicates."""

SAMPLE = 5_000
"""Rows of each input that a dry run scores."""


def score_corpus(
    wait: Callable[[], SparkSession],
    settings: ScoreSettings,
    found: Sequence[FoundFiles],
    folder: str,
    lock: RunLock | None,
    limit: int | None,
    resume: bool,
) -> None:
    """Scores inputs into the folder of a run, and publishes it.

    wait: returns the session once it has started. lock: of the run's folder; without it, only what
    would be done is shown. limit: maximum number of rows. resume: keep the finished units of a
    killed run. Raises UserError for a mistake of the user's.
    """
    metric, signature = load_metric(settings)
    if settings.cuts_of:
        settings.cuts |= cuts_of(settings.cuts_of, settings, signature)
    spark = wait()
    earlier: list[RunManifest] = []
    if settings.new_only:
        runs = read_runs(str(settings.output), cleaned=True)
        earlier = [run for run in runs if run.signature == signature]
    wanted = unseen_by(earlier, settings) if settings.new_only else None
    inputs = inspection.inspect_inputs(spark, found, wanted)
    if not any(source.files for source in inputs):
        print(f"nothing new to score: {folder} was not created")
        return
    check_lock = lock.check if lock else lambda: None
    job = Job(spark, settings, metric, signature, inputs, folder, limit, check_lock)
    if lock:
        score_inputs(job, resume, [run.run_id for run in earlier])
    else:
        dry_run(job)


def load_metric(settings: ScoreSettings) -> tuple[SPScore, str]:
    """Loads the metric of a run; returns it and its signature. Raises UserError if it cannot."""
    with as_user_error(), local_copy(None, settings.model) as (_, folder):
        metric = SPScore.load(folder or settings.tier)
        if settings.tier not in (None, metric.tier):
            fault = f"of tier {metric.tier}, not {settings.tier}; give only one of model and tier"
            raise ValueError(f"{settings.model}: a model {fault}")
        if metric.tier == "full":
            metric.read_from = settings.read_from
        return metric, metric.signature(load_segmenter(settings.segmenter))


def cuts_of(folder: str, settings: ScoreSettings, signature: str) -> dict[str, Cuts]:
    """Returns the cut points of an earlier run, whose data may be deleted.

    Raises UserError if it has another signature, or no cut points of an origin of the inputs.
    """
    with as_user_error():
        published = storage.exists(storage.join(folder, MANIFEST))
        if not published and not storage.exists(storage.join(folder, CLEANED)):
            raise UserError(f"--cuts-of {folder}: no published run is there")
        run = read_run(folder, MANIFEST if published else CLEANED)
    if run.signature != signature:
        raise UserError(f"--cuts-of {folder}: scored by {run.signature}, not {signature}")
    whole: dict[str, Any] = {o: of for o, of in run.cuts.items() if None not in of}
    cuts = {o: Cuts(scores=of, min_meaning=run.min_meaning.get(o, 0.0)) for o, of in whole.items()}
    for origin in {source.origin for source in settings.inputs} - {None, *cuts}:
        if not settings.cuts[str(origin)].scores:
            raise UserError(f"{folder}: no cut points of {origin}; give cuts.{origin}.scores")
    return cuts


def score_inputs(job: Job, resume: bool, earlier_runs: Sequence[str]) -> None:
    """Scores, deduplicates, cuts the stages, writes, accounts, reports, and publishes.

    resume: keep the units that a killed run has finished. earlier_runs: those whose files the
    inputs leave out.
    """
    seconds: dict[str, float] = {}
    step = partial(_timed, seconds)
    job.check_lock()
    for name in ("scored", "quarantine", report.REPORT):  # what a killed run left
        storage.delete(job.path(name))

    with step("score"):
        units = score_units(job, resume)
    with step("stages"), progress(job.spark, "finding duplicates and stages", units.read.total()):
        rows, cuts = units.read.total(), job.settings.cuts
        session.set_shuffle_partitions(job.spark, rows // ROWS_PER_PARTITION)
        pairs = units.rows(fit=True)
        duplicates = sorting.find_duplicates(pairs, rows, job.extra_columns.values())
        duplicate_cells = sorting.count_cells(duplicates, cuts) if duplicates else sorting.Cells()
        cells = sorting.count_cells(pairs, cuts)
        cells.subtract(duplicate_cells)
        cut_points = sorting.cut_stages(cells, cuts)
    with step("write"):
        if duplicate_cells and duplicates:
            pairs = sorting.leave_out(pairs, duplicates, duplicate_cells.total())
        schemas = {
            "scored": sorting.write_scored(job, units, pairs, cut_points),
            "quarantine": sorting.write_quarantine(job, units),
        }
    with step("report"), progress(job.spark, "counting what was written", None):
        manifest = report.make_manifest(
            job, units.read, duplicate_cells, cut_points, schemas, earlier_runs
        )
        examples = report.pick_examples(job, manifest.stages)
    manifest = manifest.model_copy(update={"seconds": seconds})
    fault, total = changed_input(job), manifest.total
    if total.quarantined / max(total.read, 1) > job.settings.max_quarantined:
        fault = f"{total.quarantined:,} of {total.read:,} rows are in quarantine"
    page = report.report_page(manifest, job.folder, examples, fault)
    storage.write(job.path(report.REPORT), page)
    if fault:
        raise UserError(f"{fault}; nothing was published; see {job.path(report.REPORT)}")
    job.check_lock()
    markers.Markers(job.path(markers.WORK)).clear()
    job.check_lock()
    storage.write(job.path(MANIFEST), manifest.to_json())  # last: now the run exists for readers
    report.print_summary(manifest, job.folder)
    for warning in report.warnings_of(manifest.stages, manifest.quarantine):
        say(f"warning: {warning}")


def changed_input(job: Job) -> str:
    """Names a file that has changed since it was listed, so that the accounts may not be its; or
    returns an empty text. A file that has gone was read; with a limit, it may not have been."""
    for source in job.inputs if job.limit is None else ():
        now: dict[str, File] = {}
        with suppress(UserError):  # all of it has gone
            now = {file.uri: file for file in find_files(source.settings.path)[0]}
        for file in source.files:
            if now.get(file.uri, file) != file:
                return f"{shown(file.uri)}: changed while it was read"
    return ""


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    """Adds the duration of the block to seconds."""
    started = time.monotonic()
    yield
    seconds[step] = round(time.monotonic() - started, 3)


def dry_run(job: Job) -> None:
    """Prints what a run would read, and what becomes of the first SAMPLE rows of each input."""
    outputs = ["spscore", *JUDGEMENTS]
    for source in (source for source in job.inputs if source.files):
        size, path = source.size / 1e6, source.settings.path
        print(f"{path}: {len(source.files)} {source.kind} files, {size:,.1f} MB")
        rows = reading.read_files(job.spark, source, source.files).limit(SAMPLE)
        scored = scored_rows(rows, scorer_of(job)).select("origin", "reason", *OUTPUTS)
        sample = pd.DataFrame(scored.collect(), columns=scored.columns)
        fit = sample[sample["reason"].isna()]
        print(f"of the first {len(sample):,} rows, {len(fit):,} can be scored")
        for reason, count in sample["reason"].value_counts().items():
            print(f"quarantine {reason}: {count:,}")
        means = fit.groupby("origin")[outputs].mean()
        rows_of = [[origin, *map(number, row)] for origin, *row in means.itertuples()]
        print_table(["origin", *(f"mean {name}" for name in outputs)], rows_of)
    print(f"signature: {job.signature}")
    print(f"would write {job.folder}; dry run: nothing was written")


# Which files are new

Seen = tuple[str, int, str, str]
"""A file's URI, bytes and time, and how it was read."""


def unseen_by(
    runs: Sequence[RunManifest], settings: ScoreSettings
) -> Callable[[Input, File], bool]:
    """Returns a function that tells whether none of the runs has scored a file of an input whole,
    as the settings say."""
    seen = {one for run in runs if run.limit is None for one in _files_of(run)}
    limits = (settings.min_characters, settings.max_characters)

    def is_new(source: Input, file: File) -> bool:
        time = file.modified.isoformat(timespec="milliseconds")
        return (file.uri, file.size, time, _reading(source, limits)) not in seen

    return is_new


def _files_of(run: RunManifest) -> list[Seen]:
    """Lists the files that a run read; none if its settings do not fit today's."""
    try:
        inputs = [Input.model_validate(given) for given in run.settings.get("inputs", [])]
    except ValidationError:
        return []
    limits = [run.settings.get(f"{which}_characters") for which in ("min", "max")]
    return [
        (file.path, file.bytes, file.modified, _reading(given, limits))
        for given, source in zip(inputs, run.inputs, strict=False)
        for file in source.listing
    ]


def _reading(source: Input, limits: Sequence[Any]) -> str:
    """Returns a text for which of a file's rows a run scores, and as what."""
    how = source.model_dump(exclude={"path", "license", "format"})
    return json.dumps([how, *limits], sort_keys=True)
