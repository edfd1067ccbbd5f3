"""The lock that a scoring run holds from its first look at OUTPUT to its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.paths import local_path
from gaixie.udfs.io.run_lock import Locked, RunLock


@contextmanager
def held(folder: str, take_over: bool, dry_run: bool) -> Iterator[RunLock | None]:
    """Holds the lock of a run's folder; None for a dry run, and on a file system that only Spark knows.

    Raises JobError where another process has the run or takes it over, or nothing can be written.
    """
    if dry_run or not (folder.startswith("s3a://") or local_path(folder)):
        yield None
        return
    try:
        with ExitStack() as stack:
            try:
                lock = stack.enter_context(RunLock(folder, take_over))
            except OSError as error:
                raise JobError(str(error)) from error
            yield lock
    except Locked as error:
        raise JobError(str(error)) from error
