"""A failed job must end with one line and an exit code, and nothing from py4j's log."""

import logging
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j import clientserver
from py4j.clientserver import ClientServerConnection
from py4j.protocol import Py4JError

from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.errors import JobError, run


@pytest.fixture(autouse=True)
def loggers():
    """Restores the root logger's filters and py4j's level after the test."""
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    filters, level = list(root.filters), py4j.level
    yield
    root.filters[:] = filters
    py4j.setLevel(level)


NO_PACKAGE = "An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException:\n"
NO_PACKAGE += "python3: Error while finding (ModuleNotFoundError: No module named 'gaixie')"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (JobError("pairs.csv: no column 'source'"), "pairs.csv: no column 'source'"),
        (Py4JError(NO_PACKAGE), "the executors' Python has no gaixie: ship it"),
    ],
)
def test_a_user_error_is_one_line(error, expected, capsys):
    def main():
        raise error

    assert run("score_corpus", main) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"score_corpus: error: {expected}")


def test_ctrl_c_is_one_line_whatever_py4j_logs(caplog):
    broken = SimpleNamespace(
        is_connected=True,
        stream=SimpleNamespace(close=lambda: None),
        socket=SimpleNamespace(sendall=lambda _: 1 / 0),
    )

    def main():
        # py4j's own code, over a connection that Java has closed
        ClientServerConnection.shutdown_socket(broken, 1, 2)
        path = clientserver.__file__.replace("clientserver", "java_gateway")
        record = logging.LogRecord("root", logging.ERROR, path, 1, "trace", None, None)
        logging.getLogger().handle(record)
        logging.getLogger().error("of somebody else")
        raise KeyboardInterrupt

    assert run("score_corpus", main) == 130
    assert caplog.messages == ["of somebody else"]


JAVA_TRACE = """An error occurred while calling o88.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 5.0 failed 4 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: {}
\t... 44 more
"""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            RuntimeError(JAVA_TRACE.format("No space left on device")),
            "the disk is full (No space left on device);",
        ),
        (RuntimeError(JAVA_TRACE.format("Stale file handle")), "Stale file handle;"),
        (MemoryError(), "out of memory (MemoryError)"),
        (ConnectionRefusedError(111, "Connection refused"), "Java has ended ("),
        (Py4JError("An error occurred while calling o399.getRow"), "Java has ended ("),
        (Py4JError("a.b.PythonSQLUtils does not exist in the JVM"), "Java has ended ("),
        (Py4JError("An error occurred while calling o1.f. Trace:\nno f\n"), "An error occurred"),
        (RuntimeError("two\nlines"), "two"),
        (KeyError(), "KeyError"),
    ],
)
def test_any_other_error_is_one_line_and_a_log(error, expected, capsys):
    def main():
        raise error

    assert run("score_corpus", main, "it can be resumed") == 1
    said = capsys.readouterr().err
    assert said.startswith(f"score_corpus: error: {expected}")
    line, _, log = said.rstrip("\n").rpartition(" ")
    helps = "spark.executor.memory" if isinstance(error, MemoryError) else "it can be resumed"
    assert line.endswith(f"{helps}; the full traceback is in")
    assert "Traceback" in Path(log).read_text("utf-8")
    Path(log).unlink()


def test_sigterm_is_one_line(capsys):
    def main():
        os.kill(os.getpid(), signal.SIGTERM)

    assert run("score_corpus", main, "it can be resumed") == 143
    assert capsys.readouterr().err == "score_corpus: terminated; it can be resumed\n"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_progress_without_java_says_nothing(capfd):
    """Without Java, the progress thread must stay silent; an error there would print a trace."""
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: 1 / 0))
    with progress(spark, "scoring", None):
        pass
    assert capfd.readouterr().err.startswith("scoring: done in ")
