"""--table: readers of an Iceberg table must see whole runs, however the adding process ends."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import boto3
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable
from scored_runs import ENVIRONMENT, ROOT, Run
from servers import PATIENCE

pytestmark = [pytest.mark.spark, pytest.mark.long]
NAME = "lake.corpus.pairs"
KILLED = """
import os, signal, sys
from gaixie.jobs import score_corpus
from gaixie.jobs.corpus.iceberg import IcebergTable
IcebergTable._publish = lambda *_: os.killpg(0, signal.SIGKILL)
score_corpus.main(sys.argv[2:])
"""
"""Runs the job, which dies between audit and publication."""
EXPIRED = """
import sys
from pyspark.sql.functions import lit
from gaixie.jobs.corpus.session import start_session
from gaixie.jobs.release_dataset import main

root, name = sys.argv[1:]
spark = start_session("test", table=True)
append = lambda run: rows.withColumn("run", lit(run)).writeTo(name).append()
rows = spark.table(name).where("run = 'r1'")
append("copy")
main(f"--root {root} --runs r1 --version 1.0 --license CC0-1.0 --table {name}".split())
append("again")
spark.sql(
    "CALL lake.system.expire_snapshots(table => 'corpus.pairs', "
    "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
)
"""
"""Makes a release between two changes of the table, then expires snapshots."""


class Lake:
    """A Hadoop catalogue on the local disk, with the runs of an output beside it."""

    def __init__(self, folder: Path, launch: Callable[..., subprocess.Popen]):
        self._launch, self.out, self.warehouse = launch, folder / "out", folder / "lake"
        self.environment = {"SPARK_CONF_DIR": str(folder)}
        settings = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "hadoop",
            ".warehouse": str(self.warehouse),
        }
        lines = [f"spark.sql.catalog.lake{key}  {value}\n" for key, value in settings.items()]
        (folder / "spark-defaults.conf").write_text("".join(lines))

    def score(self, run_id: str, *given, table: str = NAME, command=(sys.executable,)) -> Run:
        given = (*given, "--origin-column", "origin", "--table", table)
        process = self._launch(
            self.out, *given, run_id=run_id, command=command, env=self.environment
        )
        out, err = process.communicate(timeout=PATIENCE)
        return Run(process.returncode, out, err, self.out / "runs" / run_id)

    @property
    def table(self) -> StaticTable:
        return StaticTable.from_metadata(str(self.warehouse / "corpus/pairs"))

    def rows(self, run_id: str) -> pd.DataFrame:
        rows = self.table.scan(f"run == '{run_id}'").to_pandas()
        return rows.sort_values("pair_id", ignore_index=True)


@pytest.fixture(scope="module")
def pairs(grow, tmp_path_factory) -> dict[str, Path]:
    """Returns two inputs, the second with a further column, and one where its type differs."""
    folder = tmp_path_factory.mktemp("pairs")
    first, second = grow(400), grow(300, first=400)
    batch = np.arange(300)
    tables = {
        "first": first,
        "second": second.append_column("batch", pa.array(batch)),
        "other": second.append_column("batch", pa.array(batch.astype(str))),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in tables}


@pytest.fixture(scope="module")
def lake(launch, pairs, tmp_path_factory) -> Lake:
    """Returns a table with the run r1."""
    from gaixie.jobs.corpus.jars import ICEBERG, fetch_jars, jar_folder
    from gaixie.jobs.errors import JobError

    try:
        if not any((folder := jar_folder(ICEBERG)).glob("*iceberg*.jar")):
            fetch_jars(folder, jars=ICEBERG)
    except JobError as error:
        pytest.skip(str(error))
    lake = Lake(tmp_path_factory.mktemp("lake"), launch)
    run = lake.score("r1", "--input", pairs["first"])
    assert run.code == 0, run.stderr
    assert f"table {NAME}: 400 rows of run 'r1' added" in run.stdout
    return lake


def run_of(lake: Lake, run_id: str) -> Run:
    return Run(0, "", "", lake.out / "runs" / run_id)


def assert_same_rows(lake: Lake, run_id: str) -> None:
    """Asserts that a run's rows are equal in the table and in its Parquet files."""
    run, rows = run_of(lake, run_id), lake.rows(run_id)
    assert set(rows["signature"]) == {run.manifest["signature"]}
    scored = run.scored.drop(columns="reason")  # only the quarantine has it
    columns = list(scored)
    assert {*rows} - {*columns} <= {"run", "signature", "batch"}
    pd.testing.assert_frame_equal(rows[columns], scored, check_exact=True)


def test_the_table_has_the_runs_rows(lake):
    assert_same_rows(lake, "r1")
    summary = lake.table.current_snapshot().summary
    assert summary["gaixie.run"] == "r1"
    assert summary["gaixie.signature"] == run_of(lake, "r1").manifest["signature"]


def test_duckdb_reads_the_tables_files(lake):
    """DuckDB must read the files that PyIceberg names, whose columns may differ."""
    files = [task.file.file_path for task in lake.table.scan().plan_files()]
    found = duckdb.read_parquet(files, hive_partitioning=False).filter("run = 'r1'").df()
    rows = lake.rows("r1")
    found = found.sort_values("pair_id", ignore_index=True)[[*rows]]
    pd.testing.assert_frame_equal(found, rows, check_dtype=False, check_exact=True)


