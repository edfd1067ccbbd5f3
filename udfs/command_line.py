"""What every command line of the project shares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """A parser whose help shows the description, usually a script's docstring, as it is written."""
    kind = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=name, description=description, formatter_class=kind)


def positive(text: str) -> int:
    """The type of an option that is 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return value


def say(line: str) -> None:
    """A line of progress, on standard error."""
    print(line, file=sys.stderr, flush=True)


def in_words(error: Exception) -> str:
    """An error in one line; what to install where a package is missing."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"the package {error.name} is missing; pip install 'gaixie[metrics]' brings it"
    return " ".join(str(error).split())


def run_command(name: str, work: Callable[[], object], *errors: type[Exception]) -> int:
    """The exit code of a command: 0, or 2 after one line on standard error for a user error.

    errors: what else is a user error, beside ValueError, OSError and ImportError.
    """
    expected: tuple[type[Exception], ...] = (ValueError, OSError, ImportError, *errors)
    try:
        work()
    except expected as error:
        say(f"{name}: error: {in_words(error)}")
        return 2
    return 0
