"""Holds the locks of runs, and reads the runs that are published.

A folder exists for readers once it has a manifest, which is written last. Releases need no lock:
each writes to its own folder, and storage.create lets only one create the manifest. A resumed run
writes to the folder of the killed one, so only one process may hold a run at a time:

  FOLDER/_lock/000001.json    the process that holds the run: host, number, since when

A process that takes over from a dead one creates the next number; a store lets only one process
create it. A process that finds another's token in the newest lock stops before it deletes or
publishes.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gaixie.jobs.corpus.files import local_path
from gaixie.udfs.command_line import UserError, as_user_error, say
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, RUN_ID, ManifestError, RunManifest, read_run

LOCK = "_lock"

CLEANED = "cleaned.json"
"""Manifest of a run whose data was deleted for its age, under a name that readers ignore. It still
says which files were scored."""


def now(timespec: str = "seconds") -> str:
    """Returns the current UTC time in the format of manifests."""
    return datetime.now(UTC).isoformat(timespec=timespec)


def check_root(root: str) -> None:
    """Raises UserError if there is nothing under a root."""
    if not storage.children(root):
        raise UserError(f"{root}: no such folder, or nothing in it")


def read_runs(root: str, cleaned: bool = False) -> list[RunManifest]:
    """Reads the manifests of the published runs under a root, oldest first.

    cleaned: whether to include runs of which only the manifest is left. Raises UserError for a
    manifest that cannot be read.
    """
    runs = storage.join(root, "runs")

    def read(run_id: str) -> RunManifest | None:
        for name in (MANIFEST, CLEANED) if cleaned else (MANIFEST,):
            if storage.exists(storage.join(runs, run_id, name)):
                manifest = read_run(storage.join(runs, run_id), name)
                return manifest.model_copy(update={"run_id": run_id})  # may be a copied folder
        return None

    with as_user_error(OSError, ManifestError), ThreadPoolExecutor(16) as pool:
        names = filter(RUN_ID.fullmatch, storage.children(runs))
        found = [manifest for manifest in pool.map(read, names) if manifest]
    return sorted(found, key=lambda manifest: (manifest.created, manifest.run_id))


class RunLock:
    """The lock of a run's folder; see run_locked."""

    def __init__(self, folder: str):
        self._run, self._folder = folder, storage.join(folder, LOCK)
        self._token, self._file = secrets.token_hex(8), ""

    def acquire(self, take_over: bool) -> None:
        """Takes the lock. Raises UserError if another process holds the run."""
        locks, number = self._locks(), 1
        if locks:
            self._check_gone(*self._holder(locks[-1]), take_over)
            number = int(locks[-1].removesuffix(".json")) + 1
        here = {"host": platform.node(), "process": os.getpid(), "since": now()}
        here |= {"started": _started(os.getpid()), "token": self._token}
        self._file = storage.join(self._folder, f"{number:06d}.json")
        try:
            storage.create(self._file, storage.to_json(here))
        except FileExistsError:
            raise UserError(f"{self._run}: another process has just taken this run") from None
        for name in locks:
            storage.delete(storage.join(self._folder, name))
        self.check()

    def check(self) -> None:
        """Raises UserError if the lock is another's. Call it before any step that cannot be
        undone."""
        locks = self._locks()
        left, holder = self._holder(locks[-1]) if locks else ({}, "")
        if left.get("token") != self._token:
            who = f"taken over by {holder}" if locks else "deleted"
            raise UserError(f"{self._run}: this run was {who}; this process has stopped")

    def release(self) -> None:
        with suppress(OSError, UserError):
            self.check()
            storage.delete(self._file)

    def _check_gone(self, left: dict[str, Any], name: str, take_over: bool) -> None:
        """Raises UserError unless the process that holds a lock is known or said to be gone."""
        here = left.get("host") == platform.node()
        if here and left.get("started") and _started(left["process"]) == left["started"]:
            raise UserError(f"{self._run}: {name}; wait for it, or stop it first")
        if not here and not take_over:
            raise UserError(f"{self._run}: {name}; if that process has ended, give --take-over")
        say(f"{self._run}: taken over from {name}")

    def _holder(self, lock: str) -> tuple[dict[str, Any], str]:
        """Returns the content of a lock, and its process in words."""
        with suppress(FileNotFoundError, ValueError):
            left = json.loads(storage.read_bytes(storage.join(self._folder, lock)))
            return left, "process {process} on {host}, running since {since}".format_map(left)
        return {}, "an unknown process"

    def _locks(self) -> list[str]:
        """Returns the names of the locks, the newest last."""
        names = storage.children(self._folder)
        return [name for name in names if name.removesuffix(".json").isdecimal()]


@contextmanager
def run_locked(folder: str, take_over: bool) -> Iterator[RunLock]:
    """Holds the lock of a run's folder; at the end removes it and the empty folders that it made.

    take_over: take the lock from a process on another host that the user says is gone. Raises
    UserError if another process holds the run, or nothing can be written.
    """
    made: list[Path] = []
    if path := local_path(folder):
        made = [Path(path, LOCK).absolute()]
        made += [above for above in made[0].parents if not above.exists()]
    lock = RunLock(folder)
    try:
        with as_user_error(OSError):
            lock.acquire(take_over)
        yield lock
    finally:
        lock.release()
        with suppress(OSError):  # stops at the first folder that is not empty
            for empty in made:
                empty.rmdir()


def _started(process: int) -> str:
    """Returns when a process of this host started, in ticks since the boot; empty if there is
    none, or it is dead and not yet reaped. A container's processes have the same few numbers each
    time, but not the same start."""
    with suppress(OSError):
        values = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if values[0] in "ZX" else values[19]
    return ""
