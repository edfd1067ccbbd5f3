"""The archive of infra/dist.py, unpacked, must score with nothing else of Python but Spark's."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from scored_runs import Run
from servers import SPARK_HOME
from shared import ROOT
from usage import output_of
from warm_up import SMALL_HEAP

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
workers = spark.sparkContext.parallelize(range(1), 1).map(files).collect()
with open(report, "w") as file:
    json.dump([files(), *workers], file)
'''


@pytest.mark.spark
@pytest.mark.long
def test_a_host_scores_from_the_archive_alone(tmp_path):
    """The archive is made without compression and kernels, which take minutes."""
    output, unpacked = tmp_path / "dist", tmp_path / "opt"
    fast = ("--no-kernels", "--compression", "0")
    said = output_of(sys.executable, ROOT / "infra/dist.py", "--output", output, *fast)
    [archive] = output.glob("*.tar.gz")
    assert f"--archives {archive.name}#gaixie" in said
    unpacked.mkdir()
    output_of("tar", "-xzf", archive, "-C", unpacked)
    archive.unlink()
    about = (unpacked / "lib").glob("python3*/site-packages/*.dist-info")
    packages = {path.name.partition("-")[0] for path in about}
    assert {"numpy", "pyarrow", "lightgbm", "boto3"} <= packages
    assert not {"torch", "pyspark", "pytest"} & packages
    python = unpacked / "bin/python"
    submit = [SPARK_HOME / "bin" / "spark-submit", "--master", "local[1]"]
    for setting in (
        f"pyspark.python={python}",
        f"pyspark.driver.python={python}",
        "driver.memory=512m",
        f"driver.defaultJavaOptions={SMALL_HEAP}",
        "driver.host=127.0.0.1",
        "ui.enabled=false",
        "sql.shuffle.partitions=2",
    ):
        submit += ["--conf", f"spark.{setting}"]
    witness, report = tmp_path / "witness.py", tmp_path / "report.json"
    witness.write_text(WITNESS)
    job = [unpacked / "jobs/score_corpus.py", "--input", ROOT / "examples/pairs.jsonl"]
    job += ["--origin-column", "origin", "--output", tmp_path / "out", "--run-id", "r"]
    kept = ("HOME", "JAVA_HOME", "TMPDIR", "GAIXIE_CACHE_DIR", "SPARK_SUBMIT_OPTS")
    bare = {name: os.environ[name] for name in kept if name in os.environ}
    bare |= {"PATH": os.defpath, "SPARK_LOCAL_IP": "127.0.0.1"}
    output_of(*submit, witness, report, *job, cwd=tmp_path, env=bare)
    for files in json.loads(report.read_text()):
        assert files[0].startswith(str(unpacked))
        own = [file for file in files if re.search(r"/(gaixie/udfs|numba|pyarrow)/", file)]
        assert len(own) > 50
        assert all(file.startswith(os.path.realpath(unpacked)) for file in own)
        for file in map(Path, files):
            of_node = file.is_relative_to(SPARK_HOME)  # stands for a node's Spark
            assert of_node or not file.is_relative_to(ROOT), file
            assert of_node or not file.is_relative_to(sys.prefix), file
    assert len(Run(0, "", "", tmp_path / "out/runs/r").scored) == 288
