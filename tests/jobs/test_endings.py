"""However a run ends, it must give one clear line with the reason and leave no process."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from servers import wait_for

from gaixie.jobs import score_corpus

PATIENCE = 120
pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def process(launch, grow, model, tmp_path):
    """Starts a run of three files, each a unit."""
    (tmp_path / "pairs").mkdir()
    for k in range(3):
        pq.write_table(grow(300, 300 * k), tmp_path / f"pairs/{k}.parquet")
    given = ("--input", tmp_path / "pairs", "--origin-column", "origin", "--unit-mb", "0.01")
    given += ("--output", tmp_path / "out", "--run-id", "r", "--model", model)
    return launch("score_corpus.py", *given)


def java_of(process) -> list[psutil.Process]:
    """Returns Java; some descendants may end while they are listed."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "java" in child.name():
                found.append(child)
    return found


def alive(group: int) -> bool:
    """Tells whether a process of the group is left."""
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
    return False


def test_terminated_while_java_starts(process):
    wait_for(lambda: java_of(process), "Java", process)
    os.killpg(process.pid, signal.SIGTERM)
    _, error = process.communicate(timeout=PATIENCE)
    line = f"score_corpus: terminated; {score_corpus.INTERRUPTED}\n"
    assert (process.returncode, error) == (143, line)
    wait_for(lambda: not alive(process.pid), "the end of all processes")


def test_java_is_killed(process):
    for line in process.stderr:
        if line.startswith("scoring unit 1 of 3: done"):
            break
    (java,) = java_of(process)
    java.kill()
    _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    lines = error.splitlines()
    assert len(lines) < 10
    assert lines[-1].startswith("score_corpus: error: Java has ended (")
    assert f"; {score_corpus.INTERRUPTED}; the full traceback is in " in lines[-1]
    log = Path(lines[-1].rpartition(" ")[2])
    assert "Traceback" in log.read_text()
    log.unlink()
    wait_for(lambda: not alive(process.pid), "the end of all processes")
