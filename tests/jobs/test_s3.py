"""score_corpus from s3a:// to s3a:// on a real store and cluster must be right, whatever fails."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest
from scored_runs import SUBMIT_SETTINGS
from servers import (
    PATIENCE,
    SPARK_HOME,
    Cluster,
    FaultProxy,
    ObjectStore,
    event_log,
    executors_lost,
    free_port,
    wait_for,
)

from gaixie.jobs import clean_runs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def given(store, in_four_units) -> list[str]:
    """Puts the pairs into the store. Returns options that read them in four units of four tasks."""
    for path in in_four_units.iterdir():
        store.put(f"pairs/{path.name}", path.read_bytes())
    return ["--input", "s3a://gaixie/pairs", "--origin-column", "origin", "--unit-mb", "0.001"]


@pytest.fixture(scope="module")
def expected(local) -> pd.DataFrame:
    """Returns the rows of the same run on the local disk."""
    return local.scored.drop(columns="reason")


@pytest.fixture(scope="module")
def submit(spark_submit, launch, jars):
    """Returns a function that submits the job to the cluster, for a run in the object store."""

    def start(run_id: str, *given, environment: dict[str, str], conf=None) -> subprocess.Popen:
        command = spark_submit(conf, "--jars", jars)
        return launch("s3://gaixie/out", *given, run_id=run_id, command=command, env=environment)

    return start


def end(process: subprocess.Popen) -> str:
    """Waits for a process, asserts that it ended well, and returns what it printed."""
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, stdout + stderr
    return stdout + stderr


def read_run(store: ObjectStore, run_id: str) -> tuple[dict, pd.DataFrame]:
    """Returns a run's manifest and its rows by pair_id; asserts that nothing else is there."""
    import s3fs

    prefix = f"out/runs/{run_id}/"
    manifest = json.loads(store.read(f"{prefix}manifest.json"))
    files = [file["path"] for table in manifest["files"].values() for file in table]
    found = [key.removeprefix(prefix) for key in store.keys(prefix)]
    assert sorted(files) == sorted(name for name in found if name.endswith(".parquet"))
    for file in (file for table in manifest["files"].values() for file in table):
        data = store.read(f"{prefix}{file['path']}")
        assert hashlib.sha256(data).hexdigest() == file["sha256"]
    assert not [name for name in found if "_lock" in name]
    assert not [name for name in found if "__magic" in name or "_work" in name or "_tempo" in name]
    assert json.loads(store.read(f"{prefix}scored/_SUCCESS"))["committer"] == "magic"

    key, secret = store.ACCOUNTS["admin"]
    files = s3fs.S3FileSystem(
        key=key, secret=secret, endpoint_url=store.endpoint, skip_instance_cache=True
    )
    table = ds.dataset(f"gaixie/{prefix}scored", filesystem=files, partitioning="hive").to_table()
    rows = table.to_pandas().sort_values("pair_id", ignore_index=True)
    return manifest, rows


def same_rows(rows: pd.DataFrame, expected: pd.DataFrame) -> None:
    rows = rows[expected.columns].astype(expected.dtypes)
    pd.testing.assert_frame_equal(rows, expected, check_exact=True)


def unpublished(store: ObjectStore, run_id: str) -> None:
    """Asserts that every file of the run has a name that readers of folders ignore."""
    names = [key.removeprefix(f"out/runs/{run_id}/") for key in store.keys(f"out/runs/{run_id}/")]
    assert "manifest.json" not in names
    shown = [name for name in names if not re.search(r"(^|/)[_.]", name) and not name.endswith("/")]
    assert not shown


def in_unit(store: ObjectStore, run_id: str, unit: int) -> Callable[[], bool]:
    """Returns a function that says whether the unit before this one is finished."""
    marker = f"out/runs/{run_id}/_work/unit-{unit - 1:05d}.json"
    return lambda: marker in store.keys(f"out/runs/{run_id}/_work/unit")


