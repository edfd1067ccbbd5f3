"""If a file of a published run changed or is gone, readers must name it and use nothing."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gaixie.jobs import release_dataset, show_run
from gaixie.jobs.releases import build
from gaixie.udfs.command_line import UserError


@pytest.fixture(scope="module")
def whole(score, grow, tmp_path_factory) -> Path:
    """Returns a root with one run."""
    root = tmp_path_factory.mktemp("whole")
    pq.write_table(grow(60), root / "in.parquet")
    done = score(root, "--input", root / "in.parquet", "--origin-column", "origin")
    assert done.code == 0, done.stderr
    return root


@pytest.fixture
def root(whole, tmp_path) -> Path:
    shutil.copytree(whole / "runs", tmp_path / "runs")
    return tmp_path


def largest(root: Path) -> Path:
    """Returns the largest file that a release reads."""
    files = list(root.rglob("scored/*/stage=[123]/*.parquet"))
    return max(files, key=lambda path: path.stat().st_size)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)


def add(path: Path) -> None:
    shutil.copy(path, path.with_name("part-more.parquet"))


FAULTS = {
    "flipped": (flip, "SHA-256 is "),
    "gone": (Path.unlink, "missing"),
    "more": (add, "not in the manifest"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_readers_refuse_it(spark, root, fault, monkeypatch, capsys):
    verify = [str(root / "runs/r"), "--verify"]
    assert show_run.main(verify) == 0
    assert capsys.readouterr().out.endswith("files: no faults\n")
    damage, message = FAULTS[fault]
    path = largest(root)
    damage(path)
    named = path.with_name("part-more.parquet") if fault == "more" else path
    assert show_run.main(verify) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("scored/origin=")
    assert message in first
    assert last.endswith("files: 1 faults")
    if fault != "flipped":  # the others are found without Spark
        monkeypatch.setattr(build, "start_session", None)
    given = ["--root", str(root), "--runs", "r", "--version", "1.0", "--license", "MIT"]
    with pytest.raises(UserError, match=message) as refused:
        release_dataset.main(given)
    assert str(refused.value).startswith(f"{named}: ")
    assert "\n" not in str(refused.value)
    assert not list(root.rglob("releases/1.0/*"))
