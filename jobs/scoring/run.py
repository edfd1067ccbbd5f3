"""Begins a scoring run: takes its lock, starts Spark, finds its inputs; steps.py does the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from gaixie.jobs.corpus.input import Input
from gaixie.jobs.corpus.inspection import SMALL_BYTES, find_input, inspect_inputs
from gaixie.jobs.corpus.publish import held, read_runs
from gaixie.jobs.corpus.session import begin_session
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, RunManifest
from gaixie.udfs.storage.storage import File

Seen = tuple[str, int, str, str]
"""A file's URI, bytes and time, and how it was read."""


def score_corpus(
    settings: ScoreSettings,
    limit: int | None = None,
    resume: bool = False,
    take_over: bool = False,
    dry_run: bool = False,
) -> None:
    """Scores the inputs of the settings into one run, and publishes it.

    limit: maximum number of rows; resume: keep the finished units of a killed run; take_over: take
    the run from a process on another host; dry_run: only show what would be done. Raises UserError
    for a mistake of the user's.
    """
    output = str(settings.output)
    run_id = settings.run_id or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = storage.join(output, "runs", run_id)
    found = [find_input(source) for source in settings.inputs]
    with nullcontext() if dry_run else held(folder, take_over) as lock:
        if lock and _is_published(folder, resume):
            return
        uris = [folder, *(source.path for source in settings.inputs)]
        small = sum(file.size for source in found for file in source.files) < SMALL_BYTES
        with begin_session("gaixie score_corpus", uris, small) as wait:
            from gaixie.jobs.scoring import steps, units  # takes a second, while Java starts

            metric, signature = steps.load_metric(settings)
            spark = wait()
        runs = read_runs(output, cleaned=True) if settings.new_only else []
        runs = [run for run in runs if run.signature == signature]
        wanted = unseen_by(runs, settings) if settings.new_only else None
        inputs = inspect_inputs(spark, found, wanted)
        if not any(source.files for source in inputs):
            print(f"nothing new to score: run '{run_id}' was not created")
            return
        check_lock = lock.check if lock else lambda: None
        given = metric, signature, inputs, run_id, folder, limit
        job = units.Job(spark, settings, *given, check_lock)
        if dry_run:
            steps.dry_run(job)
        else:
            steps.score_inputs(job, resume, [run.run_id for run in runs])


def _is_published(folder: str, resume: bool) -> bool:
    """Tells whether the run is published. Raises UserError if it is not to be resumed."""
    if not storage.exists(storage.join(folder, MANIFEST)):
        return False
    run_id = folder.rpartition("/")[2]
    if not resume:
        raise UserError(f"{folder}: run '{run_id}' is published; use another --run-id")
    print(f"run '{run_id}' is already published: nothing to do ({folder})")
    return True


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
