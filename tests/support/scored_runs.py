"""Calls jobs/score_corpus.py for tests, and reads its runs."""

import functools
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from servers import SPARK_HOME
from shared import once
from warm_up import SMALL_HEAP

from gaixie.udfs.storage.cache import cache_folder

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
SUBMIT_SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": os.environ["SPARK_DAEMON_JAVA_OPTS"],
    "spark.driver.memory": "512m",
    "spark.driver.defaultJavaOptions": SMALL_HEAP,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.files.maxPartitionBytes": "56k",  # the size of a row group of in_three_units
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.shuffle.partitions": "4",
    "spark.cores.max": "2",  # no task starts before both workers have an executor
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.shuffle.io.retryWait": "1s",  # waited three times for a dead worker
}
"""Settings for a small local cluster, and for data so small that a unit would be one task."""
RATED = ("rated_structure", "rated_synonym", "rated_consistency", "rated_consistency", "rated")
FILE_PARTITIONING = ds.HivePartitioning(
    pa.schema([("origin", pa.string()), ("stage", pa.int32()), ("reason", pa.string())])
)


@dataclass
class Run:
    """The outcome of a call of the job: exit code, printed texts, the run's tables in pandas."""

    code: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def error(self) -> str:
        """Returns the one line that names the error."""
        lines = self.stderr.strip().splitlines()
        assert len(lines) == 1, self.stderr
        assert lines[0].startswith("score_corpus: error: "), self.stderr
        return lines[0]

    @cached_property
    def manifest(self) -> dict:
        return json.loads((self.folder / "manifest.json").read_text("utf-8"))

    @cached_property
    def scored(self) -> pd.DataFrame:
        """Returns all scored rows, sorted by pair_id."""
        table = read_table(self.folder / "scored").to_pandas()
        return table.sort_values("pair_id", ignore_index=True)

    @cached_property
    def quarantine(self) -> pd.DataFrame:
        """Returns all quarantined rows, sorted by their texts."""
        if not (self.folder / "quarantine").exists():
            return pd.DataFrame(columns=["source", "paraphrase", "origin", "reason"])
        table = read_table(self.folder / "quarantine").to_pandas()
        return table.sort_values(
            ["reason", "source", "paraphrase"], ignore_index=True, na_position="first"
        )

    def files(self, table: str) -> list[Path]:
        return sorted((self.folder / table).rglob("*.parquet"))


def read_table(folder: Path) -> pa.Table:
    return ds.dataset(folder, format="parquet", partitioning=FILE_PARTITIONING).to_table()


def arguments(output: Path, run_id: str, model: Path, given: Iterable) -> list[str]:
    line = ["--output", output, "--run-id", run_id, "--model", model, *given]
    return [str(word) for word in line]


@pytest.fixture(scope="session")
def examples() -> pd.DataFrame:
    """Returns the rows of examples/pairs.jsonl."""
    return pd.read_json(ROOT / "examples" / "pairs.jsonl", lines=True)


@pytest.fixture(scope="session")
def model(tmp_path_factory, examples) -> Path:
    """Returns the folder of a small metric whose scores spread the examples over all stages."""
    from gaixie.research.fitting.recipe import fit_model
    from gaixie.udfs.features import FEATURES
    from gaixie.udfs.meaning.extract import Resources
    from gaixie.udfs.spscore import OUTPUTS, Head, SPScore

    def fit(folder: Path) -> None:
        features = SPScore.load("paper").extract(examples["source"], examples["paraphrase"])[0]
        heads = {
            output: Head(fit_model(features, examples[name].to_numpy() / 5, seeds=1), FEATURES)
            for output, name in zip(OUTPUTS, RATED, strict=True)
        }
        SPScore("core", heads, resources=Resources.load().digests()).save(folder / "small")

    return once(tmp_path_factory, "metric", fit) / "small"


