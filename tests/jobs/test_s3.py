"""score_corpus from s3a:// to s3a:// on a real store and cluster must be right, whatever fails."""

import hashlib
import json
import os
import re
import signal
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import s3fs
from servers import PATIENCE, SPARK_HOME, FaultProxy, wait_for
from shared import ROOT
from warm_up import SMALL_HEAP

from gaixie.jobs import score_corpus
from gaixie.udfs.command_line import UserError
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.stages import stage
from gaixie.udfs.storage.cache import cache_folder
from gaixie.udfs.text.pair_id import pair_ids

RUN = "out/runs/r"
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": os.environ["SPARK_DAEMON_JAVA_OPTS"],
    "spark.driver.memory": "512m",
    "spark.driver.defaultJavaOptions": SMALL_HEAP,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.sql.files.maxPartitionBytes": "25k",  # a row group of the pairs
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.shuffle.partitions": "2",
    # No task starts before each worker has an executor.
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.shuffle.io.retryWait": "1s",  # waited three times for a dead worker
    "spark.hadoop.fs.s3a.retry.interval": "50ms",
    "spark.hadoop.fs.s3a.retry.throttle.interval": "50ms",
    # Otherwise the SDK retries within each of these attempts, and sleeps for seconds.
    "spark.hadoop.fs.s3a.attempts.maximum": "1",
    # EMR's spark-defaults.conf names such a class, which a run must not use.
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.SQLEmrOptimizedCommitProtocol",
}
"""For a small cluster, and for data so small that a unit would be one task."""


@pytest.fixture(scope="module")
def pairs(store, grow, tmp_path_factory) -> pa.Table:
    """Puts three files into the store, each a unit of two tasks; the last repeats 120 pairs.

    Returns the 240 pairs without the repeated ones.
    """
    path, table = tmp_path_factory.mktemp("pairs") / "pairs.parquet", grow(240)
    for number, start in enumerate((0, 120, 60)):
        pq.write_table(table.slice(start, 120), path, row_group_size=60)
        store.put(f"pairs/{number}.parquet", path.read_bytes())
    return table


@pytest.fixture(scope="module")
def jars() -> str:
    """Returns the jars of conf/spark/s3a-jars.conf, for spark-submit --jars."""
    ivy = cache_folder() / "test-jars"
    ivy.mkdir(parents=True, exist_ok=True)
    (ivy / "nothing.py").touch()
    if not (found := sorted(ivy.glob("jars/*.jar"))):
        line = [SPARK_HOME / "bin/spark-submit", "--master", "local[1]"]
        line += ["--properties-file", ROOT / "conf/spark/s3a-jars.conf"]
        line += ["--conf", f"spark.jars.ivy={ivy}", ivy / "nothing.py"]
        if subprocess.run([*map(str, line)], capture_output=True).returncode:
            pytest.skip("no Maven repository has the jars")
        found = sorted(ivy.glob("jars/*.jar"))
    return ",".join(map(str, found))


def fault(number: int) -> str | None:
    """Returns the fault of a request: six 503 in every sixty, and connections that break."""
    if number % 60 >= 54:
        return "slow down"
    if number % 31 == 30:
        return "cut" if number % 2 else "reset"
    return None


