"""The repository's root; and folders that all processes of a test run share, each made by the first
process to need it."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Returns the folder of this name, which ``make`` writes once; read-only."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder, part = root / name, root / f"{name}.part"
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part.mkdir()
            make(part)
            part.rename(folder)
    return folder
