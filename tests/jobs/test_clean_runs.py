"""clean_runs must delete only unneeded runs; `unreleased` must select the right runs."""

from datetime import UTC, datetime, timedelta

import pytest
from manifests import release_manifest, run_manifest

from gaixie.jobs import clean_runs
from gaixie.jobs.corpus.publish import held, read_runs
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
        publish(root, run_id, days)
    entry = {"run_id": "b", "created": "", "manifest_sha256": "", "rows": 1}
    storage.write(f"{root}/releases/1.0/{MANIFEST}", release_manifest(runs=[entry]).to_json())
    return root


def publish(root: str, run_id: str, days: int, **changes) -> None:
    folder, path = f"{root}/runs/{run_id}", "scored/origin=llm/stage=1/a.parquet"
    created = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
    files = {"scored": [{"path": path, "bytes": 4}]}
    manifest = run_manifest(run_id=run_id, created=created, files=files, **changes)
    storage.write(f"{folder}/{path}", "PAR1")
    storage.write(f"{folder}/{MANIFEST}", manifest.to_json())


def left(root: str, *, cleaned: bool = False) -> list[str]:
    return [run.run_id for run in read_runs(root, cleaned=cleaned)]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("--keep-runs", 1), "bd"),
        (("--keep-days", 35, "--keep-runs", 1), "bcd"),
        (("--keep-days", 10, "--dry-run"), "abcd"),
    ],
)
def test_what_stays(root, given, kept, capsys):
    assert clean_runs.main([root, *map(str, given)]) == 0
    assert left(root) == [*kept]
    assert left(root, cleaned=True) == [*RUNS]
    gone = {*RUNS} - {*kept}
    assert ("would be deleted" in capsys.readouterr().out) == ("--dry-run" in given)
    for run_id in gone:
        [file] = storage.list_files(f"{root}/runs/{run_id}")
        assert file.uri.endswith(f"/{run_id}/cleaned.json")
    assert all(run.files["scored"] for run in read_runs(root))


def test_nobodys_run_goes_while_somebody_needs_it(root):
    """Runs must stay if a release is being made of them, a release's manifest is unreadable, or a
    process holds one of them."""
    started = {"version": "1.1", "runs": ["a"]}
    storage.write_json(f"{root}/releases/1.1/build-0/started.json", started)
    clean_runs.main([root, "--keep-runs", "2"])
    assert left(root) == [*RUNS]
    with held(f"{root}/runs/c", False), pytest.raises(UserError, match="runs/c: process"):
        clean_runs.main([root, "--keep-days", "10"])
    storage.write(f"{root}/releases/1.2/{MANIFEST}", "{}")
    with pytest.raises(UserError, match=r"releases/1.2/manifest.json"):
        clean_runs.main([root, "--keep-days", "10"])
    assert left(root) == [*RUNS]


def test_unreleased(root):
    assert unreleased_runs(root) == ["a", "c", "d"]
    runs = [{"created": "", "manifest_sha256": "", "rows": 1, "run_id": run_id} for run_id in "ac"]
    manifest = release_manifest(version="1.1", runs=runs)
    storage.write(f"{root}/releases/1.1/{MANIFEST}", manifest.to_json())
    assert unreleased_runs(root) == ["d"]
    assert unreleased_runs(f"{root}/elsewhere") == []


def test_what_was_never_published(root, capsys):
    """Folders without a manifest must go, but not while a process works on them, nor soon after."""
    storage.write(f"{root}/runs/e/_work/unit", "x")
    storage.write(f"{root}/releases/1.1/build-0/data", "x")
    folders = [f"{root}/runs/e", f"{root}/releases/1.1/build-0"]
    assert clean_runs.main([root]) == 0
    assert capsys.readouterr().out.count("written to recently") == 2
    clean_runs.main([root, "--older-than", "0", "--dry-run"])
    assert all(map(storage.exists, folders))
    with held(folders[0], False):
        clean_runs.main([root, "--older-than", "0"])
        assert storage.exists(f"{root}/runs/e/_work/unit")
    clean_runs.main([root, "--older-than", "0"])
    assert not any(map(storage.exists, folders))
    assert left(root) == [*RUNS]


@pytest.mark.parametrize("changes", [{"run_id": "../d"}, {"files": {"scored": [{"path": "../d"}]}}])
def test_a_manifest_that_leads_elsewhere_is_refused(tmp_path, changes):
    manifest = run_manifest().model_dump(by_alias=True) | changes
    for file in manifest["files"].get("scored", []):
        file |= {"bytes": 1}
    storage.write_json(f"{tmp_path}/runs/x/{MANIFEST}", manifest)
    with pytest.raises(UserError, match=r"runs/x/manifest.json: .*\.\./d"):
        read_runs(str(tmp_path))
