"""Whose fault it is that a job failed: a file's, or nobody's whom quarantine would help."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException

from gaixie.jobs.corpus.unreadable import CORRUPT, unreadable_files
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File

FILES = [File(f"file:///in/{k}.parquet", 1000, datetime(2026, 1, 1, tzinfo=UTC)) for k in range(3)]


class Table:
    """Stands for a DataFrame: reading it to its end raises what it was given, or nothing."""

    def __init__(self, error: str | None):
        self.error = error
        self.write = self

    def format(self, _: str) -> Table:
        return self

    mode = format

    def save(self) -> None:
        if self.error:
            raise PySparkException(self.error)


def failing(errors: dict[str, str]):
    return lambda files: Table(errors.get(files[0].uri))


def test_the_file_that_spark_names():
    error = PySparkException("[FAILED_READ_FILE] Encountered error reading file:///in/1.parquet")
    assert unreadable_files(error, FILES, failing({})) == {FILES[1]: CORRUPT}


def test_files_that_cannot_be_read_by_themselves():
    read = failing({FILES[0].uri: "ParquetDecodingException", FILES[2].uri: "checksum"})
    faults = unreadable_files(PySparkException("Job aborted"), FILES, read)
    assert faults == {FILES[0]: CORRUPT, FILES[2]: CORRUPT}


@pytest.mark.parametrize(
    "message",
    [
        "java.net.ConnectException: Connection refused",
        "Cannot call methods on a stopped SparkContext",
        "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request",
        "java.io.IOException: No space left on device",
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
        "java.lang.OutOfMemoryError: Java heap space",
        "Python worker exited unexpectedly (crashed)",
    ],
)
def test_no_file_is_at_fault(message):
    """Neither in the job that failed, nor in looking at each file: quarantine would lose good rows."""
    read = failing({file.uri: message for file in FILES})
    assert unreadable_files(PySparkException("Job aborted"), FILES, read) == {}
    named = PySparkException(f"[FAILED_READ_FILE] reading file:///in/1.parquet: {message}")
    assert unreadable_files(named, FILES, failing({})) == {}


def test_a_file_that_is_gone():
    message = "[FAILED_READ_FILE.FILE_NOT_EXIST] file:///in/1.parquet does not exist"
    with pytest.raises(JobError, match=r"^file:///in/1.parquet: gone since this run began"):
        unreadable_files(PySparkException(message), FILES, failing({}))


def test_a_file_that_goes_while_each_is_looked_at():
    read = failing({FILES[1].uri: "java.io.FileNotFoundException: File file:/in/1.parquet"})
    with pytest.raises(JobError, match=r"^file:///in/1.parquet: gone since this run began"):
        unreadable_files(PySparkException("Job aborted"), FILES, read)
