"""Runs one scoring run, from its lock to its manifest."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime

from gaixie.jobs.corpus.early import SMALL_BYTES, local_bytes
from gaixie.jobs.corpus.publish import held, needs_spark
from gaixie.jobs.corpus.session import begin_session
from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME


def score_corpus(settings: ScoreSettings, args: Namespace) -> int:
    """Scores the inputs of the settings, publishes the run, and returns the exit code.

    args: the options of jobs/score_corpus.py that are no settings.
    """
    assert settings.output is not None
    run_id = settings.run_id or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = f"{settings.output.rstrip('/')}/runs/{run_id}"
    with ExitStack() as stack:
        lock = None
        if not (args.dry_run or needs_spark(folder)):
            lock = stack.enter_context(held(folder, args.take_over))
            if _published(storage.exists, folder, run_id, args.resume):
                return 0
        uris = [folder, *(source.path for source in settings.inputs)]
        small = local_bytes(settings.inputs) < SMALL_BYTES
        with begin_session("gaixie score_corpus", uris, small) as wait_for_session:
            # While Java starts.
            from gaixie.jobs.corpus.inputs import inspect_inputs
            from gaixie.jobs.corpus.storage import Storage
            from gaixie.jobs.scoring.pipeline import ScoreCorpus, load_scorer

            scorer = load_scorer(settings)
            spark = wait_for_session()
        files = Storage(spark)
        if lock is None and not args.dry_run:
            lock = stack.enter_context(held(folder, args.take_over, files))
            if _published(files.exists, folder, run_id, args.resume):
                return 0
        inputs = inspect_inputs(spark, files, settings.inputs, settings.on_corrupt_file)
        job = ScoreCorpus(spark, files, settings, scorer, inputs, run_id, folder, args.limit)
        if lock is None:
            from gaixie.jobs.scoring import dry_run as plan

            plan.dry_run(job, args.cores, args.pairs)
            return 0
        job.check_lock = lock.check
        job.start(args.resume)
        job.score_chunks()
        stages = job.find_stages()
        job.write_tables(stages)
        job.publish(stages)
    return 0


def _published(exists: Callable[[str], bool], folder: str, run_id: str, resume: bool) -> bool:
    """Says whether nothing is left to do. Raises JobError if another run has the name."""
    if not exists(f"{folder}/{NAME}"):
        return False
    if not resume:
        raise JobError(f"{folder}: run '{run_id}' is published; take another --run-id")
    print(f"run '{run_id}' is already published: nothing to do ({folder})")
    return True
