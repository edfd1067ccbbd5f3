"""How a job ends: one line, an exit code, and nothing of py4j's log."""

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
    """The root logger's filters and py4j's level, put back behind the test."""
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    filters, level = list(root.filters), py4j.level
    yield
    root.filters[:] = filters
    py4j.setLevel(level)


def test_a_job_error_is_one_line(capsys):
    def main():
        raise JobError("pairs.csv: no column 'source'")

    assert run("score_corpus", main) == 2
    assert capsys.readouterr().err == "score_corpus: error: pairs.csv: no column 'source'\n"


def test_executors_without_the_package(capsys):
    """As Spark reports it: with the whole path of the workers' Python, and the modules' names."""
    said = """An error occurred while calling o123.parquet.
: org.apache.spark.SparkException:
Error from python worker:
  python3: Error while finding module specification for 'gaixie.jobs.corpus.warm_daemon' """
    said += "(ModuleNotFoundError: No module named 'gaixie')"

    def main():
        raise Py4JError(said)

    assert run("score_corpus", main) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("score_corpus: error: the executors' Python has no gaixie: ship it")


def test_ctrl_c_is_one_line_whatever_py4j_logs(caplog):
    broken = SimpleNamespace(
        is_connected=True,
        stream=SimpleNamespace(close=lambda: None),
        socket=SimpleNamespace(sendall=lambda _: 1 / 0),
    )

    def main():
        # py4j's own code for it, over a connection that Java has closed
        ClientServerConnection.shutdown_socket(broken, 1, 2)
        path = clientserver.__file__.replace("clientserver", "java_gateway")
        record = logging.LogRecord("root", logging.ERROR, path, 1, "trace", None, None)
        logging.getLogger().handle(record)
        logging.getLogger().error("of somebody else")
        raise KeyboardInterrupt

    assert run("score_corpus", main) == 130
    assert caplog.messages == ["of somebody else"]


def test_clearing_up_that_fails_behind_ctrl_c(capsys):
    """As where PySpark tells Java that it has done with a line of the script."""

    def main():
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JError("Answer from Java side is empty")

    assert run("score_corpus", main) == 130
    assert capsys.readouterr().err == "score_corpus: interrupted; nothing was published\n"


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
        (OSError(28, "No space left on device"), "the disk is full ([Errno 28] No space left"),
        (MemoryError(), "out of memory (MemoryError)"),
        (ConnectionRefusedError(111, "Connection refused"), "Java has ended ("),
        (Py4JError("An error occurred while calling o399.getRow"), "Java has ended ("),
        (Py4JError("An error occurred while calling z:a.b.Utils.toPyRow"), "Java has ended ("),
        (Py4JError("a.b.PythonSQLUtils does not exist in the JVM"), "Java has ended ("),
        (Py4JError("An error occurred while calling o1.f. Trace:\nno f\n"), "An error occurred"),
        (
            RuntimeError(
                "An error occurred while calling o8.f.\n: java.io.IOException: full\n\tat x"
            ),
            "full",
        ),
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
    assert line.endswith(f"{helps}; the whole trace is in")
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
    """A thread's error would print its trace, besides what the main thread says."""
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: 1 / 0))
    with progress(spark, "scoring", None):
        pass
    assert capfd.readouterr().err.startswith("scoring: done in ")
