"""Whole checkpoints of a stage: those in its folder, and their copies in a store (the mirror)."""

import shutil
from pathlib import Path

from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import fetch

COMPLETE = "COMPLETE"
"""A file that every process's part of a checkpoint precedes, here and in a store."""
LOGS = ("history.jsonl", "log.jsonl", "settings.yaml")


def whole_in(folder: Path) -> list[Path]:
    """Returns the whole checkpoints of a stage, oldest first."""
    found = [path.parent for path in folder.glob(f"checkpoint-*/{COMPLETE}")]
    return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))


def keep_only(folder: Path, kept: list[Path]) -> None:
    """Deletes all other checkpoints of a stage."""
    for path in {*folder.glob("checkpoint-*")} - {*kept}:
        shutil.rmtree(path)


def send_checkpoints(folder: Path, mirror: str) -> None:
    """Makes the mirror hold the whole checkpoints of a stage.

    A store that fails is reported, and tried again with the next checkpoint.
    """
    there = storage.join(mirror, folder.name)
    try:
        wanted = whole_in(folder)
        for path in wanted:
            if not storage.exists(storage.join(there, path.name, COMPLETE)):
                send_folder(path, storage.join(there, path.name))
        for name in {*storage.children(there)} - {path.name for path in wanted} - {"model"}:
            storage.delete(storage.join(there, name, COMPLETE))
            storage.delete(storage.join(there, name))
    except OSError as error:
        say(f"mirror: {error}; trying again with the next checkpoint")


def send_folder(folder: Path, uri: str) -> None:
    """Copies the files of a folder to a store, COMPLETE last."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: (path.name == COMPLETE, path)):
        storage.copy(str(path), storage.join(uri, path.relative_to(folder).as_posix()))


def send_model(model: Path, output: Path, mirror: str) -> None:
    """Copies a model in OUTPUT and the LOGS of the run to the mirror."""
    send_folder(model, storage.join(mirror, model.relative_to(output).as_posix()))
    for name in LOGS:
        if (output / name).exists():
            storage.copy(str(output / name), storage.join(mirror, name))


def fetch_newer(mirror: str, output: Path) -> None:
    """Copies whole checkpoints and models of a mirror that are newer than those in OUTPUT."""
    uris = [file.uri for file in storage.list_files(mirror)]
    names = [uri[len(storage.join(mirror, "")) :].lstrip("/") for uri in uris]
    for name in {*names} & {*LOGS}:
        if not (output / name).exists():
            storage.copy(storage.join(mirror, name), str(output / name))
    whole = [name.removesuffix(f"/{COMPLETE}") for name in names if name.endswith(COMPLETE)]
    for folder in sorted(whole, key=lambda name: (len(name), name)):
        here = output / folder
        if not here.exists() and not (here.parent / "model").exists():
            part = fetch(storage.join(mirror, folder), output / ".fetched")
            here.parent.mkdir(parents=True, exist_ok=True)
            part.rename(here)
