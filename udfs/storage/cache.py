"""Caches compiled kernels and built tables between processes.

The cache is in $GAIXIE_CACHE_DIR, else ~/.cache/gaixie, else a folder under the system's temporary
folder. A Spark worker starts in a second with it, in half a minute without. It is safe to delete at
any time.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path

from gaixie.udfs.command_line import say
from gaixie.udfs.storage import kernel_levels

LOCATOR = "gaixie.udfs.storage.kernel_cache.ByModule"
OF_KERNELS = (
    "text",
    "features",
    "meaning",
    "metrics/grams.py",
    "metrics/words.py",
    "spscore/trees.py",
    "defaults.py",
)
"""The parts of this package that decide the kernels, including constants and word lists."""

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Returns a writable cache folder, and creates it if needed.

    numba's kernels are pickles: whoever can write here can make this process run any code. So a
    folder must belong to this user, and nobody else may write there; otherwise it is passed over. A
    given folder may also belong to root, as in an image; if it is passed over, a line says so.
    """
    if given := os.environ.get("GAIXIE_CACHE_DIR"):
        folder = Path(given).resolve()
        if _can_write(folder) and _is_safe(folder, 0, os.getuid()):
            return folder
        _say_passed_over(given)
    home = Path(os.path.expanduser("~/.cache/gaixie"))
    for folder in (home, Path(tempfile.gettempdir()) / f"gaixie-{os.getuid()}"):
        if _can_write(folder) and _is_safe(folder, os.getuid()):
            return folder
    return Path(tempfile.mkdtemp(prefix="gaixie-"))


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _is_safe(folder: Path, *owners: int) -> bool:
    status = folder.lstat()
    is_theirs = stat.S_ISDIR(status.st_mode) and status.st_uid in owners
    return is_theirs and not status.st_mode & OTHERS_WRITE


@cache  # once
def _say_passed_over(given: str) -> None:
    say(f"GAIXIE_CACHE_DIR={given}: ignored: others may write there, or this process may not")


def keep_kernels() -> None:
    """Makes numba cache compiled kernels in a folder for this exact source.

    numba checks only the time stamp of a kernel's own file, so after an upgrade it would reuse a
    kernel that contains another file's old function. It also cannot cache kernels in a package that
    is not writable. If the package ships kernels for a level that this processor reaches, the
    folder starts with them. NUMBA_CACHE_DIR and NUMBA_CPU_NAME take precedence if set.
    """
    get = os.environ.get
    if get("NUMBA_CACHE_DIR"):
        return
    name = f"kernels-{source_digest()}"
    level = None if get("NUMBA_CPU_NAME") else kernel_levels.shipped(name)
    folder = cache_folder() / (f"{name}-{level}" if level else name)
    settings: dict[str, str] = {}
    if level and kernel_levels.copy(name, level, folder):
        settings = {"CPU_NAME": level, "CPU_FEATURES": ""}
    settings |= {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": LOCATOR}
    os.environ |= {f"NUMBA_{key}": value for key, value in settings.items()}
    if "numba" in sys.modules:  # it read the variables when it was imported
        for key, value in settings.items():
            setattr(sys.modules["numba"].config, key, value)


def source_digest() -> str:
    """Returns a digest of the source that decides the kernels."""
    source, package = hashlib.sha256(), Path(__file__).parents[1]
    paths = [path for name in OF_KERNELS for path in (package / name, *(package / name).rglob("*"))]
    for path in sorted(path for path in paths if path.suffix in (".py", ".ini")):
        source.update(path.read_bytes())
    return source.hexdigest()[:16]