def test_an_audit_that_fails_publishes_nothing(lake, pairs):
    """A failed audit must leave the table unchanged; here a file lost a row after its count."""
    folder = lake.out / "runs" / "damaged"
    shutil.copytree(lake.out / "runs" / "r1", folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"run_id": "damaged"}))
    file = sorted((folder / "scored").rglob("*.parquet"))[0]
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    pq.write_table(pq.read_table(file, partitioning=None).slice(1), file)
    before = lake.table
    run = lake.score("damaged", "--input", pairs["first"], "--resume")
    assert run.code == 1
    assert "were written, but the manifest of run 'damaged' has" in run.stderr
    assert lake.rows("damaged").empty
    after = lake.table
    assert after.current_snapshot() == before.current_snapshot()
    assert after.snapshots() == before.snapshots()


def test_a_killed_process_leaves_a_run_to_add_once(lake, pairs):
    """A run that is killed before publication must be added once, with a column new to the
    table."""
    before, columns = lake.table.current_snapshot(), [*lake.rows("r1")]
    given = "--input", pairs["second"]
    killed = lake.score("r2", *given, command=(sys.executable, "-c", KILLED))
    assert killed.code == -signal.SIGKILL
    assert len(run_of(lake, "r2").scored) == 300, "the run itself is published"
    table = lake.table
    assert table.current_snapshot() == before
    (staged,) = {s.snapshot_id for s in table.snapshots()} - {before.snapshot_id}
    assert_same_rows(lake, "r1")

    resumed = lake.score("r2", *given, "--resume")
    assert resumed.code == 0, resumed.stderr
    assert_same_rows(lake, "r1")
    assert_same_rows(lake, "r2")
    assert lake.table.current_snapshot().snapshot_id == staged, "nothing was written again"
    assert [*lake.rows("r2")] == [*columns, "batch"]
    assert lake.rows("r1")["batch"].isna().all()

    version = lake.table.metadata_location
    again = lake.score("r2", *given, "--resume")
    assert again.code == 0, again.stderr
    assert f"table {NAME}: has run 'r2': nothing to add" in again.stdout
    assert lake.table.metadata_location == version

    other = lake.score("r3", "--input", pairs["other"])
    assert (other.code, other.error) == (
        2,
        f"score_corpus: error: --table {NAME}: Cannot change column type: batch: long -> string",
    )
    assert not other.folder.exists()


def test_snapshots_that_expire_leave_runs_and_tags(lake, pairs):
    """When snapshots expire, a release's tagged snapshot must stay, and so must r1's rows, though
    the snapshot that added them goes."""
    first = lake.table.snapshots()[0]
    assert first.summary["gaixie.run"] == "r1"
    done = subprocess.run(
        [sys.executable, "-c", EXPIRED, lake.out, NAME],
        cwd=ROOT,
        env=os.environ | ENVIRONMENT | lake.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    table = lake.table
    tagged, current = table.snapshot_by_name("1.0"), table.current_snapshot()
    assert f"table {NAME}: snapshot {tagged.snapshot_id} has the tag '1.0'" in done.stdout
    assert {s.snapshot_id for s in table.snapshots()} == {tagged.snapshot_id, current.snapshot_id}
    assert len({first.snapshot_id, tagged.snapshot_id, current.snapshot_id}) == 3
    assert "again" not in set(table.scan(snapshot_id=tagged.snapshot_id).to_pandas()["run"])
    run = lake.score("r1", "--input", pairs["first"], "--resume")
    assert f"table {NAME}: has run 'r1': nothing to add" in run.stdout
    assert_same_rows(lake, "r1")


def test_a_rest_catalogue(lake, launch, pairs, store, tmp_path):
    """Spark and PyIceberg must reach SeaweedFS's REST catalogue with docs/operations.md's
    settings."""
    from pyiceberg.catalog import load_catalog

    keys = store.ACCOUNTS["admin"]
    session = boto3.Session(*keys, region_name="us-east-1")
    session.client("s3tables", endpoint_url=store.endpoint).create_table_bucket(name="lake")
    settings = {
        "sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "sql.catalog.lake.type": "rest",
        "sql.catalog.lake.uri": store.catalogue,
        "sql.catalog.lake.warehouse": "s3://lake",
        "sql.catalog.lake.credential": "env:LAKE_CREDENTIAL",
        "sql.catalog.lake.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }
    lines = [f"spark.{name}  {value}\n" for name, value in settings.items()]
    (tmp_path / "spark-defaults.conf").write_text("".join(lines))
    environment = {"SPARK_CONF_DIR": str(tmp_path), "LAKE_CREDENTIAL": ":".join(keys)}
    given = ("--input", pairs["first"], "--origin-column", "origin", "--table", NAME)
    root = f"s3a://{store.BUCKET}/rest"
    process = launch(root, *given, run_id="r1", env=environment | store.environment())
    out, err = process.communicate(timeout=PATIENCE)
    assert f"table {NAME}: 400 rows of run 'r1' added" in out, err

    catalog = load_catalog(
        "lake",
        **{"type": "rest", "uri": store.catalogue, "warehouse": "s3://lake"},
        **{"credential": ":".join(keys), "s3.endpoint": store.endpoint, "s3.region": "us-east-1"},
        **dict(zip(("s3.access-key-id", "s3.secret-access-key"), keys, strict=True)),
    )
    rows = catalog.load_table("corpus.pairs").scan().to_pandas()
    alike = lake.rows("r1").drop(columns="batch", errors="ignore")  # other runs may have added it
    rows = rows.sort_values("pair_id", ignore_index=True)[[*alike]]
    pd.testing.assert_frame_equal(rows, alike, check_exact=True)
