"""The cache is a folder that only this user can write to: what lies there is run."""

import os
import re
import tempfile
from pathlib import Path

import pytest

from gaixie.udfs.storage import cache
from gaixie.udfs.storage.cache import cache_folder


@pytest.fixture
def places(tmp_path, monkeypatch) -> tuple[Path, Path]:
    """The folders of the cache, below the home folder and below the temporary one."""
    monkeypatch.delenv("GAIXIE_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path / "home/.cache/gaixie", tmp_path / f"tmp/gaixie-{os.getuid()}"


def test_nobody_else_may_write_there(places):
    assert cache_folder() == places[0]
    assert places[0].stat().st_mode & 0o777 == 0o700
    places[0].chmod(0o777)
    assert cache_folder() == places[0]
    assert places[0].stat().st_mode & 0o077 == 0


def test_what_others_may_have_left_is_deleted(places):
    """A kernel there is a pickle, which this process would run."""
    cache_folder()
    for mode, stays in ((0o755, True), (0o770, False)):
        (places[0] / "kernels").mkdir(exist_ok=True)
        (places[0] / "kernels/planted.nbc").write_bytes(b"")
        places[0].chmod(mode)
        assert cache_folder() == places[0]
        assert (places[0] / "kernels").exists() == stays


def test_a_folder_of_somebody_else_is_passed_over(places, tmp_path, monkeypatch):
    """They may have made it under the name that we would take."""
    (tmp_path / "home").write_text("no folder")
    other = tmp_path / "other"
    other.mkdir()
    places[1].symlink_to(other)
    found = cache_folder()
    assert found not in (places[1], other)
    assert found.is_relative_to(tmp_path / "tmp")
    places[1].unlink()
    assert cache_folder() == places[1]
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    (tmp_path / "tmp/gaixie-4711").mkdir()
    assert cache_folder() != tmp_path / "tmp/gaixie-4711"


def test_a_folder_that_is_given_is_taken_if_it_is_nobody_elses(
    places, tmp_path, monkeypatch, capsys
):
    for mode in (0o755, 0o777):
        given = tmp_path / f"{mode:o}"
        given.mkdir()
        given.chmod(mode)
        monkeypatch.setenv("GAIXIE_CACHE_DIR", str(given))
        assert cache_folder() == cache_folder() == (given if mode == 0o755 else places[0])
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(f"GAIXIE_CACHE_DIR={given}: ignored")


def test_every_file_that_kernels_are_made_of_names_their_folder():
    """Those that compile, and those that they import: a kernel holds their constants."""
    package = Path(cache.__file__).parents[1]
    compiling = re.compile(r"^ *@(?:numba\.)?(?:njit|entry|inner|inlined|summing|vectorize)", re.M)
    imported = re.compile(r"^from gaixie\.udfs\.([\w.]+) import", re.M)
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        if compiling.search(text):
            names = [str(path.relative_to(package))]
            names += [f"{name.replace('.', '/')}.py" for name in imported.findall(text)]
            for name in names:
                kept = (*cache.OF_KERNELS, "storage/")  # which gives no kernel a constant
                assert name.startswith(kept), f"{path.name} needs {name}"
