"""Errors that end a job with one clear line and exit code 2, before or instead of a result."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path


class JobError(Exception):
    """A user error: the message names the file, the column or the setting."""


def run(name: str, main: Callable[[], int], interrupted: str = "nothing was published") -> int:
    """Runs a job's main; a JobError becomes one line on standard error and exit code 2.

    interrupted: what to say after Ctrl-C.
    """
    _silence_py4j()
    try:
        return main()
    except JobError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if session := sys.modules.get("gaixie.jobs.spark.session"):
            session.stop_interrupted()
        print(f"{name}: interrupted; {interrupted}", file=sys.stderr)
        return 130


def _silence_py4j() -> None:
    """py4j logs an interrupt, and whatever fails while it closes its connection after one, with
    the whole trace. What matters of it is raised as well; its log says nothing more."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"  # some of it goes to the root logger
