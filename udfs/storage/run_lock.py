"""A run's lock: of all the processes that want one run, on any host, one has it at a time.

  FOLDER/_lock/000001.json    who has it: host, process, since when; written anew every few seconds

Whoever takes over from a dead process creates the next number, which storage.create grants to one
alone, and who finds a higher number than its own has lost. No two processes write one file, and age
is told by the store's own clock, so neither clocks that differ nor a process that wakes up late can
give one run to two.
"""

from __future__ import annotations

import json
import os
import platform
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Protocol

from fsspec.implementations.local import LocalFileSystem

from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage

NAME = "_lock"
"""Hidden from readers of folders by its first character."""

BEAT_SECONDS = 10.0
SILENT_SECONDS = 90.0
"""A lock that was not written for so long is a dead process's."""


class Files(Protocol):
    """What a lock calls of gaixie.udfs.storage.storage, or of what does the same for another store."""

    def list_files(self, uri: str, /) -> list[storage.File]: ...
    def read_bytes(self, uri: str, /) -> bytes: ...
    def write(self, uri: str, content: str | bytes, /) -> None: ...
    def create(self, uri: str, content: str | bytes, /) -> None: ...
    def delete(self, uri: str, /) -> None: ...


class Locked(Exception):
    """Another process has the run: one line that names it."""


