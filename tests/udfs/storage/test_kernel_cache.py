"""Kernels must be cached by their source, not by the package's location."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from shared import ROOT
from usage import output_of

from gaixie.udfs.storage import cache

SCORE_ONE = """
from gaixie.udfs.features import acs
from gaixie.udfs.text.code_points import from_strings
text = from_strings(["今天天气很好"]).values
acs.kernel(text, text)
print(acs.__file__)
"""


def score_one(package: Path, **given: str) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    own |= {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(package.parent), **given}
    assert str(package) in output_of(sys.executable, "-c", SCORE_ONE, env=own)


@pytest.mark.skipif(not cache._runs_shipped(), reason="no AVX2")
def test_kernels_that_came_along_are_not_compiled_again_at_another_place(tmp_path):
    first, second = tmp_path / "first/gaixie", tmp_path / "second/gaixie"
    ignored = shutil.ignore_patterns("__pycache__", "models", "kernels")
    shutil.copytree(ROOT / "udfs", first / "udfs", ignore=ignored, copy_function=shutil.copy)
    shutil.copy(ROOT / "__init__.py", first)
    folder = first / "udfs/kernels" / f"kernels-{cache.source_digest()}"
    given = cache.LEVEL | {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": cache.LOCATOR}
    score_one(first, **{f"NUMBA_{key}": value for key, value in given.items()})
    shutil.copytree(first, second, copy_function=shutil.copy)  # the files get other times
    score_one(second, GAIXIE_CACHE_DIR=str(tmp_path / "cache"))
    [copied] = (tmp_path / "cache").glob("kernels-*")
    shipped, found = (
        {path.relative_to(at): path.read_bytes() for path in at.rglob("*.nb?")}
        for at in (folder, copied)
    )
    assert any(path.suffix == ".nbc" for path in shipped)
    assert found == shipped
