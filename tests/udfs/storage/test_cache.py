"""The cache must be a folder that only this user can write to, because its files are executed."""

import os
import re
import tempfile
from pathlib import Path

import pytest

from gaixie.udfs.storage import cache
from gaixie.udfs.storage.cache import cache_folder


@pytest.fixture
def places(tmp_path, monkeypatch) -> tuple[Path, Path]:
    """Returns the cache's folders below the home folder and below the temporary folder."""
    monkeypatch.delenv("GAIXIE_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path / "home/.cache/gaixie", tmp_path / f"tmp/gaixie-{os.getuid()}"


def test_nobody_else_may_write_there(places):
    assert cache_folder() == places[0]
    assert places[0].stat().st_mode & 0o777 == 0o700
    for mode, found in ((0o777, places[1]), (0o770, places[1]), (0o755, places[0])):
        places[0].chmod(mode)
        assert cache_folder() == found


def test_a_folder_of_somebody_else_is_passed_over(places, tmp_path, monkeypatch):
    """Another user's folder must not be used, even if it has the name that we would take."""
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


def test_a_folder_that_is_given_must_be_safe_too(places, tmp_path, monkeypatch, capsys):
    for mode in (0o755, 0o777):
        given = tmp_path / f"{mode:o}"
        given.mkdir()
        given.chmod(mode)
        monkeypatch.setenv("GAIXIE_CACHE_DIR", str(given))
        assert cache_folder() == cache_folder() == (given if mode == 0o755 else places[0])
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(f"GAIXIE_CACHE_DIR={given}: ignored")


def test_every_file_that_kernels_are_made_of_names_their_folder():
    """Every file with kernels, and every file it imports, must count for the folder's name; kernels
    contain their constants, and stale ones would be reused."""
    package = Path(cache.__file__).parents[1]
    compiling = re.compile(r"^ *@(?:numba\.)?(?:njit|entry|inner|inlined|summing|vectorize)", re.M)
    imported = re.compile(r"^from gaixie\.udfs\.([\w.]+) import", re.M)
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        if compiling.search(text):
            names = [str(path.relative_to(package))]
            names += [f"{name.replace('.', '/')}.py" for name in imported.findall(text)]
            for name in names:
                kept = (*cache.OF_KERNELS, "storage/")  # gives no kernel a constant
                assert name.startswith(kept), f"{path.name} needs {name}"