@dataclass(frozen=True)
class Holder:
    """Who has a lock."""

    host: str
    process: int
    since: str
    """ISO 8601 in UTC."""
    machine: str
    """Of the host, while it is up, and the part of it whose process numbers are one's own."""
    started: str
    """When the process began, in the machine's own units: a number may be given out again."""

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, at work since {self.since}"

    @property
    def is_here(self) -> bool:
        """Whether this process can see if that one is alive."""
        return self.machine == _machine()

    @property
    def is_alive(self) -> bool:
        """Of a holder on this machine."""
        if Path("/proc/self/stat").exists():
            return _started(self.process) == self.started
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class RunLock:
    """The lock of a run's folder, held inside a with block by a thread that gives signs of life.

    take_over: take it from a process on another host without waiting whether that one is alive.
    files: what reads and writes where the folder lies.
    Entering raises Locked where another process is at work, and OSErrors of gaixie.udfs.storage.storage.
    A process that is gone, or silent, is named on standard error, and its lock taken. Leaving removes
    the lock and the empty folders that it made; where the lock was lost, whatever the block raised
    becomes Locked.
    """

    def __init__(
        self,
        folder: str,
        take_over: bool = False,
        beat_seconds: float = BEAT_SECONDS,
        silent_seconds: float = SILENT_SECONDS,
        files: Files = storage,
    ):
        self._files = files
        self._run, self._folder = folder, storage.join(folder, NAME)
        self._take_over = take_over
        self._beat_seconds, self._silent_seconds = beat_seconds, silent_seconds
        self._number = 0
        self._made: list[Path] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._loss: Locked | None = None
        self.on_lost: Callable[[], object] = lambda: None
        """Called from the thread that finds the lock taken by another process."""

    def __enter__(self) -> RunLock:
        system, path = storage.filesystem(self._folder) if self._files is storage else (None, "")
        if isinstance(system, LocalFileSystem):
            own, run, *above = Path(path), *Path(path).parents
            self._made = [own, run, *(folder for folder in above if not folder.exists())]
        try:
            self._acquire()
        except BaseException:
            self._remove_folders()
            raise
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(OSError):
            locks = self._locks()
            for number in locks:
                if number <= self._number:
                    self._files.delete(self._file(number))
            self._remove_folders()
        if self._loss and error is not None and not isinstance(error, Locked):
            raise self._loss from error

    def check(self) -> None:
        """Raises Locked where the lock is no longer this process's: before whatever cannot be undone."""
        if self._loss is None and max(self._locks(), default=0) != self._number:
            self._loss = self._taken()
        if self._loss:
            raise self._loss

    def _acquire(self) -> None:
        for _ in range(100):  # each time another process was faster
            locks = self._locks()
            top = max(locks, default=0)
            if top:
                self._see_it_dead(top, locks[top])
            here = Holder(
                host=platform.node(),
                process=os.getpid(),
                since=datetime.now(UTC).isoformat(timespec="seconds"),
                machine=_machine(),
                started=_started(os.getpid()),
            )
            self._content = storage.to_json(asdict(here))
            try:
                self._files.create(self._file(top + 1), self._content)
            except FileExistsError:
                continue
            locks = self._locks()
            if max(locks, default=0) == top + 1:
                self._number = top + 1
                for number in locks:
                    if number < self._number:
                        self._files.delete(self._file(number))
                return
            self._files.delete(self._file(top + 1))  # the lock it followed was followed before
        raise Locked(f"{self._run}: too many processes want this run")

    def _see_it_dead(self, number: int, file: storage.File) -> None:
        """Returns once the process that has a lock is known to be gone; raises Locked where it is not."""
        holder = self._holder(number)
        name = holder or "a process that left no name"
        if holder and holder.is_here:
            if holder.is_alive:
                raise Locked(f"{self._run}: {holder}; wait for it, or stop it first")
            return self._say(f"{name}, is gone: this process takes over")
        if self._take_over:
            return self._say(f"taken over from {name}")
        left = self._silent_seconds - self._age(file)
        if left > 0:
            self._say(
                f"{name}: waiting up to {left:.0f} s for a sign of life (--take-over: do not)"
            )
        end = time.monotonic() + left
        while (rest := end - time.monotonic()) > 0:
            time.sleep(min(self._beat_seconds / 2, rest))
            now = self._locks().get(number)
            if now is None:
                return None  # it has ended
            if now.modified != file.modified:
                raise Locked(
                    f"{self._run}: {name}; wait for it, or give --take-over where it must not go on"
                )
        return self._say(f"{name}, gave no sign of life: this process takes over")

    def _beat(self) -> None:
        while not self._ended.wait(self._beat_seconds):
            with suppress(OSError):  # a store that is down is asked again
                if max(self._locks(), default=0) != self._number:
                    self._loss = self._taken()
                    self.on_lost()
                    return
                self._files.write(self._file(self._number), self._content)

    def _locks(self) -> dict[int, storage.File]:
        """Files of the lock by number; the highest is in force."""
        found = {}
        for file in self._files.list_files(self._folder):
            if match := re.search(r"/(\d+)\.json$", file.uri):
                found[int(match[1])] = file
        return found

    def _file(self, number: int) -> str:
        return storage.join(self._folder, f"{number:06d}.json")

    def _holder(self, number: int) -> Holder | None:
        with suppress(OSError, ValueError, TypeError):
            return Holder(**json.loads(self._files.read_bytes(self._file(number))))
        return None

    def _age(self, file: storage.File) -> float:
        """Seconds since a file was written, by the clock of the store, whatever this host's says."""
        probe = storage.join(self._folder, f"clock-{token_hex(4)}")
        self._files.write(probe, b"")
        try:
            [now] = self._files.list_files(probe)
        finally:
            self._files.delete(probe)
        return (now.modified - file.modified).total_seconds()

    def _taken(self) -> Locked:
        with suppress(OSError):
            if holder := self._holder(max(self._locks(), default=0)):
                return Locked(f"{self._run}: was taken over by {holder}; this process has stopped")
        return Locked(f"{self._run}: the lock of this run is gone; this process has stopped")

    def _say(self, text: str) -> None:
        say(f"{self._run}: {text}")

    def _remove_folders(self) -> None:
        with suppress(OSError):  # up to the first that holds something
            for folder in self._made:
                folder.rmdir()


def _machine() -> str:
    """Differs between hosts, between two starts of a host, and between containers of it."""
    boot = _read("/proc/sys/kernel/random/boot_id").strip()
    numbers = ""
    with suppress(OSError):
        numbers = os.readlink("/proc/self/ns/pid")
    return " ".join(filter(None, (platform.node(), boot, numbers)))


def _started(process: int) -> str:
    """When a process began; empty where there is none (or nothing that says so)."""
    values = _read(f"/proc/{process}/stat").rpartition(")")[2].split()
    return values[19] if values and values[0] not in "ZX" else ""  # dead, and not yet waited for


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
