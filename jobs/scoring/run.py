"""Performs one scoring run, from its lock to its manifest."""

from __future__ import annotations

import json
from argparse import Namespace
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from gaixie.jobs.corpus.early import SMALL_BYTES, local_bytes
from gaixie.jobs.corpus.publish import RunLock, held, needs_spark, read_runs
from gaixie.jobs.corpus.session import begin_session, cores, start_session
from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, RunManifest, read_run

if TYPE_CHECKING:
    from gaixie.jobs.corpus.inputs import InputFiles
    from gaixie.jobs.scoring.ledger import Ledger


def score_corpus(settings: ScoreSettings, args: Namespace) -> int:
    """Scores the inputs of the settings, publishes the run, and returns the exit code.

    args: the options of jobs/score_corpus.py that are not settings.
    """
    assert settings.output is not None
    run_id = settings.run_id or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = f"{settings.output.rstrip('/')}/runs/{run_id}"
    with ExitStack() as stack:
        lock = None
        if not (args.dry_run or needs_spark(folder)):
            lock = stack.enter_context(held(folder, args.take_over))
            if manifest := _published(storage, settings, folder, args.resume):
                return _finish(settings, args, folder, manifest, lock) if settings.table else 0
        uris = [folder, *(source.path for source in settings.inputs)]
        small = not settings.rescore and local_bytes(settings.inputs) < SMALL_BYTES
        with begin_session("gaixie score_corpus", uris, small, bool(settings.table)) as wait:
            # This runs while Java starts.
            from gaixie.jobs.corpus.iceberg import IcebergTable
            from gaixie.jobs.corpus.storage import Storage
            from gaixie.jobs.scoring.drift import baseline
            from gaixie.jobs.scoring.ledger import Ledger
            from gaixie.jobs.scoring.metrics import exposition, push
            from gaixie.jobs.scoring.pipeline import ScoreCorpus, load_scorer

            scorer = load_scorer(settings)
            spark = wait()
        files = Storage(spark)
        table = IcebergTable(spark, settings.table) if settings.table else None
        if lock is None and not args.dry_run:
            lock = stack.enter_context(held(folder, args.take_over, files))
            if manifest := _published(files, settings, folder, args.resume):
                return _finish(settings, args, folder, manifest, lock) if table else 0
        runs = _earlier(settings, args, files if needs_spark(folder) else storage)
        before = baseline(runs, scorer.signature, args.fail_on_drift)
        ledger = Ledger(settings, scorer.signature, runs)
        inputs = _inputs(spark, files, settings, ledger)
        if not any(source.files for source in inputs):
            print(f"nothing new to score: run '{run_id}' was not created")
            return 0
        extra = (column for source in inputs for column in source.extra_columns)
        change = table.check(run_id, extra) if table else ""
        job = ScoreCorpus(
            spark, files, settings, scorer, inputs, run_id, folder, args.limit, ledger, before
        )
        if lock is None:
            from gaixie.jobs.scoring.dry_run import Cluster, dry_run

            available = args.cores or cores(spark)
            of = Cluster(available, args.pairs, args.pairs_per_second, args.core_hour_price)
            dry_run(job, of, change)
            return 0
        job.check_lock = lock.check
        manifest = job.run(args.resume)
        if args.push_metrics:
            push(args.push_metrics, exposition(manifest))
        return _finish(settings, args, folder, manifest, lock)


def _earlier(settings: ScoreSettings, args: Namespace, files: Any) -> list[RunManifest]:
    """Reads the manifests of earlier runs, if the run is compared with them."""
    assert settings.output is not None
    needed = settings.new_only or settings.rescore or args.fail_on_drift is not None
    return read_runs(settings.output, files, cleaned=not settings.rescore) if needed else []


def _inputs(
    spark: SparkSession, files: Any, settings: ScoreSettings, ledger: Ledger
) -> list[InputFiles]:
    """Finds the inputs to score."""
    from gaixie.jobs.corpus.inputs import inspect_inputs
    from gaixie.jobs.scoring.rescoring import scored_pairs

    if not settings.rescore:
        wanted = ledger.is_new if settings.new_only or settings.since else None
        return inspect_inputs(spark, files, settings.inputs, settings.on_corrupt_file, wanted)
    return scored_pairs(spark, files, str(settings.output), ledger.rescored)


def _finish(
    settings: ScoreSettings, args: Namespace, folder: str, manifest: RunManifest, lock: RunLock
) -> int:
    """Adds a published run to the table, if there is one, and returns the exit code.

    If drift is to fail, a run that has drifted does not go into the table.
    """
    from gaixie.jobs.corpus.iceberg import IcebergTable
    from gaixie.jobs.scoring.drift import DRIFTED

    drifted = bool(manifest.drift and manifest.drift.shifted and args.fail_on_drift is not None)
    if settings.table and drifted:
        print(
            f"table {settings.table}: run '{manifest.run_id}' has drifted and was not added; "
            "--resume without --fail-on-drift adds it"
        )
    elif settings.table:
        spark = SparkSession.getActiveSession()
        spark = spark or start_session("gaixie score_corpus", [folder], table=True)
        IcebergTable(spark, settings.table).add(manifest, folder, lock.check)
    return DRIFTED if drifted else 0


def _published(
    files: Any, settings: ScoreSettings, folder: str, resume: bool
) -> RunManifest | None:
    """Returns the manifest of a published run. Raises JobError if another run has the name."""
    if not files.exists(f"{folder}/{NAME}"):
        return None
    run_id = folder.rpartition("/")[2]
    if not resume:
        raise JobError(f"{folder}: run '{run_id}' is published; use another --run-id")
    print(f"run '{run_id}' is already published: nothing to do ({folder})")
    manifest = read_run(folder, files)
    then = manifest.settings
    now = json.loads(json.dumps(settings.model_dump(by_alias=True)))
    # Older versions may lack a setting.
    same = {"output", "run_id", "table"} | (now.keys() - then.keys())
    if other := [name for name in now if name not in same and then[name] != now[name]]:
        names = ", ".join(other)
        print(f"these settings differ from the run's: {names}; use another --run-id for them")
    return manifest