@pytest.fixture(scope="session")
def grow(examples) -> Callable[[int], pa.Table]:
    """Returns a function of (rows, first) that makes distinct pairs, each of two joined examples.

    Columns: n (number of the pair), source, paraphrase, origin.
    """

    def rows(count: int, first: int = 0) -> pa.Table:
        n = np.arange(first, first + count)
        a, b = n % len(examples), (n // len(examples) + 7 * n + 1) % len(examples)
        columns = {"n": pa.array(n)}
        for name in ("source", "paraphrase"):
            texts = examples[name].to_numpy()
            columns[name] = pa.array(texts[a] + texts[b], pa.string())
        columns["origin"] = pa.array(examples["origin"].to_numpy()[a], pa.string())
        return pa.table(columns)

    return rows


@pytest.fixture(scope="session")
def score(spark, model) -> Callable[..., Run]:
    """Returns a function that calls the job in this process, on the shared session."""
    from gaixie.jobs import score_corpus
    from gaixie.udfs.command_line import run_command

    def call(output: Path | str, *given, run_id: str = "r") -> Run:
        line = arguments(output, run_id, model, given)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            main = functools.partial(score_corpus.main, line)
            code = run_command("score_corpus", main, score_corpus.INTERRUPTED, mistakes=())
        return Run(code, out.getvalue(), err.getvalue(), Path(output) / "runs" / run_id)

    return call


@pytest.fixture(scope="session")
def launch(model) -> Iterator[Callable[..., subprocess.Popen]]:
    """Yields a function that starts the job in its own process group; its output is text pipes.

    command: the words before the job's file; env: added to the environment.
    """
    started: list[subprocess.Popen] = []

    def start(
        output: Path | str, *given, run_id="r", command=(sys.executable,), env=None
    ) -> subprocess.Popen:
        line = [*command, ROOT / "jobs" / "score_corpus.py"]
        line += arguments(output, run_id, model, given)
        process = subprocess.Popen(
            [str(word) for word in line],
            cwd=ROOT,
            env=os.environ | ENVIRONMENT | (env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:  # the test failed
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture(scope="session")
def translator(tmp_path_factory) -> Path:
    """Returns a small m2m100 that knows tiny_translators.CORPUS by heart, to English and back."""
    from tiny_translators import save_back_translator

    return once(tmp_path_factory, "m2m100", save_back_translator)


@pytest.fixture(scope="session")
def in_three_units(grow, tmp_path_factory) -> Path:
    """Returns a folder of three files, each a unit of four tasks; the last repeats 800 pairs."""
    folder = tmp_path_factory.mktemp("input")
    table = grow(1600)
    for number, start in enumerate((0, 800, 400)):
        part = table.slice(start, 800)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=200)
    return folder


@pytest.fixture(scope="session")
def local(score, in_three_units, tmp_path_factory) -> Run:
    """Returns the run of in_three_units in local mode."""
    given = ("--input", in_three_units, "--origin-column", "origin", "--unit-mb", "0.2")
    run = score(tmp_path_factory.mktemp("local"), *given)
    assert run.code == 0, run.stderr
    assert sum(rows["duplicates"] for rows in run.manifest["rows"].values()) == 800
    return run


@pytest.fixture(scope="session")
def jars() -> str:
    """Returns the jars of conf/spark/s3a-jars.conf, for spark-submit --jars."""
    ivy = cache_folder() / "test-jars"
    ivy.mkdir(parents=True, exist_ok=True)
    (ivy / "nothing.py").touch()
    if not (found := sorted(ivy.glob("jars/*.jar"))):
        line = [SPARK_HOME / "bin/spark-submit", "--master", "local[1]"]
        line += ["--properties-file", ROOT / "conf/spark/s3a-jars.conf"]
        line += ["--conf", f"spark.jars.ivy={ivy}", ivy / "nothing.py"]
        done = subprocess.run([*map(str, line)], env=os.environ | ENVIRONMENT, capture_output=True)
        if done.returncode:
            pytest.skip("no Maven repository has the jars")
        found = sorted(ivy.glob("jars/*.jar"))
    return ",".join(map(str, found))


@pytest.fixture(scope="session")
def spark_submit(cluster) -> Callable[..., list]:
    """Returns a function of (settings, options) that gives the command before the job's file."""

    def command(conf: dict[str, str] | None = None, *options) -> list:
        words = [SPARK_HOME / "bin" / "spark-submit", "--master", cluster.url, *options]
        for name, value in {**SUBMIT_SETTINGS, **(conf or {})}.items():
            words += ["--conf", f"{name}={value}"]
        return words

    return command
