"""However a run ends, it must give one clear line with the reason and leave no process."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from servers import processes_of, wait_for

PATIENCE = 120
pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def folder(grow, tmp_path):
    """Writes three files, which are three units under --unit-mb 0.01."""
    import pyarrow.parquet as pq

    (tmp_path / "pairs").mkdir()
    for k in range(3):
        pq.write_table(grow(900).slice(300 * k, 300), tmp_path / f"pairs/{k}.parquet")
    return tmp_path / "pairs"


def given(folder: Path) -> tuple:
    return ("--input", folder, "--origin-column", "origin", "--unit-mb", "0.01")


def descendants(process, name: str) -> list[psutil.Process]:
    """Returns descendants whose name contains ``name``; some may end while they are listed."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if name in child.name():
                found.append(child)
    return found


def java_of(process) -> list[psutil.Process]:
    return descendants(process, "java")


def last_words(process) -> str:
    """Returns standard error of a process about to end; if it hangs, with all threads' stacks."""
    try:
        return process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        return process.communicate()[1]


def assert_nothing_left(group: int) -> None:
    wait_for(lambda: not processes_of(group), "the end of all processes")


@pytest.mark.parametrize(("how", "after"), [(signal.SIGINT, 0.0), (signal.SIGTERM, 1.5)])
def test_interrupted_while_java_starts(launch, folder, tmp_path, how, after):
    process = launch(tmp_path / "out", *given(folder), env={"PYTHONFAULTHANDLER": "1"})
    wait_for(lambda: java_of(process), "Java", process)
    time.sleep(after)  # any moment of Java's start will do
    os.killpg(process.pid, how)
    err = last_words(process)
    what = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}[how]
    line = f"score_corpus: {what[1]}; the run can be resumed with --resume\n"
    assert (process.returncode, err) == (what[0], line)
    assert_nothing_left(process.pid)


def test_java_is_killed(launch, folder, tmp_path):
    process = launch(tmp_path / "out", *given(folder))
    for line in process.stderr:
        if line.startswith("scoring unit 1 of 3: done"):
            break
    (java,) = java_of(process)
    java.kill()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    lines = err.splitlines()
    assert len(lines) < 10
    assert lines[-1].startswith("score_corpus: error: Java has ended (")
    assert "; the run can be resumed with --resume; the full traceback is in " in lines[-1]
    log = Path(lines[-1].rpartition(" ")[2])
    assert "Traceback" in log.read_text()
    log.unlink()
    assert_nothing_left(process.pid)


def test_a_killed_python_worker_is_replaced(launch, folder, tmp_path):
    process = launch(tmp_path / "out", *given(folder))
    for line in process.stderr:
        if line.startswith("scoring unit 1 of 3: done"):
            break
    # kills Spark's daemon, which forks the workers, and the workers; the driver is their ancestor
    for worker in descendants(process, "python"):
        with suppress(psutil.NoSuchProcess):
            worker.kill()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert (tmp_path / "out/runs/r/manifest.json").exists()
    assert len(err.splitlines()) < 10
