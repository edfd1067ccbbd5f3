"""Kernels are kept by what they are made of, not by where the package lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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


def test_another_place_finds_the_same_kernels(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    environment |= {"GAIXIE_CACHE_DIR": str(tmp_path / "cache"), "PYTHONSAFEPATH": "1"}
    found = []
    for name in ("first", "second"):
        ignored = shutil.ignore_patterns("__pycache__", "models")
        for part in ("gaixie", "udfs"):
            folder = tmp_path / name / part
            shutil.copytree(ROOT / part, folder, True, ignored, copy_function=shutil.copy)
        environment["PYTHONPATH"] = str(tmp_path / name)
        done = subprocess.run(
            [sys.executable, "-c", SCORE_ONE], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert str(tmp_path / name) in done.stdout
        found.append(kept(tmp_path / "cache"))
    assert any(name.endswith(".nbc") for name in found[0])
    assert found[0] == found[1]
