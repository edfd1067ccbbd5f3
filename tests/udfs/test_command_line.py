"""A command must end with one line and an exit code, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gaixie.udfs.command_line import UserError, log_file, run_command


def fails(error: BaseException):
    def work():
        raise error

    return work


@pytest.mark.parametrize("kind", [UserError, ValueError, FileNotFoundError])
@pytest.mark.parametrize("space", [" ", "\n "])
def test_a_mistake_is_one_line(kind, space, capsys):
    assert run_command("score", fails(kind(f"pairs.csv:{space}no column 'source'"))) == 2
    assert capsys.readouterr().err == "score: error: pairs.csv: no column 'source'\n"


JAVA_TRACE = """An error occurred while calling o88.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 5.0 failed 4 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: {}
\t... 44 more
"""


class Py4JError(Exception):
    """Its trace reads as that of py4j."""

    __module__ = "py4j.protocol"


FULL = JAVA_TRACE.format("No space left on device")
FAILURES = [
    (RuntimeError(FULL), "the disk is full (No space left on device)"),
    (RuntimeError(JAVA_TRACE.format("Stale file handle")), "Stale file handle"),
    (RuntimeError("No module named 'gaixie'"), "the executors' Python has no gaixie"),
    (ConnectionRefusedError(111, "Connection refused"), "Java has ended ("),
    (Py4JError("An error occurred while calling o399.getRow"), "Java has ended ("),
    (Py4JError("An error occurred while calling o1.f. Trace:\nno f\n"), "An error occurred"),
    (KeyError(), "KeyError"),
]


@pytest.mark.parametrize(("error", "expected"), FAILURES)
def test_another_failure_is_one_line_and_a_log(error, expected, capsys):
    assert run_command("score", fails(error), "it can be resumed", mistakes=()) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"score: error: {expected}")
    line, _, log = said.rstrip("\n").rpartition(" ")
    assert line.endswith("it can be resumed; the full traceback is in")
    assert "Traceback" in Path(log).read_text("utf-8")
    Path(log).unlink()
    files = []  # a log is kept only after a failure
    assert run_command("score", lambda: files.append(log_file())) == 0
    assert not files[0].exists()


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_is_one_line(number, code, word, capsys):
    def work():
        try:
            os.kill(os.getpid(), number)
        except KeyboardInterrupt as error:  # as a library does
            raise OSError("a read was broken off") from error

    before = signal.getsignal(number)
    assert run_command("outer", lambda: run_command("score", work, "it can be resumed")) == code
    assert capsys.readouterr().err == f"score: {word}; it can be resumed\n"
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("error", "code"), [(ValueError("no"), 2), (KeyboardInterrupt(), 130)])
def test_one_process_of_several_reports(error, code, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    assert run_command("train", fails(error)) == code
    assert capsys.readouterr().err == ""


def test_a_signal_ends_a_forked_process_without_a_word(capfd):
    def work() -> int:
        if (child := os.fork()) == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert run_command("score", work) == -signal.SIGTERM
    assert capfd.readouterr().err == ""


SCRIPT = """
import sys
from gaixie.udfs.command_line import run_command

def main():
    print("the summary，" * 10_000)
    print("progress", file=sys.stderr)

sys.exit(run_command("job", main))
"""


@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        ("", 0, "progress\n"),
        (">&-", 0, "progress\n"),
        ("2>&-", 0, ""),
        (">/dev/full", 2, "job: error: [Errno 28] No space left on device\n"),
        ("| head -c 1", 0, ""),
    ],
)
def test_an_output_that_nobody_reads(redirected, code, said, tmp_path):
    (tmp_path / "job.py").write_text(SCRIPT)
    line = f"set -o pipefail; {sys.executable} {tmp_path}/job.py {redirected}"
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=ascii_only)
    assert done.returncode == code
    assert done.stderr.removeprefix("progress\n") == said.removeprefix("progress\n")


def test_a_working_folder_that_is_deleted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert run_command("job", print) == 2
    assert "the working folder is deleted" in capsys.readouterr().err
