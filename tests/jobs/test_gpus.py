"""Tier full on executors with GPUs must run one task per GPU, and use the CPU without one."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from scored_runs import SUBMIT_SETTINGS, Run
from servers import PATIENCE, SPARK_HOME, Cluster, event_log

from gaixie.udfs.spscore.model import SHIPPED

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.long]
GPU = "7"
WITH_A_GPU = {"spark.executor.resource.gpu.amount": "1", "spark.executor.cores": "2"}
BATCHES = {
    "spark.sql.files.maxPartitionBytes": "4k",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
}
"""Settings that make several tasks, of whole row groups, and several batches."""


def submit(master: str, conf: dict[str, str]) -> list:
    words = [SPARK_HOME / "bin/spark-submit", "--master", master]
    for setting in (SUBMIT_SETTINGS | BATCHES | conf).items():
        words += ["--conf", "=".join(setting)]
    return words


def tasks_with_a_profile(events: Path) -> list[tuple[int, int]]:
    """Returns (launch, end in ms) of tasks whose stage has its own resource profile, in order."""
    stages, tasks = set(), []
    (log,) = events.rglob("events_*")
    for line in log.read_text("utf-8").splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerStageSubmitted":
            stage = event["Stage Info"]
            stages |= {stage["Stage ID"]} if stage["Resource Profile Id"] else set()
        elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
            launched = event["Task Info"]["Launch Time"]
            tasks.append((launched, launched + event["Task Metrics"]["Executor Run Time"]))
    assert len(stages) == 1
    return sorted(tasks)


def test_a_scoring_task_has_a_gpu_to_itself(launch, grow, tmp_path):
    """Scoring tasks must not share a GPU. Here the GPU does not exist, so the CPU must read the
    pairs, and the job must say so."""
    import pyarrow.parquet as pq

    pairs, events = tmp_path / "pairs.parquet", tmp_path / "events"
    pq.write_table(grow(80), pairs, row_group_size=10)
    events.mkdir()
    given = ("--input", pairs, "--origin-column", "origin", "--model", SHIPPED / "full")
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster")
    try:
        cluster.add_worker(cores=2, gpus=[GPU])
        command = submit(cluster.url, WITH_A_GPU | event_log(events))
        process = launch(tmp_path / "gpu", *given, command=command)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        cluster.stop()
    assert process.returncode == 0, err
    said = [line for line in err.splitlines() if line.startswith("tier full: ")]
    assert [line.partition(" failed: ")[0] for line in said] == [
        f"tier full: 80 pairs read by the CPU, since GPU {GPU}"
    ]
    tasks = tasks_with_a_profile(events)
    assert len(tasks) >= 4
    assert all(end <= begin for (_, end), (begin, _) in pairwise(tasks))

    process = launch(tmp_path / "cpu", *given, command=submit("local[1]", {}))
    _, err = process.communicate(timeout=PATIENCE)
    assert "tier full: 80 pairs read by the CPU\n" in err
    on_gpu, on_cpu = (Run(0, "", "", tmp_path / name / "runs/r") for name in ("gpu", "cpu"))
    assert on_gpu.scored.equals(on_cpu.scored)
    assert on_gpu.manifest["signature"] == on_cpu.manifest["signature"]
