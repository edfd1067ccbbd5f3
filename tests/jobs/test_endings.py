"""However a run ends, it must give one clear line with the reason and leave no process."""

import os
import signal
import subprocess
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


def java_of(process) -> list[psutil.Process]:
    """Returns Java; some descendants may end while they are listed."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "java" in child.name():
                found.append(child)
    return found


def last_words(process) -> str:
    """Returns standard error of a process about to end; if it hangs, with all threads' stacks."""
    try:
        return process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        return process.communicate()[1]


def assert_nothing_left(group: int) -> None:
    wait_for(lambda: not processes_of(group), "the end of all processes")


def test_terminated_while_java_starts(launch, folder, tmp_path):
    process = launch(tmp_path / "out", *given(folder), env={"PYTHONFAULTHANDLER": "1"})
    wait_for(lambda: java_of(process), "Java", process)
    os.killpg(process.pid, signal.SIGTERM)
    err = last_words(process)
    line = "score_corpus: terminated; the run can be resumed with --resume\n"
    assert (process.returncode, err) == (143, line)
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
