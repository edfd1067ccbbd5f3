"""The archive of infra/dist.py, unpacked on a cluster's nodes, must score like the checkout."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from scored_runs import Run
from servers import SPARK_HOME
from warm_up import SMALL_HEAP

from gaixie.jobs.score_corpus import main

ROOT = Path(__file__).parents[2]

WITNESS = '''
"""Runs a job's main file; then says where the driver and the workers have their modules from."""
import json, runpy, sys
from pyspark.sql import SparkSession

def files(_=None):
    import gaixie.udfs.spark
    modules = [module for module in list(sys.modules.values()) if module is not None]
    return [sys.executable, *sorted({f for m in modules if (f := getattr(m, "__file__", None))})]

report, *sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as end:
    if end.code:
        raise
spark = SparkSession.getActiveSession()
workers = spark.sparkContext.parallelize(range(4), 4).map(files).collect()
with open(report, "w") as file:
    json.dump({"driver": files(), "workers": workers}, file)
'''


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """Returns an archive without compression and kernels, which take minutes."""
    output = tmp_path_factory.mktemp("dist")
    line = [sys.executable, ROOT / "infra/dist.py", "--output", output]
    done = subprocess.run(
        [*line, "--no-kernels", "--compression", "0"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.partition(": ")[0])
    assert f"--archives {path.name}#gaixie" in done.stdout
    packages = json.loads(path.with_name(path.name.replace(".tar.gz", ".json")).read_text())
    assert {"numpy", "pyarrow", "lightgbm"} <= packages["packages"].keys()
    assert not {"torch", "pyspark", "pytest"} & packages["packages"].keys()
    return path


@pytest.fixture(scope="module")
def unpacked(archive, tmp_path_factory) -> Path:
    """Returns the unpacked archive, as on the host that submits."""
    folder = tmp_path_factory.mktemp("opt")
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
    return folder


def arguments(output: Path) -> list:
    pairs = ROOT / "examples" / "pairs.jsonl"
    return ["--input", pairs, "--origin-column", "origin", "--output", output, "--run-id", "r"]


def run(line: list, folder: Path, environment: dict[str, str]) -> None:
    folder.mkdir()
    line = [str(word) for word in line]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


def test_a_cluster_scores_from_the_archive_alone(archive, unpacked, cluster, spark, tmp_path):
    settings = {
        "spark.pyspark.python": "./gaixie/bin/python",
        "spark.pyspark.driver.python": unpacked / "bin" / "python",
        "spark.executor.extraJavaOptions": os.environ["SPARK_DAEMON_JAVA_OPTS"],
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.driver.defaultJavaOptions": SMALL_HEAP,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    submit = [SPARK_HOME / "bin" / "spark-submit", "--master", cluster.url]
    submit += ["--archives", f"{archive}#gaixie"]
    for name, value in settings.items():
        submit += ["--conf", f"{name}={value}"]
    witness, report = tmp_path / "witness.py", tmp_path / "report.json"
    witness.write_text(WITNESS)
    job = [unpacked / "jobs" / "score_corpus.py", *arguments(tmp_path / "cluster")]
    kept = ("HOME", "JAVA_HOME", "TMPDIR", "GAIXIE_CACHE_DIR", "SPARK_SUBMIT_OPTS")
    bare = {name: os.environ[name] for name in kept if name in os.environ}
    bare |= {"PATH": os.defpath, "SPARK_LOCAL_IP": "127.0.0.1"}
    run([*submit, witness, report, *job], tmp_path / "elsewhere", bare)

    found = json.loads(report.read_text())
    here = os.path.realpath(unpacked)
    for files, folder in [(found["driver"], here), *((f, "/gaixie/") for f in found["workers"])]:
        own = [file for file in files if re.search(r"/(udfs|numba|pyarrow)/", file)]
        assert len(own) > 50
        assert all(folder in file for file in own)
        for file in map(Path, files):
            of_node = file.is_relative_to(SPARK_HOME)  # stands for a node's Spark
            assert of_node or not file.is_relative_to(ROOT), file
            assert of_node or not file.is_relative_to(sys.prefix), file
    assert all("/work-" in files[0] for files in found["workers"])  # in a worker's own copy
    assert any(file.endswith("/jobs/scoring/job.py") for file in found["driver"])

    assert main([str(word) for word in arguments(tmp_path / "local")]) == 0  # in this process
    ours, theirs = (Run(0, "", "", tmp_path / name / "runs/r") for name in ("local", "cluster"))
    assert len(ours.scored) == 288
    pd.testing.assert_frame_equal(theirs.scored, ours.scored, check_exact=True)
