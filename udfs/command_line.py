"""What every command line of the project shares."""

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
"""Package -> the extra of ours that brings it."""


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """A parser whose help shows the description, usually a script's docstring, as it is written."""
    kind = argparse.RawDescriptionHelpFormatter
    return Parser(prog=name, description=description, formatter_class=kind)


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong: a wrong option before one that is missing."""

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
    """The type of an option that is 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return value


def above_zero(text: str) -> float:
    """The type of an option that is a number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
    return value


def in_time(seconds: float, of: str = "") -> str:
    """A time in hours or minutes, of which a short one has a tenth. of: what is before the unit."""
    if seconds >= 3600:
        return f"{seconds / 3600:,.2f} {of}hours"
    return f"{max(seconds / 60, 0.1):,.1f} {of}minutes"


def say(line: str) -> None:
    """A line of progress, on standard error: in one write, so that no other thread's line gets
    into it.
    """
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def in_words(error: Exception) -> str:
    """An error in one line; what to install where a package is missing."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return missing_package(error.name, EXTRAS.get(error.name, "metrics"))
    if type(error).__name__ == "ValidationError":  # of pydantic, which is not imported for this
        from gaixie.udfs.storage.settings import first_fault

        return first_fault(error)  # type: ignore[arg-type]
    return " ".join(str(error).split())


def missing_package(name: str, extra: str) -> str:
    """What to say of a package that an extra of ours brings."""
    return f"the package {name} is missing; pip install 'gaixie[{extra}]' brings it"


def name_missing_package(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Ends a script that cannot import a package of an extra with one line and exit code 2."""
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
    """Says whether standard output is a pipe without a reader; if so, what is left goes nowhere."""
    watch = select.poll()
    watch.register(1, 0)  # a missing reader is an error, and errors are always reported
    if left := bool(watch.poll(0)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return left


def run_command(name: str, work: Callable[[], object], *errors: type[Exception]) -> int:
    """Runs a command, and returns its exit code: what work returns where that is a number, else 0.

    A user error is one line on standard error and 2, Ctrl-C and SIGTERM one line and 130 and 143.
    A command whose reader leaves, such as head, ends with 0.
    errors: what else is a user error, beside ValueError, OSError and ImportError.
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
    """Says how an error ended a command, and returns the exit code; raises what nobody expects."""
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
