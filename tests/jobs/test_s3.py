"""score_corpus from s3a:// to s3a:// on a real store and cluster must be right, whatever fails."""

import hashlib
import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest
from servers import (
    PATIENCE,
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
def given(store, in_three_units) -> list[str]:
    """Puts the pairs into the store. Returns options that read them in three units of four tasks."""
    for path in in_three_units.iterdir():
        store.put(f"pairs/{path.name}", path.read_bytes())
    return ["--input", "s3a://gaixie/pairs", "--origin-column", "origin", "--unit-mb", "0.2"]


@pytest.fixture(scope="module")
def expected(local) -> pd.DataFrame:
    """Returns the rows of the same run on the local disk."""
    return local.scored.drop(columns="reason")


@pytest.fixture(scope="module")
def submit(spark_submit, launch, jars):
    """Returns a function that submits the job to the cluster, for a run in the object store."""

    def start(*given, environment: dict[str, str], conf=None) -> subprocess.Popen:
        command = spark_submit(conf, "--jars", jars)
        return launch("s3://gaixie/out", *given, command=command, env=environment)

    return start


RUN = "out/runs/r"


def read_run(store: ObjectStore) -> tuple[dict, pd.DataFrame]:
    """Returns the run's manifest and its rows by pair_id; asserts that nothing else is there."""
    import s3fs

    prefix = f"{RUN}/"
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


def unpublished(store: ObjectStore) -> None:
    """Asserts that every file of the run has a name that readers of folders ignore."""
    names = [key.removeprefix(f"{RUN}/") for key in store.keys(f"{RUN}/")]
    assert "manifest.json" not in names
    shown = [name for name in names if not re.search(r"(^|/)[_.]", name) and not name.endswith("/")]
    assert not shown


def in_unit(store: ObjectStore, unit: int) -> Callable[[], bool]:
    """Returns a function that says whether the unit before this one is finished."""
    marker = f"{RUN}/_work/unit-{unit - 1:05d}.json"
    return lambda: marker in store.keys(f"{RUN}/_work/unit")


def fault(number: int) -> str | None:
    """Returns the fault of a request: six 503 in every sixty, and connections that break."""
    if number % 60 >= 54:
        return "slow down"
    if number % 31 == 30:
        return "cut" if number % 2 else "reset"
    return None


def pages_of(port: int) -> dict[str, str]:
    """Returns the pages of Spark's UI that show settings."""
    root = f"http://127.0.0.1:{port}"
    with urllib.request.urlopen(f"{root}/api/v1/applications") as page:
        api = f"{root}/api/v1/applications/{json.load(page)[0]['id']}"
    texts = {}
    for address in (f"{root}/environment/", f"{api}/environment", f"{api}/sql"):
        with urllib.request.urlopen(address) as page:
            texts[address] = page.read().decode()
    assert "fs.s3a.endpoint" in texts[f"{root}/environment/"]
    return texts


def test_a_worker_and_the_driver_die_among_faults(
    store, cluster, submit, given, expected, tmp_path, monkeypatch
):
    """The run must survive the deaths of a worker and of the driver, among 503s and broken
    connections.

    It leaves no credentials in files, logs, the event log or the UI, and clean_runs leaves it be.
    """
    port = free_port()
    conf = {f"spark.hadoop.fs.s3a.retry.{name}interval": "50ms" for name in ("", "throttle.")}
    # Otherwise the SDK retries within each of these attempts, and sleeps for seconds.
    conf |= {"spark.hadoop.fs.s3a.attempts.maximum": "1"} | OF_EMR | event_log(tmp_path)
    ui = {"spark.ui.enabled": "true", "spark.ui.port": str(port)}
    proxy = FaultProxy(store.port, fault)
    try:
        environment = store.environment(endpoint=proxy.endpoint)
        process = submit(*given, environment=environment, conf=conf | ui)
        wait_for(in_unit(store, 1), "the second unit", process, every=0.3)
        cluster.kill_worker()
        texts = pages_of(port)
        cluster.add_worker()
        wait_for(in_unit(store, 2), "the last unit, whoever died", process, every=0.3)
        assert executors_lost(tmp_path) >= 1
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        unpublished(store)

        process = submit(*given, "--resume", environment=environment, conf=conf)
        texts["output"] = "".join(process.communicate(timeout=PATIENCE))
        assert process.returncode == 0, texts["output"]
        assert "already done" in texts["output"]
    finally:
        proxy.stop()
    assert min(proxy.faults[kind] for kind in ("slow down", "reset", "cut")) >= 3, proxy.faults
    manifest, rows = read_run(store)
    same_rows(rows, expected)
    assert sum(origin["duplicates"] for origin in manifest["rows"].values()) == 800
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    assert clean_runs.main(["s3a://gaixie/out", "--older-than", "0"]) == 0
    same_rows(read_run(store)[1], expected)

    for path in (*tmp_path.rglob("*"), *cluster.folder.rglob("*")):
        if path.is_file():
            texts[str(path)] = path.read_bytes().decode("latin-1")
    for key in store.keys(f"{RUN}/"):
        texts[key] = store.read(key).decode("latin-1")
    for word in store.ACCOUNTS["admin"]:
        assert [name for name, text in texts.items() if word in text] == []


NOT_ACCEPTED = "the store does not accept the credentials"
REFUSED = {
    "unknown key": ({"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}, "s3a://gaixie/out", NOT_ACCEPTED),
    "read only": ("reader", "s3a://gaixie/out", "access denied"),
    "no bucket": ({}, "s3a://no-such-bucket/out", "no such bucket"),
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
    monkeypatch.setattr("gaixie.jobs.corpus.session.begin_session", None)
    run = score(output, "--input", "s3a://gaixie/refused", "--origin", "llm", run_id="refused")
    assert run.code == 2
    assert message in run.error
    assert store.keys("out/runs/refused/") == []


OF_EMR = {
    "spark.sql.parquet.output.committer.class": (
        "com.amazon.emr.committer.EmrOptimizedSparkSqlParquetOutputCommitter"
    ),
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLEmrOptimizedCommitProtocol"
    ),
}
"""Settings of EMR's spark-defaults.conf; a run that used these classes would fail here."""
