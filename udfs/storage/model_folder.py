"""Writes and replaces folders that hold one model, so that readers never see half a folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_output(output: Path, sign: str, overwrite: bool) -> Path:
    """Returns the absolute output folder. sign: a file that every folder of this kind has.

    Raises ValueError if writing it would lose something.
    """
    output = output.expanduser().absolute()
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output}: is a file; --output expects a folder")
    if output.is_dir() and any(output.iterdir()):
        if not overwrite:
            raise ValueError(f"{output}: exists and is not empty; --overwrite replaces it")
        if not (output / sign).is_file():
            raise ValueError(f"{output}: has no {sign}, so it is not a model; not overwritten")
    return output


@contextmanager
def scratch_beside(output: Path) -> Iterator[Path]:
    """Yields an empty folder beside the output for the block to fill and publish. Removes the
    folder at the end."""
    output.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        folder.chmod(0o755)  # mkdtemp's is private, but others may read a model
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(built: Path, output: Path) -> None:
    """Moves the finished folder to its place, and replaces an older one at the last moment."""
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
