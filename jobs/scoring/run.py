"""Begins a scoring run: takes its lock, starts Spark, finds the inputs. steps.py does the rest."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, datetime

from gaixie.jobs.corpus.inspection import SMALL_BYTES, find_input, inspect_inputs
from gaixie.jobs.corpus.publish import held, read_runs
from gaixie.jobs.corpus.session import begin_session
from gaixie.jobs.scoring.new_only import unseen_by
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, read_run


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
        if lock and _is_published(folder, settings, resume):
            return
        uris = [folder, *(source.path for source in settings.inputs)]
        small = sum(file.size for source in found for file in source.files) < SMALL_BYTES
        with begin_session("gaixie score_corpus", uris, small) as wait:
            from gaixie.jobs.scoring import steps  # takes a second, while Java starts

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
        job = steps.Job(spark, settings, *given, check_lock)
        if dry_run:
            steps.dry_run(job)
        else:
            steps.score_inputs(job, resume, [run.run_id for run in runs])


def _is_published(folder: str, settings: ScoreSettings, resume: bool) -> bool:
    """Tells whether the run is published. Raises UserError if it is not to be resumed."""
    if not storage.exists(storage.join(folder, MANIFEST)):
        return False
    run_id = folder.rpartition("/")[2]
    if not resume:
        raise UserError(f"{folder}: run '{run_id}' is published; use another --run-id")
    print(f"run '{run_id}' is already published: nothing to do ({folder})")
    then, now = read_run(folder).settings, json.loads(settings.model_dump_json())
    # Other versions may lack a setting.
    shared = (now.keys() & then.keys()) - {"output", "run_id"}
    if other := sorted(name for name in shared if then[name] != now[name]):
        names = ", ".join(other)
        print(f"these settings differ from the run's: {names}; use another --run-id for them")
    return True
