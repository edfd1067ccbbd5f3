"""udfs/storage/run_lock.py: of many processes one has a run, on a file system and in a store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import pytest

from gaixie.udfs.storage import run_lock, storage
from gaixie.udfs.storage.run_lock import Holder, Locked, RunLock

FOREVER = {"beat_seconds": 0.01, "silent_seconds": 600}


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def run(request, tmp_path, monkeypatch) -> str:
    """A run's folder that is not there yet."""
    if request.param == "local":
        return f"{tmp_path}/out/runs/r"
    store = request.getfixturevalue("store")
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    return f"s3://{store.BUCKET}/lock/{tmp_path.name}/runs/r"


def holder(**changes) -> Holder:
    here = Holder(
        host="a-host",
        process=os.getpid(),
        since="2025-01-01T00:00:00+00:00",
        machine=run_lock._machine(),
        started=run_lock._started(os.getpid()),
    )
    return replace(here, **changes)


def leave_lock(run: str, left: Holder, number: int = 1) -> str:
    """The lock of a process that did not come to its end; its URI."""
    uri = f"{run}/_lock/{number:06d}.json"
    storage.write(uri, json.dumps(asdict(left)))
    return uri


def files(run: str) -> list[str]:
    return [file.uri.removeprefix(f"{run}/") for file in storage.list_files(run)]


def test_held_inside_the_block_alone(run, tmp_path):
    with RunLock(run) as lock:
        lock.check()
        assert files(run) == ["_lock/000001.json"]
        written = storage.read_json(f"{run}/_lock/000001.json")
        assert written["process"] == os.getpid()
        assert {"host", "since"} <= {*written}
        with pytest.raises(Locked, match=rf"^{run}: process {os.getpid()} on \S+, at work since"):
            RunLock(run).__enter__()
        lock.check()
    assert files(run) == []
    assert not (tmp_path / "out").exists()  # nor the folders that it made
    with pytest.raises(KeyboardInterrupt), RunLock(run):
        raise KeyboardInterrupt
    assert files(run) == []


def test_one_of_many_gets_it(run):
    """Also behind a lock that was left: all see it dead, one takes over."""
    leave_lock(run, holder(started="1"))
    ready, done = threading.Barrier(6), threading.Barrier(6)

    def attempt(number: int) -> bool:
        ready.wait()
        try:
            lock = RunLock(run).__enter__()
        except Locked:
            done.wait()
            return False
        done.wait()
        lock.check()
        lock.__exit__(None, None, None)
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(attempt, range(6))) == 1
    assert files(run) == []


def test_a_dead_process_of_this_host_is_named_and_followed(run, capsys):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    left = holder(process=process.pid, started=run_lock._started(process.pid))
    leave_lock(run, left)
    with pytest.raises(Locked, match="stop it first"):
        RunLock(run, take_over=True).__enter__()
    process.kill()
    process.communicate()
    with RunLock(run):
        assert files(run) == ["_lock/000002.json"]
    assert capsys.readouterr().err == (
        f"{run}: process {process.pid} on a-host, at work since 2025-01-01T00:00:00+00:00, is gone: "
        "this process takes over\n"
    )


def test_a_process_number_that_was_given_out_again(run):
    """A container's first process has number 1 each time."""
    leave_lock(run, holder(started="1"))
    with RunLock(run) as lock:
        lock.check()


def test_another_host_is_watched_until_it_is_silent_for_long(run, capsys):
    leave_lock(run, holder(machine="another", host="far"))
    # A store dates its objects in whole seconds: less than two might be over at the first look.
    with RunLock(run, beat_seconds=0.1, silent_seconds=3) as lock:
        lock.check()
    first, second = capsys.readouterr().err.splitlines()
    assert "for a sign of life (--take-over: do not)" in first
    assert second.startswith(f"{run}: process {os.getpid()} on far, at work since 2025")
    assert second.endswith("gave no sign of life: this process takes over")


def test_an_old_lock_of_another_host_is_followed_at_once(tmp_path, capsys):
    uri = leave_lock(str(tmp_path), holder(machine="another"))
    os.utime(uri, (1e9, 1e9))
    with RunLock(str(tmp_path)) as lock:
        lock.check()
    assert "waiting" not in capsys.readouterr().err


def test_a_sign_of_life_from_another_host(run, monkeypatch):
    with RunLock(run, **FOREVER) as lock:
        monkeypatch.setattr(Holder, "is_here", False)
        with pytest.raises(Locked, match="give --take-over where it must not go on"):
            RunLock(run, **FOREVER).__enter__()
        lock.check()


def test_whoever_loses_it_stops(run, monkeypatch):
    lost = threading.Event()
    lock = RunLock(run, **FOREVER).__enter__()
    lock.on_lost = lost.set
    monkeypatch.setattr(Holder, "is_here", False)
    by_whom = rf"{run}: was taken over by process {os.getpid()} on"
    with RunLock(run, take_over=True) as other:
        assert lost.wait(60)
        with pytest.raises(Locked, match=by_whom):
            lock.check()
        other.check()
    error = RuntimeError("as Spark raises once its jobs are cancelled")
    with pytest.raises(Locked, match=by_whom):
        lock.__exit__(RuntimeError, error, None)
    assert files(run) == []


def test_a_folder_that_goes_takes_the_lock_along(run):
    with RunLock(run) as lock:
        storage.delete(run)
        with pytest.raises(Locked, match="the lock of this run is gone"):
            lock.check()
