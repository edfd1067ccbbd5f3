"""Ends a job with an exit code and, on failure, one line on standard error.

A user error exits with code 2; Ctrl-C and SIGTERM exit with 130 and 143. Any other error exits with
code 1; its line states the cause and names the log, which holds the whole trace and the output of
Java and Spark.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from gaixie import interrupts

CAUSES = (
    (r"No space left on device|Disk quota exceeded", "the disk is full"),
    (r"OutOfMemoryError|MemoryError", "out of memory"),
    (r"ExecutorLostFailure", "an executor was lost"),
    (r"Answer from Java side is empty|Py4JNetworkError|ConnectionRefusedError", "Java has ended"),
    # py4j raises this for an answer that broke off, without mentioning a connection. Before a
    # static call it puts z:
    (r"(?m)py4j\.protocol\.Py4JError: An error occurred while calling [\w.$:]+$", "Java has ended"),
    (r"Py4JError: [\w.$]+ does not exist in the JVM", "Java has ended"),
)
"""Maps patterns of a trace to the cause in words."""


NO_PACKAGE = "No module named 'gaixie'"
SHIP_IT = (
    "the executors' Python has no gaixie: ship it (make dist, --archives; infra/README.md), or "
    "set --conf spark.pyspark.python to a Python that has it"
)

MORE_MEMORY = "raise spark.driver.memory, or on a cluster spark.executor.memory"


class JobError(Exception):
    """A user error: the message names the file, the column or the setting."""


def run(
    name: str,
    main: Callable[[], int],
    interrupted: str = "nothing was published",
    prints: bool = False,
) -> int:
    """Runs a job's main function, and returns its exit code.

    interrupted: text to print after the cause if the job does not finish. prints: True if the
    job's purpose is its output; otherwise the job succeeds even if its summary cannot be printed.
    """
    _silence_py4j()
    output = _keep_streams()
    log_file.cache_clear()

    def finish() -> int:
        failed = False
        try:
            code, said = main(), ""
        except (Exception, KeyboardInterrupt) as error:
            code, said = _ending(error, interrupted)
            failed = code == 1
        sys.stdout.flush()
        if output and output.lost:
            code, said = code or int(prints), f"its output was lost: {output.lost.strerror}"
        if said:
            print(f"{name}: {said}", file=sys.stderr)
        if not failed and log_file.cache_info().currsize:
            log_file().unlink(missing_ok=True)
        return code

    code = interrupts.as_exceptions(finish)
    if code > 128 and interrupts.name_of_script():
        # A library's thread may still run, and Python's normal exit would not survive it.
        sys.stdout.flush()
        atexit._run_exitfuncs()
        os._exit(code)
    return code


def _ending(error: BaseException, interrupted: str) -> tuple[int, str]:
    """Returns the exit code and the last line of a job that an error ended."""
    if number := interrupts.of(error):
        if session := sys.modules.get("gaixie.jobs.corpus.session"):
            session.end_java()
        return 128 + number, f"{interrupts.WORDS[number]}; {interrupted}"
    if isinstance(error, JobError):
        return 2, f"error: {error}"
    if NO_PACKAGE in str(error):
        return 2, f"error: {SHIP_IT}"
    said = f"error: {cause(error)}"
    said += f"; {MORE_MEMORY if 'out of memory' in said else interrupted}"
    if _log_traces:
        traceback.print_exception(error)
        return 1, said
    with suppress(OSError):  # a full disk may have no room for this either
        with open(log_file(), "a", encoding="utf-8") as log:
            traceback.print_exception(error, file=log)
        said += f"; the full traceback is in {log_file()}"
    return 1, said


def cause(error: BaseException) -> str:
    """Returns what went wrong, in one line: the innermost cause in the trace."""
    trace = "".join(traceback.format_exception(error))
    for pattern, meaning in CAUSES:
        if match := re.search(pattern, trace):
            line = next(line for line in trace.splitlines() if match[0] in line)
            return f"{meaning} ({_without_class(line)})"
    inner = re.findall(r"^\s*Caused by: (.+)$", str(error), re.MULTILINE)
    text = re.sub(r"^An error occurred while calling [\w.$:]+\.\n: ", "", str(error))
    lines = [line for line in text.splitlines() if line.strip()]
    return _without_class((inner[-1:] or lines or [type(error).__name__])[0])


def _without_class(line: str) -> str:
    """Strips the class: java.io.IOException: Stale file handle -> Stale file handle."""
    line = line.strip().removeprefix("Caused by: ")
    return re.sub(r"^(?:(?:[\w$]+\.)*[\w$]+(?:Exception|Error): (?=\S))+", "", line)


_log_traces: list[bool] = []


def log_traces() -> None:
    """Prints traces instead of logging them: this process's files disappear with it."""
    _log_traces.append(True)


@cache
def log_file() -> Path:
    """Returns the file for Java's output and a trace; it is kept only if the job fails."""
    prefix = f"gaixie-{Path(sys.argv[0]).stem}-"
    number, path = tempfile.mkstemp(prefix=prefix, suffix=".log")
    os.close(number)
    return Path(path)


class Lossy(io.RawIOBase):
    """A standard stream that never fails, even if its disk is full or its reader is gone."""

    def __init__(self, number: int):
        self._number = number
        self.lost: OSError | None = None
        """Why output was lost. A reader that has seen enough, such as head, loses nothing."""

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            return os.write(self._number, data)
        except BrokenPipeError:
            return len(data)
        except OSError as error:
            self.lost = error
            return len(data)


def _keep_streams() -> Lossy | None:
    """Makes this process's standard output and error lossy; returns the output.

    If one of them is closed, the next file opened would take its number, and receive what is
    printed.
    """
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)
    output, errors = Lossy(1), Lossy(2)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Under spark-submit, standard error comes out of Java's standard output, line by line. This
        # takes Java's own, if the system shows it.
        with suppress(OSError):
            os.dup2(os.open(f"/proc/{os.getppid()}/fd/2", os.O_WRONLY | os.O_APPEND), 2)
    if sys.stderr in (None, sys.__stderr__):
        sys.stderr = _text(errors, sys.__stderr__)
    if sys.stdout not in (None, sys.__stdout__):
        return None
    sys.stdout = _text(output, sys.__stdout__)
    return output


def _text(stream: Lossy, own: TextIO | None) -> io.TextIOWrapper:
    """Wraps a stream the way Python wraps its own. own: None if it is closed."""
    encoding, errors = (own.encoding, own.errors) if own else ("utf-8", "backslashreplace")
    lines = stream.isatty() or stream.fileno() == 2
    return io.TextIOWrapper(io.BufferedWriter(stream), encoding, errors, line_buffering=lines)


def _silence_py4j() -> None:
    """Silences py4j, which logs whole traces of an interrupt and of failures while it closes its
    connection. Those that matter are raised as well."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"  # py4j also logs to the root logger
