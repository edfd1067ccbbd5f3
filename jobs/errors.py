"""Errors that end a job with one clear line and exit code 2, before or instead of a result."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable


class JobError(Exception):
    """Something that its user can mend: the message names the file, the column or the setting."""


def run(name: str, main: Callable[[], int], interrupted: str = "nothing was published") -> int:
    """Runs a job's main; a JobError becomes one line on standard error and exit code 2.

    interrupted: what to say after Ctrl-C.
    """
    logging.getLogger().addFilter(_not_of_py4j)
    try:
        return main()
    except JobError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted; {interrupted}", file=sys.stderr)
        return 130


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """py4j logs Ctrl-C with its whole trace, by the root logger, before it raises it."""
    return not record.getMessage().startswith("KeyboardInterrupt while sending command")
