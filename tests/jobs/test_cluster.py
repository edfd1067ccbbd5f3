"""On a standalone cluster, the job must give local mode's rows, whatever dies on the way."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from scored_runs import Run
from servers import PATIENCE, event_log, executors_lost, wait_for


@pytest.fixture(scope="module")
def given(in_four_units) -> tuple:
    return ("--input", in_four_units, "--origin-column", "origin", "--unit-mb", "0.001")


@pytest.fixture(scope="module")
def submit(spark_submit, launch):
    """Returns a function that starts the job with spark-submit on the cluster."""

    def start(output: Path, *given, conf: dict[str, str] | None = None) -> subprocess.Popen:
        return launch(output, *given, command=spark_submit(conf))

    return start


def same_run(folder: Path, local: Run) -> None:
    run = Run(0, "", "", folder)
    files = [folder / file["path"] for file in run.manifest["files"]["scored"]]
    assert sorted(files) == run.files("scored")
    assert len(run.scored) == 3600
    pd.testing.assert_frame_equal(run.scored, local.scored, check_exact=True)
    for key in ("rows", "stages", "quarantine", "cuts", "quantiles", "signature"):
        assert run.manifest[key] == local.manifest[key]


def in_unit(output: Path, unit: int) -> Callable[[], bool]:
    """Returns a function that says whether a task of this unit has begun to write."""
    folder = output / "runs" / "r" / "_work" / f"unit-{unit:05d}"
    return lambda: any(folder.rglob("*.parquet"))


def test_workers_and_the_driver_die(cluster, submit, score, given, local, tmp_path):
    """The job must survive the deaths of a worker while scoring, of the driver, and, resumed, of a
    worker with its shuffle files while tables are written.

    Local mode must also finish what the driver left, starting over.
    """
    events = tmp_path / "events"
    events.mkdir()
    process = submit(tmp_path, *given, conf=event_log(events))
    wait_for(in_unit(tmp_path, 1), "the second unit", process)
    assert cluster.kill_worker() >= 3  # the worker, its executor and Python
    assert not (tmp_path / "runs" / "r" / "_work" / "unit-00002.json").exists()
    assert process.poll() is None
    cluster.add_worker()

    wait_for(in_unit(tmp_path, 2), "the third unit", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    lost = executors_lost(events)
    assert lost >= 1
    folder = tmp_path / "runs" / "r"
    assert not (folder / "manifest.json").exists()
    assert {path.name for path in folder.iterdir()} == {"_work", "_lock"}  # hidden from readers
    finished = len(list((folder / "_work").glob("unit-*.json")))
    assert 2 <= finished < 4
    copy = tmp_path / "copy" / "runs" / "r"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("_temporary"))

    process = submit(tmp_path, *given, "--resume", conf=event_log(events))
    wait_for((folder / "scored" / "_temporary").exists, "the tables", process)
    assert cluster.kill_worker() >= 2
    assert process.poll() is None
    stdout, stderr = process.communicate(timeout=PATIENCE)
    cluster.add_worker()
    assert process.returncode == 0, stdout + stderr
    assert executors_lost(events) > lost
    assert (stdout + stderr).count("already done") == finished
    same_run(folder, local)

    run = score(tmp_path / "copy", *given)
    assert run.code == 0, run.stderr
    assert "already done" not in run.stderr
    same_run(copy, local)


def test_no_file_is_at_fault_where_executors_are_killed(cluster, submit, given, local, tmp_path):
    """Lost executors must not blame a file: the job fails, and the next start resumes.

    Each task is tried only once here.
    """
    process = submit(tmp_path, *given, conf={"spark.task.maxFailures": "1"})
    wait_for(in_unit(tmp_path, 1), "the second unit", process)
    assert cluster.kill_executors() >= 2
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, stderr
    assert "score_corpus: error: an executor was lost (" in stderr.splitlines()[-1]
    process = submit(tmp_path, *given, "--resume")
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, stderr
    assert "already done" in stderr
    same_run(tmp_path / "runs" / "r", local)
