"""Kernels must be cached by their source, not by the package's location."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gaixie.udfs.storage import cache

ROOT = Path(__file__).parents[3]
SCORE_ONE = """
from gaixie.udfs.features import acs
from gaixie.udfs.text.code_points import from_strings
text = from_strings(["今天天气很好"]).values
acs.kernel(text, text)
print(acs.__file__)
"""


def kept(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.rglob("*.nb?")}


def environment_of(folder: Path, cache: Path) -> dict[str, str]:
    """Returns the environment of a process that uses a copy of the package in ``folder``."""
    ignored = shutil.ignore_patterns("__pycache__", "models", "kernels")
    shutil.copytree(
        ROOT / "udfs", folder / "gaixie/udfs", ignore=ignored, copy_function=shutil.copy
    )
    shutil.copy(ROOT / "__init__.py", folder / "gaixie")
    own = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    own |= {"GAIXIE_CACHE_DIR": str(cache), "PYTHONSAFEPATH": "1", "PYTHONPATH": str(folder)}
    return own


def score_one(environment: dict[str, str]) -> subprocess.CompletedProcess:
    line = [sys.executable, "-c", SCORE_ONE]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert environment["PYTHONPATH"] in done.stdout
    return done


def test_another_place_finds_the_same_kernels(tmp_path):
    found = []
    for name in ("first", "second"):
        score_one(environment_of(tmp_path / name, tmp_path / "cache"))
        found.append(kept(tmp_path / "cache"))
    assert any(name.endswith(".nbc") for name in found[0])
    assert found[0] == found[1]


def test_kernels_that_came_along_are_not_compiled_again(tmp_path):
    """Kernels that a package ships must be used, not compiled again."""
    if not cache._runs_shipped():
        pytest.skip("no AVX2")
    environment = environment_of(tmp_path, tmp_path / "cache")
    folder = tmp_path / "gaixie/udfs/kernels" / f"kernels-{cache.source_digest()}"
    given = cache.LEVEL | {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": cache.LOCATOR}
    score_one(environment | {f"NUMBA_{key}": value for key, value in given.items()})
    score_one(environment)
    [copied] = (tmp_path / "cache").glob("kernels-*")
    shipped = {path: (folder / path).read_bytes() for path in kept(folder)}
    assert any(name.endswith(".nbc") for name in shipped)
    assert {path: (copied / path).read_bytes() for path in kept(copied)} == shipped
