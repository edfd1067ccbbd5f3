"""Input files that cannot be read: which they are, and what is wrong with each."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from gaixie.jobs.errors import JobError
from gaixie.udfs.command_line import say
from gaixie.udfs.storage.storage import File

CORRUPT = "cannot be read to its end: corrupt"
PROBES = 8
"""Files that are read at once to find the one at fault."""

UNREACHABLE = (
    r"stopped SparkContext|SparkContext was shut down|No space left on device"
    r"|(?:Connect|NoRouteToHost|UnknownHost|SocketTimeout|SdkClient|AccessDenied|AWS\w*)Exception"
    r"|Master removed our application|All masters are unresponsive"
)
"""What a failure says that is no file's fault."""

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What a failed job raises."""


def unreadable_files(
    error: Exception, files: list[File], read: Callable[[list[File]], DataFrame]
) -> dict[File, str]:
    """What is wrong with each of the files that made a job fail; none where reading did not.

    Spark names the file only where its reader stumbles. A page may also turn out broken later,
    where its values are wanted: then each file is read by itself, with nothing behind it. A file is
    not at fault where its store cannot be reached, or Spark itself is at its end.

    Raises JobError for a file that is gone.
    """
    file = _named(error, files)
    if file and re.search(r"FileNotFoundException|FAILED_READ_FILE\.FILE_NOT_EXIST", str(error)):
        raise JobError(f"{file.uri}: gone since this run began to read its input") from error
    if re.search(UNREACHABLE, str(error)):
        return {}
    if file:
        reason = CORRUPT
        if "CSV header does not conform" in str(error):
            reason = "its header is not that of the other files"
        return {file: reason}

    def fault(file: File) -> str | None:
        try:
            read([file]).write.format("noop").mode("overwrite").save()
        except SPARK_ERRORS as error:
            return None if re.search(UNREACHABLE, str(error)) else CORRUPT
        return None

    with ThreadPoolExecutor(PROBES) as pool:
        faults = zip(files, pool.map(fault, files), strict=True)
    return {file: reason for file, reason in faults if reason}


def _named(error: Exception, files: list[File]) -> File | None:
    """The file that Spark says it could not read, if it says so."""
    message = unquote(str(error))  # names it as a URI: file:///a%20b
    if "FAILED_READ_FILE" not in message:
        return None
    named = [f for f in files if f.uri.partition(":")[2].lstrip("/") in message]
    return max(named, key=lambda file: len(file.uri), default=None)


def set_aside(
    faults: dict[File, str], files: list[File], corrupt: dict[str, str], on_corrupt_file: str
) -> list[File]:
    """The files that are left; those at fault are entered in corrupt.

    Raises JobError, naming one, where on_corrupt_file is "stop".
    """
    for file, reason in faults.items():
        if on_corrupt_file == "stop":
            raise JobError(f"{file.uri}: {reason}")
        corrupt[file.uri] = reason
        say(f"{file.uri}: {reason}: set aside")
    return [file for file in files if file not in faults]