def test_a_worker_and_the_driver_die_among_faults(
    store, cluster, launch, jars, pairs, model, tmp_path
):
    """The run must survive the deaths of a worker and of the driver, among 503s and broken
    connections, and leave no credentials in files, logs or the event log."""
    (tmp_path / "events").mkdir()
    proxy = FaultProxy(store.port, fault)

    def start(cores: int, *given: str) -> subprocess.Popen:
        command = [SPARK_HOME / "bin/spark-submit", "--master", cluster.url, "--jars", jars]
        conf = {"spark.cores.max": cores, "spark.eventLog.dir": (tmp_path / "events").as_uri()}
        for name, value in (SETTINGS | conf).items():
            command += ["--conf", f"{name}={value}"]
        words = ("--input", "s3a://gaixie/pairs", "--origin-column", "origin", "--unit-mb", "0.06")
        environment = store.environment(endpoint=proxy.endpoint)
        words += ("--output", "s3://gaixie/out", "--run-id", "r", "--model", model, *given)
        return launch("score_corpus.py", *words, command=command, env=environment)

    def done(unit: int) -> bool:
        return f"{RUN}/_work/unit-{unit:05d}.json" in store.keys(f"{RUN}/_work/unit")

    try:
        process = start(2)
        wait_for(lambda: done(0), "the first unit", process, every=0.3)
        cluster.kill_worker()
        wait_for(lambda: done(1), "the second unit, whoever died", process, every=0.3)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        logs = [path for path in (tmp_path / "events").rglob("*") if path.is_file()]
        events = "".join(path.read_bytes().decode("latin-1") for path in logs)
        assert '"Event":"SparkListenerExecutorRemoved"' in events
        names = [key.removeprefix(f"{RUN}/") for key in store.keys(f"{RUN}/")]
        # Whoever reads a folder ignores each file of a run that is not published.
        assert all(re.search(r"(^|/)[_.]|/$", name) for name in names)

        process = start(1, "--resume")
        output = "".join(process.communicate(timeout=PATIENCE))
        assert process.returncode == 0, output
        assert "already done" in output
    finally:
        proxy.stop()
    assert min(proxy.faults[kind] for kind in ("slow down", "reset", "cut")) >= 3, proxy.faults

    manifest = json.loads(store.read(f"{RUN}/manifest.json"))
    listed = {file["path"]: file for table in manifest["files"].values() for file in table}
    found = [key.removeprefix(f"{RUN}/") for key in store.keys(f"{RUN}/")]
    assert {*listed} == {name for name in found if name.endswith(".parquet")}
    for name, file in listed.items():
        assert hashlib.sha256(store.read(f"{RUN}/{name}")).hexdigest() == file["sha256"]
    assert not [name for name in found if re.search("_lock|__magic|_work|_tempo", name)]
    assert json.loads(store.read(f"{RUN}/scored/_SUCCESS"))["committer"] == "magic"
    check_rows(store, pairs, manifest, SPScore.load(model))

    texts = {"output": output} | {key: store.read(key).decode("latin-1") for key in store.keys(RUN)}
    for path in (*tmp_path.rglob("*"), *cluster.folder.rglob("*")):
        if path.is_file():
            texts[str(path)] = path.read_bytes().decode("latin-1")
    for word in store.ACCOUNTS["admin"]:
        assert [name for name, text in texts.items() if word in text] == []


def check_rows(store, pairs: pa.Table, manifest: dict, metric: SPScore) -> None:
    """Asserts that the run has each pair once, with the scores and the stage of the metric."""
    key, secret = store.ACCOUNTS["admin"]
    files = s3fs.S3FileSystem(key=key, secret=secret, endpoint_url=store.endpoint)
    table = ds.dataset(f"gaixie/{RUN}/scored", filesystem=files, partitioning="hive").to_table()
    rows = table.to_pandas().sort_values("n", ignore_index=True)
    assert sum(origin["duplicates"] for origin in manifest["rows"].values()) == 120
    names = ("source", "paraphrase", "origin")
    for name in ("n", *names):
        assert rows[name].astype(object).tolist() == pairs[name].to_pylist()
    texts = [pa.array(rows[name].astype(object), pa.string()) for name in names]
    assert rows["pair_id"].tolist() == pair_ids(*texts).to_pylist()
    np.testing.assert_array_equal(rows[list(OUTPUTS)], metric.outputs(*texts[:2]))
    assert rows[list(FEATURES)].notna().any().all()
    for origin, part in rows.groupby("origin", observed=True):
        cuts, least = manifest["cuts"][origin], manifest["min_meaning"][origin]
        expected = stage(part["spscore"].to_numpy(), cuts, part["meaning"].to_numpy(), least)
        assert part["stage"].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("account", "changes", "message"),
    [
        ("admin", {"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}, "the store does not accept"),
        ("reader", {}, "access denied"),
    ],
)
def test_refused(store, monkeypatch, account, changes, message):
    """A wrong account must be refused before Spark starts, without minutes of retries."""
    for name, value in (store.environment(account) | changes).items():
        monkeypatch.setenv(name, value)
    line = '{"source": "他昨天没有来学校上课。", "paraphrase": "昨天他没到学校来上课。"}'
    store.put("refused/a.jsonl", line.encode())
    monkeypatch.setattr("gaixie.jobs.corpus.session.begin_session", None)
    given = ["--input", "s3a://gaixie/refused", "--origin", "llm", "--run-id", "refused"]
    with pytest.raises((UserError, OSError), match=message):
        score_corpus.main([*given, "--output", "s3a://gaixie/out"])
    assert store.keys("out/runs/refused/") == []
