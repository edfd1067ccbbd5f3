"""Copies files between an object store and this host, for code that works only locally."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gaixie.udfs.storage import storage


def fetch(uri: str, folder: Path) -> Path:
    """Copies a file, or a folder with all its content, to a local folder; returns its new path.

    Raises FileNotFoundError if nothing is there, and other OSErrors of gaixie.udfs.storage.storage.
    """
    if not (files := storage.list_files(uri)):
        raise FileNotFoundError(f"{uri}: no such file or folder")
    root = folder / uri.rstrip("/").rpartition("/")[2]
    for file in files:
        below = file.uri.partition("://")[2].removeprefix(uri.rstrip("/").partition("://")[2])
        storage.copy(file.uri, str(root) + below)
    return root


@contextmanager
def local_copy(output: str | Path | None, *inputs: str | Path | None) -> Iterator[list[Any]]:
    """Yields local paths of an output folder and of inputs; remote ones get local copies.

    None stays None. The content of a remote output's local folder is uploaded once the block
    succeeds.
    """
    with tempfile.TemporaryDirectory(prefix="gaixie-") as work:
        folders = [Path(work, str(k)) for k in range(1 + len(inputs))]
        paths = [
            fetch(str(uri), folder) if "://" in str(uri) else uri and Path(uri)
            for uri, folder in zip(inputs, folders[1:], strict=True)
        ]
        if "://" not in str(output):
            yield [output and Path(output), *paths]
            return
        local = folders[0] / str(output).rstrip("/").rpartition("/")[2]
        yield [local, *paths]
        for path in sorted(local.rglob("*")):
            if path.is_file():
                storage.copy(str(path), storage.join(str(output), *path.relative_to(local).parts))
