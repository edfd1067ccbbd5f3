"""Caches compiled kernels and built tables between processes.

The cache is in $GAIXIE_CACHE_DIR, else ~/.cache/gaixie, else a folder under the system's temporary
folder. A Spark worker starts in a second with it, in half a minute without. It is safe to delete at
any time.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from gaixie.udfs.command_line import say

SHIPPED = Path(__file__).parents[1] / "kernels"
"""Kernels that came with the package, in an archive or an image; see ship_kernels."""
LEVEL = {"CPU_NAME": "x86-64-v3", "CPU_FEATURES": ""}
"""What they are compiled for: numba caches a kernel for one processor, but a cluster has many."""
LOCATOR = "gaixie.udfs.storage.kernel_cache.ByModule"
OF_KERNELS = ("text", "features", "meaning", "spscore/trees.py", "defaults.py")
"""The parts of this package that decide the kernels, including constants and word lists."""

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Returns a writable cache folder, and creates it if needed.

    numba's kernels are pickles: whoever can write here can make this process run any code. So a
    folder must belong to this user, and nobody else may write there; otherwise it is passed over. A
    given folder may also belong to root, as in an image; if it is passed over, a line says so.
    """
    user = os.getuid()
    if given := os.environ.get("GAIXIE_CACHE_DIR"):
        if _can_be_used(folder := Path(given).resolve(), 0, user):
            return folder
        _say_passed_over(given)
    home = Path(os.path.expanduser("~/.cache/gaixie"))
    for folder in (home, Path(tempfile.gettempdir()) / f"gaixie-{user}"):
        if _can_be_used(folder, user):
            return folder
    return Path(tempfile.mkdtemp(prefix="gaixie-"))


def _can_be_used(folder: Path, *owners: int) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    status = folder.lstat()
    is_theirs = stat.S_ISDIR(status.st_mode) and status.st_uid in owners
    return is_theirs and os.access(folder, os.W_OK) and not status.st_mode & OTHERS_WRITE


@cache  # once
def _say_passed_over(given: str) -> None:
    say(f"GAIXIE_CACHE_DIR={given}: ignored: others may write there, or this process may not")


def keep_kernels() -> None:
    """Makes numba cache compiled kernels in a folder for this exact source.

    numba checks only the time stamp of a kernel's own file, so after an upgrade it would reuse a
    kernel that contains another file's old function. It also cannot cache kernels in a package that
    is not writable. If the package ships kernels and this processor can run them, the folder starts
    with them. NUMBA_CACHE_DIR and NUMBA_CPU_NAME take precedence if set.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    folder, settings = cache_folder() / f"kernels-{source_digest()}", dict[str, str]()
    shipped = SHIPPED / folder.name
    if shipped.is_dir() and not os.environ.get("NUMBA_CPU_NAME") and _runs_shipped():
        folder = folder.with_name(f"{folder.name}-{LEVEL['CPU_NAME']}")
        if not folder.is_dir():
            with suppress(OSError), tempfile.TemporaryDirectory(dir=folder.parent) as work:
                shutil.copytree(shipped, Path(work, "kernels")).rename(folder)
        settings |= LEVEL
    settings |= {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": LOCATOR}
    os.environ |= {f"NUMBA_{key}": value for key, value in settings.items()}
    if "numba" in sys.modules:  # it read the variables when it was imported
        for key, value in settings.items():
            setattr(sys.modules["numba"].config, key, value)


def _runs_shipped() -> bool:
    with suppress(OSError):
        return " avx2 " in Path("/proc/cpuinfo").read_text("utf-8")
    return False


def ship_kernels() -> None:
    """Compiles the kernels for LEVEL into the package, in a process of its own."""
    shutil.rmtree(SHIPPED, ignore_errors=True)
    folder = SHIPPED / f"kernels-{source_digest()}"
    settings = LEVEL | {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": LOCATOR}
    environment = os.environ | {f"NUMBA_{key}": value for key, value in settings.items()}
    subprocess.run([sys.executable, "-m", "gaixie.udfs.spscore"], env=environment, check=True)


def source_digest() -> str:
    """Returns a digest of the source that decides the kernels."""
    source, package = hashlib.sha256(), Path(__file__).parents[1]
    paths = [path for name in OF_KERNELS for path in (package / name, *(package / name).rglob("*"))]
    for path in sorted(path for path in paths if path.suffix in (".py", ".ini")):
        source.update(path.read_bytes())
    return source.hexdigest()[:16]
