"""Only one of many processes may hold a run, and the others must not destroy its work."""

import json
import os
import platform
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow.parquet as pq
import pytest

from gaixie.jobs.corpus import runs
from gaixie.jobs.corpus.runs import run_locked
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def run(request, tmp_path, monkeypatch) -> str:
    """Returns the URI of a run's folder that does not exist yet."""
    if request.param == "local":
        return f"{tmp_path}/out/runs/r"
    store = request.getfixturevalue("admin")
    return f"s3a://{store.BUCKET}/lock/{tmp_path.name}/runs/r"


def leave_lock(run: str, number: int = 1, **changes) -> None:
    """Leaves the lock of another process."""
    here = {"host": platform.node(), "process": os.getpid()}
    here["started"] = runs._started(os.getpid())
    left = {"since": "2025-01-01T00:00:00+00:00", "token": "another"} | here | changes
    storage.write(f"{run}/_lock/{number:06d}.json", json.dumps(left))


def files(run: str) -> list[str]:
    return [file.uri.removeprefix(f"{run}/") for file in storage.list_files(run)]


def test_held_inside_the_block_alone(run, tmp_path):
    with suppress(KeyboardInterrupt), run_locked(run, False) as lock:
        refusal = rf"^{run}: process {os.getpid()} on \S+, running since .*stop it first"
        for take_over in (False, True):
            with pytest.raises(UserError, match=refusal):
                run_locked(run, take_over).__enter__()
        lock.check()
        assert files(run) == ["_lock/000001.json"]
        raise KeyboardInterrupt
    assert files(run) == []
    assert not (tmp_path / "out").exists()  # its folders are gone too


def test_one_of_many_gets_it(run):
    """One of six processes must get the run, though all see that the lock's holder is dead."""
    leave_lock(run, started="1")
    ready, done = threading.Barrier(6), threading.Barrier(6)

    def attempt(_: int) -> bool:
        ready.wait()
        try:
            with run_locked(run, False) as lock:
                done.wait()
                lock.check()
                return True
        except UserError:
            done.wait()
            return False

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(attempt, range(6))) == 1
    assert files(run) == []


def test_a_dead_process_of_this_host_is_named_and_followed(run, capsys):
    process = subprocess.Popen(["sleep", "999"])
    leave_lock(run, process=process.pid, started=runs._started(process.pid))
    with pytest.raises(UserError, match="stop it first"):
        run_locked(run, True).__enter__()
    process.kill()
    process.wait()
    with run_locked(run, False):
        assert files(run) == ["_lock/000002.json"]
    assert f"{run}: taken over from process {process.pid} on " in capsys.readouterr().err


def test_another_host_is_believed_dead_where_the_user_says_so(run, capsys):
    leave_lock(run, host="far")
    with pytest.raises(UserError, match=r"on far, .*if that process has ended, give --take-over"):
        run_locked(run, False).__enter__()
    with run_locked(run, True) as lock:
        lock.check()
    assert f"{run}: taken over from process {os.getpid()} on far" in capsys.readouterr().err


def test_whoever_loses_it_stops(run):
    """Numbers begin again at 1 once a process has given the run back, so a number tells nothing."""
    with run_locked(run, False) as lock:
        for number in (1, 2):
            leave_lock(run, number)
            with pytest.raises(UserError, match=rf"was taken over by process {os.getpid()} on"):
                lock.check()
    assert files(run) == ["_lock/000001.json", "_lock/000002.json"]
    storage.delete(run)
    with run_locked(run, False) as lock:
        storage.delete(run)
        with pytest.raises(UserError, match="was deleted"):
            lock.check()


@pytest.mark.spark
def test_a_run_that_lost_its_lock_deletes_and_publishes_nothing(score, grow, tmp_path, monkeypatch):
    pq.write_table(grow(40), tmp_path / "pairs.parquet")
    folder = tmp_path / "runs" / "r"
    write_json = storage.write_json

    def lose_it(path, value):
        """Lets another process take over, publish and end while this one scores."""
        write_json(path, value)
        if path.endswith("unit-00000.json"):
            leave_lock(str(folder), 2)
            (folder / "manifest.json").write_text("another's")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_json", lose_it)
        given = ("--input", tmp_path / "pairs.parquet", "--origin-column", "origin")
        run = score(tmp_path, *given)
    assert run.code == 2
    assert f"error: {folder}: this run was taken over by process " in run.stderr.splitlines()[-1]
    assert (folder / "manifest.json").read_text() == "another's"
    assert (folder / "_work").exists()
    assert not (folder / "scored").exists()
    assert (folder / "_lock" / "000002.json").exists()
