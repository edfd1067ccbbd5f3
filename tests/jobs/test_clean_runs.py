"""clean_runs must delete only unneeded runs; `unreleased` must select the right runs."""

from datetime import UTC, datetime, timedelta

import pytest
from manifests import release_manifest, run_manifest

from gaixie.jobs import clean_runs, release_dataset
from gaixie.jobs.corpus.runs import read_runs, run_locked
from gaixie.jobs.releases.store import unreleased_runs
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST

RUNS = {"a": 40, "b": 30, "c": 20, "d": 1}
"""Age of each run, in days."""


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def root(request, tmp_path, monkeypatch) -> str:
    """Returns a root with four runs; release 1.0 has run b."""
    root = str(tmp_path / "out")
    if request.param == "s3":
        store = request.getfixturevalue("admin")
        root = f"s3a://{store.BUCKET}/retention/{tmp_path.name}"
    for run_id, days in RUNS.items():
        folder, path = f"{root}/runs/{run_id}", "scored/origin=llm/stage=1/a.parquet"
        created = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
        files = {"scored": [{"path": path, "bytes": 4}]}
        manifest = run_manifest(run_id=run_id, created=created, files=files)
        storage.write(f"{folder}/{path}", "PAR1")
        storage.write(f"{folder}/{MANIFEST}", manifest.to_json())
    publish_release(root, "1.0", "b")
    return root


def publish_release(root: str, version: str, run_ids: str) -> None:
    runs = [{"created": "", "manifest_sha256": "", "rows": 1, "run_id": one} for one in run_ids]
    manifest = release_manifest(version=version, runs=runs)
    storage.write(f"{root}/releases/{version}/{MANIFEST}", manifest.to_json())


def left(root: str, *, cleaned: bool = False) -> str:
    return "".join(run.run_id for run in read_runs(root, cleaned=cleaned))


def test_what_stays(root, capsys):
    for given, kept in (
        ("--keep-days 10 --dry-run", "abcd"),
        ("--keep-days 35 --keep-runs 1", "bcd"),
        ("--keep-runs 1", "bd"),
    ):
        assert clean_runs.main([root, *given.split()]) == 0
        assert ("would be deleted" in capsys.readouterr().out) == ("--dry-run" in given)
        assert left(root) == kept
        assert left(root, cleaned=True) == "abcd"
    for run_id in "ac":
        [file] = storage.list_files(f"{root}/runs/{run_id}")
        assert file.uri.endswith(f"/{run_id}/cleaned.json")
    assert all(run.files["scored"] for run in read_runs(root))


def test_nobodys_run_goes_while_somebody_needs_it(root, capsys):
    """Runs must stay if a release is being made of them, a release's manifest is unreadable, or a
    process holds one of them."""
    started = {"version": "1.1", "runs": ["a"]}
    storage.write_json(f"{root}/releases/1.1/build-0/started.json", started)
    clean_runs.main([root, "--keep-runs", "2"])
    assert left(root) == "abcd"
    with run_locked(f"{root}/runs/c", False), pytest.raises(UserError, match="runs/c: process"):
        clean_runs.main([root, "--keep-days", "10"])
    storage.write(f"{root}/releases/1.2/{MANIFEST}", "{}")
    with pytest.raises(UserError, match=r"releases/1.2/manifest.json"):
        clean_runs.main([root, "--keep-days", "10"])
    assert left(root) == "abcd"
    with pytest.raises(UserError, match=r"releases/1.2/manifest.json"):
        release_dataset.main(["--root", root, "--list"])
    assert "1.0" in capsys.readouterr().out


def test_unreleased(root):
    assert unreleased_runs(root) == ["a", "c", "d"]
    publish_release(root, "1.1", "ac")
    assert unreleased_runs(root) == ["d"]
    for main, *given in ((clean_runs.main,), (release_dataset.main, "--list", "--root")):
        with pytest.raises(UserError, match="elsewhere: no such folder"):
            main([*given, f"{root}/elsewhere"])


def test_what_was_never_published(root, capsys):
    """Folders without a manifest must go, but not while a process works on them, nor soon after."""
    storage.write(f"{root}/runs/e/_work/unit", "x")
    storage.write(f"{root}/releases/1.1/build-0/data", "x")
    folders = [f"{root}/runs/e", f"{root}/releases/1.1/build-0"]
    assert clean_runs.main([root]) == 0
    assert capsys.readouterr().out.count("written to recently") == 2
    clean_runs.main([root, "--older-than", "0", "--dry-run"])
    assert all(map(storage.exists, folders))
    with run_locked(folders[0], False):
        clean_runs.main([root, "--older-than", "0"])
        assert storage.exists(f"{root}/runs/e/_work/unit")
    clean_runs.main([root, "--older-than", "0"])
    assert not any(map(storage.exists, folders))
    assert left(root) == "abcd"
