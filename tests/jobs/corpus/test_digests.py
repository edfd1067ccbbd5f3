"""SHA-256 of files of a run, wherever the Python that computes it runs."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import pytest

from gaixie.jobs.corpus.accounts import digests
from gaixie.udfs.storage import storage

CONTENTS = {f"{number}.parquet": bytes([number]) * 1000 for number in range(3)}


def on_executors(spark, fails: bool = False) -> SimpleNamespace:
    """The session, as one whose tasks run elsewhere; fails: where they do not reach the store."""

    def parallelize(uris, slices):
        return spark.sparkContext.parallelize(
            [f"{uri}-gone" if fails else uri for uri in uris], slices
        )

    context = SimpleNamespace(master="spark://host", parallelize=parallelize, defaultParallelism=2)
    return SimpleNamespace(sparkContext=context)


@pytest.mark.parametrize("where", ["driver", "executors", "neither"])
def test_of_files_in_a_store(spark, store, where, monkeypatch, capsys):
    """Workers of Python that were started before know nothing of these credentials."""
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    root = f"s3a://{store.BUCKET}/digests"
    for name, data in CONTENTS.items():
        storage.write(f"{root}/{name}", data)
    session = spark if where == "driver" else on_executors(spark, where == "neither")
    found = digests(session, [f"{root}/{name}" for name in CONTENTS])
    expected = {f"{root}/{n}": hashlib.sha256(data).hexdigest() for n, data in CONTENTS.items()}
    assert found == expected
    assert ("executors cannot read" in capsys.readouterr().err) == (where == "neither")
