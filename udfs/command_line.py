"""Helpers that every command line of the project shares."""

from __future__ import annotations

import argparse
import os
import select
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from gaixie import interrupts

EXTRAS = {
    "openai": "llm",
    "duckdb": "browse",
    "snownlp": "segmenter",
    **dict.fromkeys(["fastapi", "uvicorn", "prometheus_client", "openpyxl"], "serve"),
}
"""Maps a package to the extra of gaixie that installs it."""


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Returns a parser whose help shows the description (usually a docstring) unwrapped."""
    kind = argparse.RawDescriptionHelpFormatter
    return Parser(prog=name, description=description, formatter_class=kind)


class Parser(argparse.ArgumentParser):
    """Reports errors in one line, and reports a wrong option before a missing one."""

    given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        if "required" in message:
            options = [word for word in self.given if word.startswith("--")]
            if wrong := [word for word in options if not self._is_known(word.split("=")[0])]:
                message = f"unrecognized arguments: {' '.join(wrong)}"
        self.exit(2, f"{self.prog}: error: {message}; --help lists the options\n")

    def _is_known(self, option: str) -> bool:
        return any(name.startswith(option) for name in self._option_string_actions)


def positive(text: str) -> int:
    """Parses an integer option that must be 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return value


def above_zero(text: str) -> float:
    """Parses a number option that must be above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
    return value


def in_time(seconds: float, of: str = "") -> str:
    """Formats a time in hours or minutes, short ones to a tenth. of: text before the unit."""
    if seconds >= 3600:
        return f"{seconds / 3600:,.2f} {of}hours"
    return f"{max(seconds / 60, 0.1):,.1f} {of}minutes"


def say(line: str) -> None:
    """Prints a line of progress on standard error, in one write so that threads do not mix."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def in_words(error: Exception) -> str:
    """Describes an error in one line; for a missing package, says what to install."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return missing_package(error.name, EXTRAS.get(error.name, "metrics"))
    if type(error).__name__ == "ValidationError":  # pydantic's, without importing pydantic
        from gaixie.udfs.storage.settings import first_fault

        return first_fault(error)  # type: ignore[arg-type]
    return " ".join(str(error).split())


def missing_package(name: str, extra: str) -> str:
    """Returns the message for a missing package that an extra of gaixie installs."""
    return f"the package {name} is missing; pip install 'gaixie[{extra}]' installs it"


def name_missing_package(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Exits with one line and code 2 when a script cannot import a package of an extra."""
    missing = getattr(error, "name", None) or "gaixie"
    if not issubclass(kind, ModuleNotFoundError) or missing.startswith("gaixie"):
        sys.__excepthook__(kind, error, trace)
        return
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    scripts = [frame for frame in frames if frame.f_globals.get("__name__") == "__main__"]
    script = Path(scripts[-1].f_code.co_filename)
    extra = "train" if script.parent.name in ("training", "service") else "metrics"
    say(f"{script.stem}: error: {missing_package(missing, extra)}")
    raise SystemExit(2)


def _nobody_reads() -> bool:
    """Tells whether stdout is a pipe without a reader; if so, discards the remaining output."""
    watch = select.poll()
    watch.register(1, 0)  # a missing reader is an error, which poll always reports
    if left := bool(watch.poll(0)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return left


def run_command(name: str, work: Callable[[], object], *errors: type[Exception]) -> int:
    """Runs a command and returns its exit code: the number that work returns, else 0.

    A user error prints one line on standard error and returns 2; Ctrl-C and SIGTERM print one line
    and return 130 and 143. If the reader of the output leaves, as head does, the code is 0.
    errors: further user errors, beside ValueError, OSError and ImportError.
    """

    def main() -> int:
        try:
            code = work()
            if sys.stdout is not None:
                sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as error:
            return _ending(name, error, (ValueError, OSError, ImportError, *errors))
        return code if type(code) is int else 0

    return interrupts.as_exceptions(main)


def _ending(name: str, error: BaseException, expected: tuple[type[Exception], ...]) -> int:
    """Reports the error that ended a command and returns the exit code; re-raises other errors."""
    if number := interrupts.of(error):
        if interrupts.tells():
            say(f"{name}: {interrupts.WORDS[number]}")
        return 128 + number
    if isinstance(error, BrokenPipeError) and _nobody_reads():
        return 0
    if not isinstance(error, expected):
        raise error
    say(f"{name}: error: {in_words(error)}")
    return 2