def test_a_worker_and_the_store_die_and_no_credentials_are_left(
    store, cluster, submit, given, expected, tmp_path
):
    """The run must survive a worker and the store, and leave no credentials in files, logs, the
    event log or the UI's environment page."""
    port = free_port()
    conf = {"spark.ui.enabled": "true", "spark.ui.port": str(port)} | event_log(tmp_path)
    process = submit("secrets", *given, environment=store.environment(), conf=conf)
    wait_for(in_unit(store, "secrets", 1), "the second unit", process, every=0.3)
    cluster.kill_worker()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/environment/") as page:
        texts = {"environment page": page.read().decode()}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/applications") as page:
        application = json.load(page)[0]["id"]
    for name in ("environment", "sql", "executors"):
        address = f"http://127.0.0.1:{port}/api/v1/applications/{application}/{name}"
        with urllib.request.urlopen(address) as page:
            texts[name] = page.read().decode()
    cluster.add_worker()
    wait_for(in_unit(store, "secrets", 3), "the last unit, whoever died", process, every=0.3)
    assert executors_lost(tmp_path) >= 1

    store.kill()
    store.start()
    stdout, stderr = process.communicate(timeout=PATIENCE)
    texts["output"] = stdout + stderr
    if process.returncode:  # it may fail, but cleanly
        assert process.returncode in (1, 2), texts["output"]
        unpublished(store, "secrets")
        again = submit("secrets", *given, "--resume", environment=store.environment())
        texts["second output"] = end(again)
    for name in ("output", "second output"):
        assert "executors cannot read" not in texts.get(name, "")  # executors computed the digests
    manifest, rows = read_run(store, "secrets")
    same_rows(rows, expected)
    assert sum(origin["duplicates"] for origin in manifest["rows"].values()) == 1200

    assert "fs.s3a.endpoint" in texts["environment page"]
    events = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert events
    for path in [*events, *(path for path in cluster.folder.rglob("*") if path.is_file())]:
        texts[str(path)] = path.read_bytes().decode("latin-1")
    for key in store.keys("out/runs/secrets/"):
        texts[key] = store.read(key).decode("latin-1")
    for word in store.ACCOUNTS["admin"]:
        assert [name for name, text in texts.items() if word in text] == []


def fault(number: int) -> str | None:
    """Returns the fault of a request: six 503 in every sixty, and connections that break."""
    if number % 60 >= 54:
        return "slow down"
    if number % 31 == 30:
        return "cut" if number % 2 else "reset"
    return None


def test_the_driver_dies_among_faults_and_its_uploads_are_cleaned(
    store, submit, given, expected, monkeypatch
):
    """A run must resume despite 503s and broken connections after its driver was killed.

    Its abandoned uploads must be invisible, and clean_runs must abort them.
    """
    conf = {f"spark.hadoop.fs.s3a.retry.{name}interval": "50ms" for name in ("", "throttle.")}
    # Otherwise the SDK retries within each of these attempts, and sleeps for seconds.
    conf["spark.hadoop.fs.s3a.attempts.maximum"] = "1"
    proxy = FaultProxy(store.port, fault)
    try:
        environment = store.environment(endpoint=proxy.endpoint)
        process = submit("driver", *given, environment=environment, conf=conf | OF_EMR)
        wait_for(in_unit(store, "driver", 2), "the third unit", process, every=0.3)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        unpublished(store, "driver")
        client = store.client()
        key = "out/runs/driver/scored/origin=llm/stage=1/part-0.parquet"
        upload = client.create_multipart_upload(Bucket=store.BUCKET, Key=key)["UploadId"]
        part = {"Bucket": store.BUCKET, "Key": key, "UploadId": upload, "PartNumber": 1}
        client.upload_part(**part, Body=b"PAR1 and then the power went")
        unpublished(store, "driver")

        proxy.faults.clear()
        end(submit("driver", *given, "--resume", environment=environment, conf=conf | OF_EMR))
    finally:
        proxy.stop()
    assert min(proxy.faults[kind] for kind in ("slow down", "reset", "cut")) >= 3, proxy.faults
    same_rows(read_run(store, "driver")[1], expected)
    left = uploads(store, "out/runs/driver/")
    assert left >= 1
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    assert clean_runs.main(["s3a://gaixie/out", "--older-than", "0"]) == 0
    assert uploads(store, "out/runs/driver/") == 0
    same_rows(read_run(store, "driver")[1], expected)


def uploads(store: ObjectStore, prefix: str = "") -> int:
    found = store.client().list_multipart_uploads(Bucket=store.BUCKET, Prefix=prefix)
    return len(found.get("Uploads", ()))


