"""SHA-256 of a run's files must be right, whether the driver or an executor computes it."""

import hashlib
import os
from types import SimpleNamespace

from gaixie.jobs.corpus.parquet import digests
from gaixie.udfs.storage import storage

CONTENTS = {f"{number}.parquet": bytes([number]) * 1000 for number in range(3)}


def on_executors(spark, fails: bool = False) -> SimpleNamespace:
    """Returns a session that seems remote. fails: its tasks cannot reach the store."""

    def parallelize(links, slices):
        given = "\n".join(link for _, link in links)
        assert os.environ["AWS_SECRET_ACCESS_KEY"] not in given
        assert "X-Amz-Signature=" in given
        gone = [(uri, "nowhere" if fails else link) for uri, link in links]
        return spark.sparkContext.parallelize(gone, slices)

    context = SimpleNamespace(master="spark://host", parallelize=parallelize, defaultParallelism=2)
    return SimpleNamespace(sparkContext=context)


def test_of_files_in_a_store(spark, admin, capsys):
    """Python workers that started earlier lack the credentials, so links must be signed."""
    root = f"s3a://{admin.BUCKET}/digests"
    for name, data in CONTENTS.items():
        storage.write(f"{root}/{name}", data)
    expected = {f"{root}/{n}": hashlib.sha256(data).hexdigest() for n, data in CONTENTS.items()}
    for session in (spark, on_executors(spark)):
        assert digests(session, [*expected]) == expected
    assert capsys.readouterr().err == ""
    assert digests(on_executors(spark, fails=True), [*expected]) == expected
    assert "executors cannot read" in capsys.readouterr().err
