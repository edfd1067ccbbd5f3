"""One scoring run, from its lock to its manifest."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.run_lock import held
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.jobs.spark.session import begin_session
from gaixie.udfs.io import storage
from gaixie.udfs.io.manifest import NAME


def score_corpus(
    settings: ScoreSettings, limit: int | None, resume: bool, take_over: bool, dry_run: bool
) -> int:
    """Scores the inputs of the settings, and publishes the run; the job's exit code.

    limit: rows in all. resume: go on with what a killed run left. take_over: its lock too, from
    another host. dry_run: say what would be done, from a sample.
    """
    assert settings.output is not None
    run_id = settings.run_id or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = f"{settings.output.rstrip('/')}/runs/{run_id}"
    with held(folder, take_over, dry_run) as lock:
        if lock and _published(storage.exists, folder, run_id, resume):
            return 0
        uris = [folder, *(source.path for source in settings.inputs)]
        with begin_session("gaixie score_corpus", uris) as wait_for_session:
            # While Java starts.
            from gaixie.jobs.scoring.inputs import inspect_inputs
            from gaixie.jobs.scoring.pipeline import ScoreCorpus, load_scorer
            from gaixie.jobs.spark.storage import Storage

            scorer = load_scorer(settings)
            spark = wait_for_session()
        if lock:
            lock.on_lost = spark.sparkContext.cancelAllJobs
        files = Storage(spark)
        if not (lock or dry_run) and _published(files.exists, folder, run_id, resume):
            return 0
        inputs = inspect_inputs(spark, files, settings.inputs, settings.on_corrupt_file)
        job = ScoreCorpus(spark, files, settings, scorer, inputs, run_id, folder, limit)
        if dry_run:
            job.dry_run()
            return 0
        if lock:
            job.check_lock = lock.check
        job.start(resume)
        job.score_chunks()
        stages = job.find_stages()
        job.write_scored(stages)
        job.write_quarantine()
        job.publish(stages)
    return 0


def _published(exists: Callable[[str], bool], folder: str, run_id: str, resume: bool) -> bool:
    """Whether there is nothing left to do. Raises JobError where another run has the name."""
    if not exists(f"{folder}/{NAME}"):
        return False
    if not resume:
        raise JobError(f"{folder}: run '{run_id}' is published; take another --run-id")
    print(f"run '{run_id}' is already published: nothing to do ({folder})")
    return True
