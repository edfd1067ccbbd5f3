"""Calls jobs/score_corpus.py for tests, and reads its runs."""

import functools
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from shared import ROOT, once

ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
RATED = ("rated_structure", "rated_synonym", "rated_consistency", "rated_consistency", "rated")
PARTS = {"origin": pa.string(), "stage": pa.int32(), "reason": pa.string()}
PARTITIONING = ds.HivePartitioning(pa.schema(PARTS))


@dataclass
class Run:
    """The outcome of a call of the job: exit code, printed texts, the run's tables in pandas."""

    code: int
    stdout: str
    stderr: str
    folder: Path

    @cached_property
    def manifest(self) -> dict:
        return json.loads((self.folder / "manifest.json").read_text("utf-8"))

    @cached_property
    def scored(self) -> pd.DataFrame:
        """Returns all scored rows, sorted by pair_id."""
        return self._table("scored").sort_values("pair_id", ignore_index=True)

    @cached_property
    def quarantine(self) -> pd.DataFrame:
        return self._table("quarantine")

    def _table(self, name: str) -> pd.DataFrame:
        files = ds.dataset(self.folder / name, format="parquet", partitioning=PARTITIONING)
        return files.to_table().to_pandas()

    def files(self, table: str) -> list[Path]:
        return sorted((self.folder / table).rglob("*.parquet"))


@pytest.fixture(scope="session")
def examples() -> pd.DataFrame:
    """Returns the rows of examples/pairs.jsonl."""
    return pd.read_json(ROOT / "examples" / "pairs.jsonl", lines=True)


@pytest.fixture(scope="session")
def model(tmp_path_factory, examples) -> Path:
    """Returns the folder of a small metric whose scores spread the examples over all stages."""
    from gaixie.research.fitting.recipe import fit_model
    from gaixie.udfs.features import FEATURES
    from gaixie.udfs.meaning.core_features import Resources
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
        line = [*map(str, ("--output", output, "--run-id", run_id, "--model", model, *given))]
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            main = functools.partial(score_corpus.main, line)
            code = run_command("score_corpus", main, score_corpus.INTERRUPTED, mistakes=())
        return Run(code, out.getvalue(), err.getvalue(), Path(output) / "runs" / run_id)

    return call


@pytest.fixture
def launch() -> Iterator[Callable[..., subprocess.Popen]]:
    """Yields a function that starts a job in its own process group; its output is text pipes.

    command: the words before the job's file; env: added to the environment.
    """
    started: list[subprocess.Popen] = []

    def start(job: str, *given, command=(sys.executable,), env=None) -> subprocess.Popen:
        process = subprocess.Popen(
            [*map(str, (*command, ROOT / "jobs" / job, *given))],
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
