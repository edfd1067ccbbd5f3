"""Two runs of one id: exactly one has it, and nothing of it is lost to the other."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from gaixie.udfs.storage.run_lock import RunLock

from gaixie.jobs.corpus.storage import LockFiles, Storage
from gaixie.jobs.scoring import pipeline
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import RunManifest
from gaixie.udfs.storage.published_files import run_faults

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def given(grow, tmp_path_factory) -> tuple:
    folder = tmp_path_factory.mktemp("input")
    for number in range(2):
        pq.write_table(grow(40, 40 * number), folder / f"{number}.parquet")
    return "--input", folder, "--origin-column", "origin", "--unit-mb", "0.001"


def test_the_second_is_refused_before_spark_starts(score, given, tmp_path, monkeypatch):
    monkeypatch.setattr("gaixie.jobs.scoring.run.begin_session", None)
    folder = tmp_path / "runs" / "r"
    for options in ((), ("--resume",), ("--take-over",)):
        with RunLock(str(folder)):
            storage.write(f"{folder}/scored/at-work", "x")
            run = score(tmp_path, *given, *options)
            assert run.code == 2
            assert f"{folder}: process " in run.error
            assert "at work since" in run.error
            assert (folder / "scored" / "at-work").exists()


def test_a_run_that_lost_its_lock_deletes_and_publishes_nothing(
    score, given, tmp_path, monkeypatch
):
    folder = tmp_path / "runs" / "r"
    write_json = Storage.write_json

    def lose_it(self, path, value):
        """Another process takes over, publishes, and ends, while this one scores."""
        write_json(self, path, value)
        if path.endswith("unit-00000.json"):
            [lock] = (folder / "_lock").iterdir()
            lock.with_name("000002.json").write_text(json.dumps(json.loads(lock.read_text())))
            (folder / "manifest.json").write_text("another's")

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "write_json", lose_it)
        run = score(tmp_path, *given)
    assert run.code == 2
    assert f"error: {folder}: was taken over by process " in run.stderr.splitlines()[-1]
    assert (folder / "manifest.json").read_text() == "another's"
    assert (folder / "_work").exists()
    assert not (folder / "scored").exists()
    assert [path.name for path in (folder / "_lock").iterdir()] == ["000002.json"]


def test_the_lock_is_gone_in_the_end(score, given, tmp_path):
    run = score(tmp_path, *given)
    assert run.code == 0, run.stderr
    assert not (run.folder / "_lock").exists()


def test_clean_leaves_a_run_at_work_alone(score, given, tmp_path):
    folder = tmp_path / "runs" / "r"
    with RunLock(str(folder)):
        storage.write(f"{folder}/_work/unit", "x")
        run = score(tmp_path, "--clean")
        assert "run r: left alone: " in run.stdout
        assert (folder / "_work" / "unit").exists()
    assert "run r: not published: deleted (1 files" in score(tmp_path, "--clean").stdout
    assert not folder.exists()


@pytest.fixture
def mounted(spark, tmp_path):
    """A folder as viewfs:// has it: a store that nothing but Hadoop knows."""
    conf = spark._jsc.hadoopConfiguration()
    (tmp_path / "mounted").mkdir()
    name = f"fs.viewfs.mounttable.{tmp_path.name.replace('_', '-')}.link./disk"
    conf.set(name, f"file://{tmp_path}/mounted")
    yield tmp_path / "mounted", f"viewfs://{tmp_path.name.replace('_', '-')}/disk"
    conf.unset(name)


def test_a_store_that_only_hadoop_knows(spark, given, score, mounted, monkeypatch):
    folder, uri = mounted
    held = []
    start = pipeline.ScoreCorpus.start

    def look(self, resume):
        held.append([path.name for path in (folder / "out/runs/r/_lock").glob("*.json")])
        start(self, resume)

    monkeypatch.setattr(pipeline.ScoreCorpus, "start", look)
    run = score(Root(f"{uri}/out"), *given)
    assert run.code == 0, run.stderr
    assert held == [["000001.json"]]
    published = folder / "out/runs/r"
    assert not list((published / "_lock").glob("*.json"))
    manifest = RunManifest.model_validate_json((published / "manifest.json").read_text())
    assert all(file.sha256 for files in manifest.files.values() for file in files)
    assert run_faults(str(published), manifest, storage.sha256) == []
    with RunLock(f"{uri}/out/runs/s", files=LockFiles(Storage(spark))):
        run = score(Root(f"{uri}/out"), *given, run_id="s")
    assert run.code == 2
    assert f"error: {uri}/out/runs/s: process " in run.error
    with RunLock(f"{uri}/out/runs/s", files=LockFiles(Storage(spark))):
        pass  # it was released


class Root(str):
    """An output that is no path."""

    def __truediv__(self, name: str) -> Path:
        return Path(self) / name
