"""A session checks its host for what it needs, and limits how much it may grow."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from gaixie.jobs.corpus import session
from gaixie.jobs.corpus.session import cores


@pytest.mark.parametrize(
    ("enabled", "most", "expected"),
    [("true", 0, 2), ("true", 1000, 4000), ("false", 1000, 2), ("true", 2147483647, 2)],
)
def test_cores_are_those_that_dynamic_allocation_may_ask_for(enabled, most, expected):
    names = ("dynamicAllocation.enabled", "dynamicAllocation.maxExecutors", "executor.cores")
    values = zip(names, (enabled, most, 4), strict=True)
    conf = {f"spark.{name}": value for name, value in values}
    context = SimpleNamespace(defaultParallelism=2, getConf=lambda: conf)
    assert cores(SimpleNamespace(sparkContext=context)) == expected


def test_what_the_user_set_wins(tmp_path, monkeypatch):
    """The user's settings must win, except another committer: a renaming one may lose or double
    rows, and EMR's serves only its file system. conf/spark gives the rest."""
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_HOME", "PYSPARK_PYTHON", "GAIXIE_JARS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://store:1")
    lines = [
        *("# mine", "spark.master spark://host:7077", "spark.sql.session.timeZone = Asia/Shanghai"),
        *("spark.ui.showConsoleProgress: true", "other.setting 1", "spark.x"),
        *("spark.sql.files.maxPartitionBytes \\", "  1m", "spark.python.worker.reuse\tfalse"),
        *("spark.hadoop.fs.s3a.committer.name file", "spark.sql.sources.commitProtocolClass Emr"),
    ]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    found = dict(session.settings("test", True, False).getAll())
    expected = {
        "spark.master": "spark://host:7077",
        "spark.sql.session.timeZone": "Asia/Shanghai",
        "spark.ui.showConsoleProgress": "true",
        "spark.sql.files.maxPartitionBytes": "1m",
        "spark.python.worker.reuse": "false",
        "spark.sql.ansi.enabled": "true",
        "spark.hadoop.fs.s3a.endpoint": "http://store:1",
        "spark.hadoop.fs.s3a.committer.name": "magic",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert "hadoop-aws" in found["spark.jars.packages"]
    assert found["spark.sql.sources.commitProtocolClass"].endswith("PathOutputCommitProtocol")
    assert not {"other.setting", "spark.x"} & found.keys()


def test_a_local_run_in_a_store_can_buffer_its_uploads(monkeypatch, tmp_path):
    """Hadoop's S3A casts the local file system to LocalFileSystem, which also writes .crc files."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(session.SparkContext, "_jvm", None)  # has the settings of another session
    for on_s3, system in ((True, "LocalFileSystem"), (False, "RawLocalFileSystem")):
        found = session.settings("test", on_s3, True).get("spark.hadoop.fs.file.impl")
        assert found == f"org.apache.hadoop.fs.{system}"


def test_without_java(monkeypatch, tmp_path):
    """A new process must say in one line that there is no Java."""
    work = "from gaixie.jobs.corpus.session import start_session as start\n"
    work += "from gaixie.udfs.command_line import run_command\n"
    work += "raise SystemExit(run_command('score', lambda: start('test')))"
    env = os.environ | {"JAVA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", work], env=env, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("score: error: no Java started, and Java 17 or 21 is needed: ")
    assert done.stderr.count("\n") == 1
