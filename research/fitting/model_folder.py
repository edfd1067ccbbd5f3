"""Writes and replaces folders that hold one model, so that readers never see half a folder."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_folder(output: Path, sign: str, overwrite: bool) -> Iterator[Path]:
    """Yields an empty folder, which takes the output's place once the block has ended.

    sign: a file that every folder of this kind has. Raises ValueError if something would be lost.
    """
    output = output.expanduser().absolute()
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output}: is a file; --output expects a folder")
    if output.is_dir() and any(output.iterdir()):
        if not overwrite:
            raise ValueError(f"{output}: exists and is not empty; --overwrite replaces it")
        if not (output / sign).is_file():
            raise ValueError(f"{output}: has no {sign}, so it is not a model; not overwritten")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as work:
        built = Path(work, "new")
        built.mkdir()
        yield built
        old = Path(work, "old")
        if output.exists():
            os.replace(output, old)
        try:
            os.replace(built, output)
        except OSError:
            if old.exists():
                os.replace(old, output)
            raise
