"""Ships kernels with the package, compiled for levels of processors.

    python -m gaixie.udfs.spscore --levels

numba caches a kernel for one processor, by its name and features, but a cluster has many. So the
build of an archive or an image compiles kernels into the package for the levels x86-64-v2, -v3 and
-v4, as far as its own processor supports them. A process then uses the highest level that it
supports (gaixie.udfs.storage.cache).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SHIPPED = Path(__file__).parents[1] / "kernels"
ADDED = {
    "x86-64-v2": "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
    "x86-64-v3": "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""The flags of /proc/cpuinfo that each level adds to the one before (System V ABI of x86-64)."""


def reached() -> list[str]:
    """Returns the levels of this processor, highest first; none if it is not x86-64."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return []
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    levels: list[str] = []
    for level, added in ADDED.items():
        if not flags.issuperset(added.split()):
            break
        levels.insert(0, level)
    return levels


def shipped(name: str) -> str | None:
    """Returns this processor's highest level for which the package ships kernels of this name."""
    if not SHIPPED.is_dir():
        return None
    return next((level for level in reached() if (SHIPPED / f"{name}-{level}").is_dir()), None)


def copy(name: str, level: str, folder: Path) -> bool:
    """Copies shipped kernels to a folder that numba may add to; tells whether the folder exists."""
    try:
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(prefix=".kernels-", dir=folder.parent) as work:
                made = shutil.copytree(SHIPPED / f"{name}-{level}", Path(work, "kernels"))
                made.rename(folder)
    except OSError:
        return folder.is_dir()  # another process was first, or the disk is full
    return True


def compile_levels(digest: str, locator: str) -> None:
    """Compiles the kernels for each level that this processor reaches, in a process for each."""
    shutil.rmtree(SHIPPED, ignore_errors=True)
    for level in reached():
        folder = SHIPPED / f"kernels-{digest}-{level}"
        settings = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": locator}
        settings |= {"CPU_NAME": level, "CPU_FEATURES": ""}
        environment = os.environ | {f"NUMBA_{key}": value for key, value in settings.items()}
        line = [sys.executable, "-m", "gaixie.udfs.spscore"]
        subprocess.run(line, env=environment, check=True, stdout=subprocess.DEVNULL)
        size = sum(file.stat().st_size for file in folder.rglob("*.nb?")) / 1e6
        print(f"{folder}: {size:.1f} MB")
