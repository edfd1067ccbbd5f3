"""Finds input files that cannot be read, and says what is wrong with each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from gaixie.jobs.errors import JobError
from gaixie.udfs.command_line import say
from gaixie.udfs.storage.storage import File

CORRUPT = "cannot be read to its end: corrupt"
GONE = r"FileNotFoundException|FAILED_READ_FILE\.FILE_NOT_EXIST"
CODEC = r"\.(\w+)Codec was not found"
NO_FAULT = (
    r"stopped SparkContext|SparkContext was shut down|No space left on device"
    r"|(?:Connect|NoRouteToHost|UnknownHost|SocketTimeout|SdkClient|AccessDenied|AWS\w*)Exception"
    r"|Job \d+ cancelled|Connection reset|Broken pipe|TimeoutException|Futures timed out"
    r"|Master removed our application|All masters are unresponsive"
    r"|ExecutorLostFailure|FetchFailed|TaskResultLost|TaskKilled|TaskCommitDenied|UnknownReason"
    r"|MemoryError|Cannot allocate memory|maxResultSize|Python worker|PythonException"
    r"|NoClassDefFoundError|ClassNotFoundException|NoSuchMethodError|UnsatisfiedLinkError"
)
"""Patterns of failures that the store, the cluster or the code caused, not a file."""

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""Errors that a failed Spark job raises."""

T = TypeVar("T")


def without_corrupt(
    work: Callable[[list[File]], T],
    files: list[File],
    read: Callable[[list[File]], DataFrame],
    corrupt: dict[str, str],
    on_corrupt_file: str,
) -> T | None:
    """Returns the result of work on the files; None if none of them can be read.

    If a file proves corrupt, the work runs again on the others. read, corrupt and on_corrupt_file:
    see unreadable_files and set_aside.
    """
    while files:
        try:
            return work(files)
        except SPARK_ERRORS as error:
            faults = unreadable_files(error, files, read)
            if not faults:
                raise
            files = set_aside(faults, files, corrupt, on_corrupt_file)
    return None


def unreadable_files(
    error: Exception, files: list[File], read: Callable[[list[File]], DataFrame]
) -> dict[File, str]:
    """Returns what is wrong with each of the files that made a job fail.

    Spark names the file only if its reader stumbles. A page can also prove broken later, when its
    values are used: then one job reads all files again, and if it fails, further jobs read each
    half, down to the faulty file. No file is at fault if the store cannot be reached or the cluster
    fails. Raises JobError for a file that is gone, or whose compression Spark cannot read.
    """
    if file := _named(error, files):
        reason = _fault(file, error)
        return {file: reason} if reason else {}
    return {} if re.search(NO_FAULT, str(error)) else _read_again(files, read)


def _read_again(files: list[File], read: Callable[[list[File]], DataFrame]) -> dict[File, str]:
    try:
        read(files).write.format("noop").mode("overwrite").save()
    except SPARK_ERRORS as error:
        file = _named(error, files) or (files[0] if len(files) == 1 else None)
        if file:
            reason, rest = _fault(file, error), [other for other in files if other != file]
            return {file: reason} | (_read_again(rest, read) if rest else {}) if reason else {}
        if re.search(NO_FAULT, str(error)):
            return {}
        middle = len(files) // 2
        return _read_again(files[:middle], read) | _read_again(files[middle:], read)
    return {}


def _fault(file: File, error: Exception) -> str | None:
    """Returns what is wrong with a file that could not be read; None if it is not at fault."""
    message = str(error)
    if re.search(GONE, message):
        raise JobError(f"{file.uri}: removed since this run began to read its input") from error
    if codec := re.search(CODEC, message):
        raise JobError(
            f"{file.uri}: its pages are compressed with {codec[1].lower()}, which this Spark "
            "cannot read: write the file with zstd or snappy"
        ) from error
    if re.search(NO_FAULT, message):
        return None
    if "CSV header does not conform" in message:
        return "its header differs from that of the other files"
    return CORRUPT


def _named(error: Exception, files: list[File]) -> File | None:
    """Returns the file that Spark's error names, if any."""
    message = unquote(str(error))  # names the file as a URI: file:///a%20b
    if "FAILED_READ_FILE" not in message:
        return None
    named = [f for f in files if f.uri.partition(":")[2].lstrip("/") in message]
    return max(named, key=lambda file: len(file.uri), default=None)


def set_aside(
    faults: dict[File, str], files: list[File], corrupt: dict[str, str], on_corrupt_file: str
) -> list[File]:
    """Returns the remaining files; enters the faulty ones in corrupt.

    Raises JobError that names one if on_corrupt_file is "stop".
    """
    for file, reason in faults.items():
        if on_corrupt_file == "stop":
            raise JobError(f"{file.uri}: {reason}")
        corrupt[file.uri] = reason
        say(f"{file.uri}: {reason}: set aside")
    return [file for file in files if file not in faults]
