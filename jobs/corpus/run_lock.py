"""The lock that a scoring run holds from its first look at OUTPUT to its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from gaixie.jobs.corpus.paths import local_path
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.run_lock import Files, Locked, RunLock

if TYPE_CHECKING:
    from gaixie.jobs.corpus.storage import Storage


def needs_spark(folder: str) -> bool:
    """Whether a folder lies where only Spark's Hadoop reads and writes, such as HDFS."""
    return not (folder.startswith("s3a://") or local_path(folder))


@contextmanager
def held(folder: str, take_over: bool, spark_files: Storage | None = None) -> Iterator[RunLock]:
    """Holds the lock of a run's folder. spark_files: where the folder needs_spark.

    Raises JobError where another process has the run or takes it over, or nothing can be written.
    """
    files: Files = storage
    if spark_files is not None:
        from gaixie.jobs.corpus.storage import LockFiles  # which imports Spark

        files = LockFiles(spark_files)
    try:
        with ExitStack() as stack:
            try:
                lock = stack.enter_context(RunLock(folder, take_over, files=files))
            except OSError as error:
                raise JobError(str(error)) from error
            yield lock
    except Locked as error:
        raise JobError(str(error)) from error
