"""Folders that hold one model: what may be replaced, and how, so that no half folder is ever
seen."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_output(output: Path, sign: str, overwrite: bool) -> Path:
    """The absolute output folder. sign: a file that a folder of this kind has.

    Raises ValueError where writing it would lose something.
    """
    output = output.expanduser().absolute()
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output}: is a file; --output expects a folder")
    if output.is_dir() and any(output.iterdir()):
        if not overwrite:
            raise ValueError(f"{output}: exists and is not empty; --overwrite replaces it")
        if not (output / sign).is_file():
            raise ValueError(f"{output}: has no {sign}, so it is no model; not overwritten")
    return output


@contextmanager
def scratch_beside(output: Path) -> Iterator[Path]:
    """An empty folder beside the output, for the block to fill and publish; what is left goes with
    it."""
    output.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        folder.chmod(0o755)  # mkdtemp's is private; a model is for others to read
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(built: Path, output: Path) -> None:
    """Moves the finished folder to its place; an older one there is replaced at the last moment."""
    if not output.exists() or not any(output.iterdir()):
        os.replace(built, output)
        return
    with scratch_beside(output) as retired:
        os.replace(output, retired / "old")
        try:
            os.replace(built, output)
        except OSError:
            os.replace(retired / "old", output)
            raise