NOT_ACCEPTED = "the store does not accept the credentials"
REFUSED = {
    "wrong secret": ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "s3a://gaixie/out", NOT_ACCEPTED),
    "unknown key": ({"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}, "s3a://gaixie/out", NOT_ACCEPTED),
    "read only": ("reader", "s3a://gaixie/out", "access denied"),
    "no bucket": ({}, "s3a://no-such-bucket/out", "no such bucket"),
    "no server": (
        {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"},
        "s3://gaixie/out",
        "cannot be reached",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(store, score, monkeypatch, case):
    """A wrong account or store must give one line and exit code 2, before Spark starts, without
    minutes of retries."""
    change, output, message = REFUSED[case]
    environment = store.environment("reader" if change == "reader" else "admin")
    environment |= change if isinstance(change, dict) else {}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    line = '{"source": "他昨天没有来学校上课。", "paraphrase": "昨天他没到学校来上课。"}'
    store.client().put_object(Bucket=store.BUCKET, Key="refused/a.jsonl", Body=line.encode())
    monkeypatch.setattr("gaixie.jobs.scoring.run.begin_session", None)
    run = score(output, "--input", "s3a://gaixie/refused", "--origin", "llm", run_id="refused")
    assert run.code == 2
    assert message in run.error
    assert store.keys("out/runs/refused/") == []


@pytest.mark.long
def test_executors_fetch_their_python_from_the_store(
    store, given, jars, launch, tmp_path, monkeypatch
):
    """Executors must get their Python by --archives; keys are in the workers' environment, as a
    machine's role would be."""
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    packed = shutil.make_archive(str(tmp_path / "python"), "gztar", tmp_path, "bin")
    store.client().upload_file(packed, store.BUCKET, "python.tar.gz")
    on_path = jars.replace(",", ":")
    conf = SUBMIT_SETTINGS | {
        "spark.executor.extraClassPath": on_path,
        "spark.driver.extraClassPath": on_path,
        "spark.pyspark.python": "./gaixie/bin/python",
        "spark.pyspark.driver.python": sys.executable,
    }
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster")
    try:
        cluster.add_worker(cores=2)
        command = [SPARK_HOME / "bin/spark-submit", "--master", cluster.url]
        command += ["--archives", "s3a://gaixie/python.tar.gz#gaixie"]
        for setting in conf.items():
            command += ["--conf", "=".join(setting)]
        line = ("s3://gaixie/out", *given, "--limit", 100)
        end(launch(*line, run_id="archive", command=command))
        assert any((tmp_path / "cluster").glob("work-*/app-*/*/gaixie/bin/python"))
    finally:
        cluster.stop()
    assert "out/runs/archive/manifest.json" in store.keys("out/runs/archive/")


OF_EMR = {
    "spark.sql.parquet.output.committer.class": (
        "com.amazon.emr.committer.EmrOptimizedSparkSqlParquetOutputCommitter"
    ),
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLEmrOptimizedCommitProtocol"
    ),
}
"""Settings of EMR's spark-defaults.conf; a run that used these classes would fail here."""


def test_no_other_committer_is_used():
    """A renaming committer may lose or double rows; EMR's serves only its file system."""
    from pyspark import SparkConf

    from gaixie.jobs.corpus import s3a
    from gaixie.jobs.corpus.user_settings import read_settings

    conf = SparkConf(loadDefaults=False).set("spark.jars.packages", "none")
    conf.setAll([*OF_EMR.items(), ("spark.hadoop.fs.s3a.committer.name", "file")])
    s3a.prepare(conf)
    defaults = read_settings(ROOT / "conf/spark/s3a.conf")
    assert {key: conf.get(key) for key in s3a.COMMITTER} == {
        key: defaults[key] for key in s3a.COMMITTER
    }


def test_jars_that_cannot_be_had(tmp_path, monkeypatch):
    """A host that reaches no Maven repository must give one line, and leave no jars."""
    (tmp_path / "ivy.xml").write_text(
        "<ivysettings><settings defaultResolver='none'/><resolvers>"
        f"<filesystem name='none'><artifact pattern='{tmp_path}/no/[artifact].jar'/></filesystem>"
        "</resolvers></ivysettings>"
    )
    line = [sys.executable, ROOT / "jobs/fetch_jars.py", tmp_path / "jars"]
    line += ["--conf", f"spark.jars.ivySettings={tmp_path}/ivy.xml"]
    done = subprocess.run(list(map(str, line)), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "GAIXIE_JARS" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "jars").exists()
