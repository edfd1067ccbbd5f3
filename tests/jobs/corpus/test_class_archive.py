"""The archive of Spark's classes: who reads it, who writes it, and what it must never be."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from gaixie.jobs.corpus.class_archive import archive_options

from gaixie.jobs.corpus import class_archive
from gaixie.jobs.corpus.early import local_bytes
from gaixie.jobs.corpus.settings import Input


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    for name in class_archive.OPTIONS + class_archive.FOLDERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GAIXIE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for name in ("JAVA_HOME", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "java").write_text("")
    (tmp_path / "java").chmod(0o755)
    return tmp_path / "cache"


def test_only_small_work_writes_it_and_all_read_it(cache):
    assert archive_options(write=False) == []
    (option,) = archive_options(write=True)[1:]
    name, _, part = option.partition("=")
    assert name == "-XX:ArchiveClassesAtExit"
    archive = Path(part).with_suffix(".jsa")
    assert archive.parent == cache
    archive.touch()
    for write in (False, True):
        assert archive_options(write)[1:] == [f"-XX:SharedArchiveFile={archive}"]


def test_another_java_has_another_one(tmp_path):
    before = archive_options(write=True)
    os.utime(tmp_path / "java", (1, 1))
    assert archive_options(write=True) != before


def test_none_where_the_user_has_one_or_java_would_not_understand(monkeypatch, tmp_path):
    monkeypatch.setenv("GAIXIE_CACHE_DIR", str(tmp_path / "a folder"))
    assert archive_options(write=True) == []  # Spark would take it for two options
    monkeypatch.setenv("GAIXIE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:SharedArchiveFile=mine")
    assert archive_options(write=True) == []
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    assert archive_options(write=True)
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert archive_options(write=True) == []


def test_what_is_small(tmp_path):
    (tmp_path / "a.csv").write_text("x" * 70)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/c.csv").write_text("x" * 30)

    def size(*paths: str) -> float:
        return local_bytes(Input(path=path, origin="llm") for path in paths)

    assert size(f"{tmp_path}/a.csv", f"file:{tmp_path}/b") == 100
    for path in ("s3a://bucket/a.csv", f"{tmp_path}/*.csv"):  # nobody knows before Spark has looked
        assert size(f"{tmp_path}/a.csv", path) == float("inf")
    (tmp_path / "b/d.csv.gz").write_text("x")
    assert size(f"{tmp_path}/b") == float("inf")


def test_archives_of_sparks_that_are_gone_are_deleted(cache):
    cache.mkdir()
    month = class_archive.UNUSED_DAYS * 86400
    for name, age in (
        ("spark-new.jsa", month - 3600),
        ("spark-old.jsa", month + 60),
        ("jieba.bin", 2 * month),
    ):
        (cache / name).touch()
        os.utime(cache / name, (time.time() - age,) * 2)
    class_archive._prune(cache)
    assert {path.name for path in cache.iterdir()} == {"spark-new.jsa", "jieba.bin"}
