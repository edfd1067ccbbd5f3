"""Reads the output of jobs/build_pairs.py for tests, and runs the job on the test cluster."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from servers import ObjectStore

from gaixie.udfs.storage.manifest import PairsManifest

ROOT = Path(__file__).parents[2]
HIVE = ds.HivePartitioning(pa.schema([("reason", pa.string())]))


def manifest(output: Path) -> PairsManifest:
    return PairsManifest.model_validate_json((output / "manifest.json").read_text("utf-8"))


def table(output: Path, name: str) -> pd.DataFrame:
    """Reads a table of the output, its rows sorted."""
    partitioning = HIVE if name == "quarantine" else None
    files = ds.dataset(output / name, partitioning=partitioning, format="parquet")
    rows = files.to_table().to_pandas()
    return rows.sort_values([*rows.columns[:2]], ignore_index=True)


def on_cluster(spark_submit, jars: str, store: ObjectStore, words: str) -> None:
    """Runs a script of jobs/ on the test cluster; driver and executors have the credentials of the
    store in their environments, as infra/ gives them."""
    script, *given = words.split()
    variables = [f"spark.executorEnv.{name}={value}" for name, value in store.environment().items()]
    confs = [word for variable in variables for word in ("--conf", variable)]
    command = [*spark_submit(None, "--jars", jars, *confs), ROOT / "jobs" / script, *given]
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    environment = os.environ | environment | store.environment()
    given = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([*map(str, command)], **given)
    assert done.returncode == 0, done.stderr
