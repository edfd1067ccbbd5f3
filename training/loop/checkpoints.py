"""Saves a run's checkpoints whole or not at all, prunes, finds and mirrors them to a store.

    OUTPUT/checkpoints/step-00001200/     accelerator.save_state: weights and optimiser
                       state.json         the run's RunState and its settings
                       history.jsonl      as at that step, so that a resumed run repeats no line
                       log.jsonl          likewise

A folder is written as ``.part-step-…``; the main process renames it once all ranks are done. The
newest `keep` checkpoints are kept, and those with the best weights to which one of them refers. On
several nodes, OUTPUT is a folder that all of them see.

The mirror gets the same folders, file by file, and a ``COMPLETE`` last. A thread writes it while
training goes on, so no rank waits for a slow store before the end. Files still waiting when the
next checkpoint is written are sent with it. A store that fails is reported and retried in the same
way.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils import DistributedType, broadcast_object_list
from safetensors import SafetensorError

from gaixie.training.loop.controller import State
from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage

STATE = "state.json"
COMPLETE = "COMPLETE"
LOCK = ".lock"
LOGS = ("history.jsonl", "log.jsonl")
NAME = re.compile(r"step-(\d+)")


@dataclass(frozen=True)
class RunState:
    """The state of a run after a step; the same on every rank."""

    step: int = 0
    """Optimiser steps so far, over all stages."""
    seconds: float = 0.0
    """Seconds of training so far, without the time between a stop and the next start."""
    controller: State = field(default_factory=State)
    loader: dict[str, Any] | None = None
    """StageLoader.state_dict() of the stage; None before its first batch."""
    best_step: int | None = None
    """The step whose checkpoint holds the stage's best weights."""


