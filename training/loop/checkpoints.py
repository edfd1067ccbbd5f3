"""Whole checkpoints of a stage: those in its folder, and their copies in a store (the mirror)."""

from __future__ import annotations

import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import fetch

COMPLETE = "COMPLETE"
"""A file that every process's part of a checkpoint precedes, here and in a store."""
LOGS = ("history.jsonl", "log.jsonl", "settings.yaml")


def checkpoints(folder: Path) -> list[Path]:
    """Returns the whole checkpoints of a stage, oldest first."""
    found = [path.parent for path in folder.glob(f"checkpoint-*/{COMPLETE}")]
    return sorted(found, key=lambda path: _step_of(path.name))


def clear_parts(folder: Path) -> None:
    """Deletes checkpoints that a killed run left half written."""
    for path in folder.glob("checkpoint-*"):
        if not (path / COMPLETE).exists():
            shutil.rmtree(path)


def _step_of(name: str) -> int:
    return int(name.rpartition("-")[2])


class Checkpoints(TrainerCallback):
    """Marks whole checkpoints, and copies them to a store in a thread.

    folder: OUTPUT/stage-N. mirror: its URI in the store, or none. A store that fails is reported,
    and tried again with the next checkpoint.
    """

    def __init__(self, accelerator: Any, folder: Path, mirror: str | None):
        self.accelerator, self.folder, self.mirror = accelerator, folder, mirror
        self._thread = ThreadPoolExecutor(1)
        self._upload: Future | None = None

    def on_save(self, args, state, control, **_: Any) -> None:
        self.accelerator.wait_for_everyone()
        if not state.is_world_process_zero:
            return
        (self.folder / f"checkpoint-{state.global_step}" / COMPLETE).touch()
        if self.mirror and (self._upload is None or self._upload.done()):
            self._upload = self._thread.submit(self._send, self.mirror)

    def _send(self, mirror: str) -> None:
        """Makes the mirror hold the newest whole checkpoint, and the one with the best weights."""
        try:
            wanted = {path.name for path in checkpoints(self.folder)}
            there = {name for name in storage.children(mirror) if name != "model"}
            for name in sorted(wanted, key=_step_of):
                if not storage.exists(storage.join(mirror, name, COMPLETE)):
                    send_folder(self.folder / name, storage.join(mirror, name))
            for name in there - wanted:
                storage.delete(storage.join(mirror, name, COMPLETE))
                storage.delete(storage.join(mirror, name))
        except OSError as error:
            say(f"mirror: {error}; trying again with the next checkpoint")

    def close(self) -> None:
        """Waits for a pending upload."""
        self._thread.shutdown()


def send_folder(folder: Path, uri: str) -> None:
    """Copies the files of a folder to a store, COMPLETE last."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: (path.name == COMPLETE, path)):
        storage.copy(str(path), storage.join(uri, path.relative_to(folder).as_posix()))


def send_logs(output: Path, mirror: str) -> None:
    """Copies LOGS to the mirror."""
    for name in LOGS:
        if (output / name).exists():
            storage.copy(str(output / name), storage.join(mirror, name))


def fetch_newer(mirror: str, output: Path) -> None:
    """Copies whole checkpoints and models of a mirror that are newer than those in OUTPUT."""
    uris = [file.uri for file in storage.list_files(mirror)]
    names = [uri[len(storage.join(mirror, "")) :].lstrip("/") for uri in uris]
    for name in names:
        if name in LOGS and not (output / name).exists():
            storage.copy(storage.join(mirror, name), str(output / name))
    whole = [name.removesuffix(f"/{COMPLETE}") for name in names if name.endswith(COMPLETE)]
    for folder in sorted(whole, key=lambda name: (len(name), name)):
        here = output / folder
        if not here.exists() and not (here.parent / "model").exists():
            part = fetch(storage.join(mirror, folder), output / ".fetched")
            here.parent.mkdir(parents=True, exist_ok=True)
            part.rename(here)
