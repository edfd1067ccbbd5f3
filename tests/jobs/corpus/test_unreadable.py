"""A failed job must set aside only files that are at fault, and no good rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException

from gaixie.jobs.corpus.unreadable import CORRUPT, unreadable_files
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File

FILES = [File(f"file:///in/{k}.parquet", 1000, datetime(2026, 1, 1, tzinfo=UTC)) for k in range(3)]


class Table:
    """Stands for a DataFrame; reading it raises the given error, if any."""

    def __init__(self, error: str | None):
        self.error = error
        self.write = self

    def format(self, _: str) -> Table:
        return self

    mode = format

    def save(self) -> None:
        if self.error:
            raise PySparkException(self.error)


def failing(errors: dict[str, str], jobs: list[int] | None = None):
    """Returns a reader that fails if one of its files does. jobs: gets each call's file count."""

    def read(files: list[File]) -> Table:
        if jobs is not None:
            jobs.append(len(files))
        return Table(next((errors[file.uri] for file in files if file.uri in errors), None))

    return read


def test_files_are_looked_at_together():
    """One job must suffice if no file is at fault, and repeated halving if one of 1,000 is."""
    many = [File(f"file:///in/{k}.parquet", 1000, FILES[0].modified) for k in range(1000)]
    failed, jobs = PySparkException("Job aborted"), []
    assert unreadable_files(failed, many, failing({}, jobs)) == {}
    assert jobs == [1000]
    jobs.clear()
    found = unreadable_files(failed, many, failing({many[700].uri: "checksum"}, jobs))
    assert found == {many[700]: CORRUPT}
    assert len(jobs) <= 2 * 10 + 1
    jobs.clear()
    named = f"[FAILED_READ_FILE] reading {many[3].uri}: not a Parquet file"
    errors = {many[3].uri: named, many[9].uri: named.replace("/3.", "/9.")}
    assert unreadable_files(failed, many, failing(errors, jobs)) == dict.fromkeys(
        [many[3], many[9]], CORRUPT
    )
    assert jobs == [1000, 999, 998]


@pytest.mark.parametrize(
    "message",
    [
        "java.net.ConnectException: Connection refused",
        "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request",
        "java.io.IOException: No space left on device",
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
        "Python worker exited unexpectedly (crashed)",
        "org.apache.spark.memory.SparkOutOfMemoryError: Unable to acquire 65536 bytes of memory",
        "PythonException: Traceback (most recent call last): ValueError: in a function",
    ],
)
def test_no_file_is_at_fault(message):
    """Errors of the cluster must not blame a file, or quarantine would lose good rows.

    They may come from the failed job, or while the files are checked.
    """
    read = failing({file.uri: message for file in FILES})
    assert unreadable_files(PySparkException("Job aborted"), FILES, read) == {}
    named = PySparkException(f"[FAILED_READ_FILE] reading file:///in/1.parquet: {message}")
    assert unreadable_files(named, FILES, failing({})) == {}


def test_a_file_that_is_gone():
    message = "[FAILED_READ_FILE.FILE_NOT_EXIST] file:///in/1.parquet does not exist"
    with pytest.raises(
        JobError,
        match=r"^file:///in/1.parquet: removed since this run began",
    ):
        unreadable_files(PySparkException(message), FILES, failing({}))
