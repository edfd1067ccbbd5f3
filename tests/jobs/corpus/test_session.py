"""What a session needs of its host, and how large it may grow."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from gaixie.jobs.corpus.session import begin_session, cores
from gaixie.jobs.errors import JobError


@pytest.mark.parametrize("name", ["JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_DIRS"])
def test_a_variable_that_leads_nowhere_is_named(name, monkeypatch):
    for variable in ("JAVA_HOME", "SPARK_HOME", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, "/proc/nowhere")
    with (
        pytest.raises(JobError, match=f"^{name}=/proc/nowhere: ") as refused,
        begin_session("test"),
    ):
        pass
    assert "resume" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 2),
        ({"enabled": "true"}, 2),
        ({"enabled": "true", "maxExecutors": "1000"}, 4000),
        ({"enabled": "false", "maxExecutors": "1000"}, 2),
        ({"enabled": "true", "maxExecutors": "2147483647"}, 2),
    ],
)
def test_cores_are_those_that_dynamic_allocation_may_ask_for(settings, expected):
    conf = {f"spark.dynamicAllocation.{name}": value for name, value in settings.items()}
    conf["spark.executor.cores"] = "4"
    context = SimpleNamespace(defaultParallelism=2, getConf=lambda: conf)
    assert cores(SimpleNamespace(sparkContext=context)) == expected


def test_a_home_that_may_not_be_written(tmp_path):
    """Matplotlib would print that it cannot keep its settings there."""
    code = "import gaixie.udfs, matplotlib; print(matplotlib.get_configdir())"
    given = {"HOME": "/proc/nowhere", "TMPDIR": str(tmp_path)}
    environment = {k: v for k, v in os.environ.items() if k != "GAIXIE_CACHE_DIR"} | given
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith(str(tmp_path))