class Checkpoints:
    """The checkpoints of one run. All ranks call save, load and find.

    identity: Settings.identity and the tokenizer's digest.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        output: str,
        keep: int,
        identity: dict[str, Any],
        mirror: str | None = None,
    ):
        self.accelerator, self.keep, self.identity = accelerator, keep, identity
        self.output, self.folder = Path(output), Path(output, "checkpoints")
        self._root = mirror or ""
        self.mirror = storage.join(mirror, "checkpoints") if mirror else ""
        self._uploader = ThreadPoolExecutor(1) if self.mirror else None
        self._upload: Future | None = None
        self._sending: list[int] = []
        """Steps of the last upload."""
        self._lock: int | None = None

    # Saving

    def save(self, state: RunState) -> None:
        """Saves a checkpoint. Raises OSError if the folder cannot be written; the last one
        survives."""
        target = self.path(state.step)
        part = target.with_name(f".part-{target.name}")
        main = self.accelerator.is_main_process
        if main:
            for stale in self.folder.glob(".part-*"):
                shutil.rmtree(stale)
            part.mkdir(parents=True)
        self.accelerator.wait_for_everyone()
        try:
            self.accelerator.save_state(str(part))
            if main:
                _copy_logs(self.output, part)
                description = {
                    "progress": asdict(state),
                    "identity": self.identity,
                    "backend": self.accelerator.distributed_type.value,
                    "processes": self.accelerator.num_processes,
                }
                _write_json(part / STATE, description)
        except (OSError, RuntimeError, SafetensorError) as error:  # torch's and safetensors' own
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            raise OSError(f"{target}: cannot write the checkpoint: {first_line}") from error
        self.accelerator.wait_for_everyone()
        if main:
            if target.exists():
                shutil.rmtree(target)
            part.rename(target)
            self._prune()
            self._send()
        self.accelerator.wait_for_everyone()

    def path(self, step: int) -> Path:
        """Returns the folder of a step's checkpoint."""
        return self.folder / f"step-{step:08}"

    def _prune(self) -> None:
        steps = _steps(self.folder)
        kept = {*steps[-self.keep :]}
        kept |= {self._read(step)["progress"]["best_step"] for step in kept}
        if self._upload and not self._upload.done():
            kept |= {*self._sending}  # deleted next time
        for step in steps:
            if step not in kept:
                shutil.rmtree(self.path(step))

    # Resuming

    def find(self, resume: bool) -> RunState | None:
        """Finds the newest whole checkpoint, here or in the mirror, ready to be loaded; None if
        there is none.

        From here on OUTPUT belongs to this run, until close or the end of its main process. Logs
        are restored to the checkpoint. Raises ValueError if another run holds OUTPUT; for a
        checkpoint of other settings, or of another backend or number of processes if that matters;
        and, without `resume`, for any checkpoint.
        """
        answer: list[Any] = [None, None]
        if self.accelerator.is_main_process:
            try:
                answer[0] = self._find(resume)
            except (OSError, ValueError) as error:
                answer[1] = error
        broadcast_object_list(answer)
        progress, refusal = answer
        if refusal is not None:
            raise refusal
        if progress is None:
            return None
        return RunState(**progress | {"controller": State(**progress["controller"])})

    def _find(self, resume: bool) -> dict[str, Any] | None:
        self._claim()
        if not resume:
            here = [str(self.folder)] if _steps(self.folder) else []
            there = [self.mirror] if self.mirror and self._mirrored() else []
            for folder in here + there:
                raise ValueError(
                    f"{folder}: already has checkpoints; use another folder, or --resume auto"
                )
        elif self.mirror:
            self._fetch()
        steps = _steps(self.folder)
        for name in LOGS:  # including those of a run that was killed before its first checkpoint
            if not steps or not (self.path(steps[-1]) / name).exists():
                (self.output / name).unlink(missing_ok=True)
        if not steps:
            return None
        description = self._read(steps[-1])
        self._check(self.path(steps[-1]), description)
        _copy_logs(self.path(steps[-1]), self.output)
        return description["progress"]

    def _claim(self) -> None:
        """Claims OUTPUT for this run by a lock that loaders do not share and that SIGKILL
        releases."""
        self.output.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.output / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            holder = os.read(self._lock, 1_000).decode("utf-8", "replace")
            raise ValueError(
                f"{self.output}: another run writes there, {holder}; use another output"
            ) from None
        except OSError:
            return  # the file system has no locks
        os.truncate(self._lock, 0)
        os.write(self._lock, f"process {os.getpid()} of {socket.gethostname()}".encode())

    def load(self, step: int) -> None:
        """Restores the weights and the optimiser of a step."""
        self.accelerator.load_state(str(self.path(step)))

    def _read(self, step: int) -> dict[str, Any]:
        return storage.read_json(str(self.path(step) / STATE))

    def _check(self, path: Path, saved: dict[str, Any]) -> None:
        for name in sorted({*saved["identity"], *self.identity}):
            theirs, ours = saved["identity"].get(name), self.identity.get(name)
            if theirs != ours:
                raise ValueError(
                    f"{path}: saved with {name} {theirs}, but the settings have {ours}; restore "
                    "the setting, or use another output"
                )
        zero = DistributedType.DEEPSPEED.value
        backend, world = self.accelerator.distributed_type.value, self.accelerator.num_processes
        if (saved["backend"] == zero) != (backend == zero):
            raise ValueError(
                f"{path}: saved under {saved['backend']}, but this is {backend}; only DeepSpeed "
                "reads its checkpoints, and it reads no others"
            )
        if backend == zero and saved["processes"] != world:
            raise ValueError(
                f"{path}: saved by {saved['processes']} processes, but there are {world}; "
                "DeepSpeed needs the same number"
            )

    # The mirror

    def _send(self) -> None:
        if self._uploader and (self._upload is None or self._upload.done()):
            self._sending = _steps(self.folder)
            self._upload = self._uploader.submit(self._mirror, self._sending)

    def _mirror(self, steps: list[int]) -> None:
        """Makes the mirror hold exactly these steps."""
        try:
            there = self._mirrored()
            for step in steps:
                if step not in there:
                    self.send(f"checkpoints/{self.path(step).name}")
                    storage.write(storage.join(self.mirror, self.path(step).name, COMPLETE), b"")
            for step in there:
                if step not in steps:
                    folder = storage.join(self.mirror, self.path(step).name)
                    storage.delete(storage.join(folder, COMPLETE))  # a part must not look whole
                    storage.delete(folder)
        except OSError as error:
            say(f"mirror: {error}; trying again with the next checkpoint")

    def _mirrored(self) -> list[int]:
        """Returns the steps whose checkpoints are complete in the mirror."""
        names = {"/".join(file.uri.rsplit("/", 2)[1:]) for file in storage.list_files(self.mirror)}
        return _steps_of(name.removesuffix(f"/{COMPLETE}") for name in names)

    def _fetch(self) -> None:
        """Fetches the mirror's newest checkpoint, if it is newer, and that of its best weights."""
        there, here = self._mirrored(), _steps(self.folder)
        if not there or (here and here[-1] >= there[-1]):
            return
        newest = storage.join(self.mirror, self.path(there[-1]).name, STATE)
        best_step = storage.read_json(newest)["progress"]["best_step"]
        for step in {there[-1], best_step} - {None, *here}:
            target = self.path(step)
            part = target.with_name(f".part-{target.name}")
            shutil.rmtree(part, ignore_errors=True)
            root = storage.join(self.mirror, target.name)
            for file in storage.list_files(root):
                inner = file.uri[len(root) + 1 :]
                if inner != COMPLETE:
                    storage.copy(file.uri, str(part / inner))
            part.rename(target)

    def send(self, *names: str) -> None:
        """Copies files and folders of OUTPUT to the mirror; the main process calls it."""
        for name in names if self.mirror else ():
            for file in storage.list_files(str(self.output / name)):
                inner = Path(file.uri).relative_to(self.output).as_posix()
                storage.copy(file.uri, storage.join(self._root, inner))

    def close(self) -> None:
        """Waits for pending uploads to the mirror, and releases OUTPUT."""
        if self._uploader:
            if self._upload:  # on a main process that has saved
                self._upload.result()
                self._prune()
                if _steps(self.folder) != self._sending:
                    self._send()
            self._uploader.shutdown()
        if self._lock is not None:
            os.close(self._lock)


def _copy_logs(source: Path, target: Path) -> None:
    for name in LOGS:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


def _steps(folder: Path) -> list[int]:
    """Returns the steps of the checkpoints in a folder, in order."""
    return _steps_of(path.name for path in folder.glob("step-*"))


def _steps_of(names: Iterable[str]) -> list[int]:
    return sorted(int(match[1]) for match in map(NAME.fullmatch, names) if match)


def _write_json(path: Path, value: Any) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=2)
        file.flush()
        os.fsync(file.fileno())
