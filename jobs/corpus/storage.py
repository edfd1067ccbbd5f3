"""Reads and writes the files of a run through Hadoop: local paths, S3 and HDFS alike.

For jobs that have a Spark session, with its settings and credentials; hdfs:// too. What needs no
session is in udfs/storage/storage.py, whose names the methods here have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File, to_json

REFUSALS = {
    "SignatureDoesNotMatch": "wrong credentials: the secret key does not belong to the access key",
    "InvalidAccessKeyId": "wrong credentials: the store does not know this access key",
    "NoAuthWithAWSException": "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "Unable to load credentials": "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "AccessDeniedException": "access denied: wrong credentials, or they have no right to it",
    "UnknownStoreException": "no such bucket",
    "NoSuchBucket": "no such bucket",
}
"""Signs of errors that no retry helps against, the plainest first."""


LITERAL = {"__globPaths__": "false"}
"""The option with which Spark's readers take the names of files as they are: [, {, * and ? are
letters."""


class Storage:
    """Reads, writes and lists through Spark's own Hadoop configuration and credentials."""

    def __init__(self, spark: SparkSession):
        self._jvm: Any = spark._jvm
        self._conf = spark._jsc.hadoopConfiguration()

    def _open(self, path: str) -> tuple[Any, Any]:
        """Returns Hadoop's (FileSystem, Path) of a path."""
        try:
            with explained(path):
                hadoop_path = self._jvm.org.apache.hadoop.fs.Path(path)
                system = hadoop_path.getFileSystem(self._conf)
        except Py4JJavaError as error:  # no such scheme, no URI
            raise JobError(f"{path}: {error.java_exception.toString().splitlines()[0]}") from error
        if system.getScheme() == "file":
            system.setWriteChecksum(False)
        return system, hadoop_path

    def exists(self, path: str) -> bool:
        system, hadoop_path = self._open(path)
        with explained(path):
            return system.exists(hadoop_path)

    def list_files(self, path: str) -> list[File]:
        """Data files of a file, folder (all levels) or glob, in order of their paths.

        Names that begin with "_" or "." are not data. Raises JobError where nothing is there.
        """
        system, pattern = self._open(path)
        with explained(path):
            if system.exists(pattern):  # a name may hold what else makes a pattern
                roots = [pattern]
            else:
                roots = [status.getPath() for status in system.globStatus(pattern) or ()]
            if not roots:
                raise JobError(f"{path}: no such file or folder")
            files = [
                file
                for root in roots
                for file in self._files(system, system.getFileStatus(root).getPath())
            ]
        return sorted(files, key=lambda file: file.uri)

    def _files(self, system: Any, root: Any) -> Iterator[File]:
        base = root.toString()
        iterator = system.listFiles(root, True)
        while iterator.hasNext():
            status = iterator.next()
            name = status.getPath().toString()
            parts = name[len(base) :].split("/") if name != base else []
            if not any(part.startswith(("_", ".")) for part in parts):
                modified = datetime.fromtimestamp(status.getModificationTime() / 1000, UTC)
                yield File(name, status.getLen(), modified)

    def delete(self, path: str) -> None:
        system, hadoop_path = self._open(path)
        with explained(path):
            system.delete(hadoop_path, True)

    def read_bytes(self, path: str) -> bytes:
        system, hadoop_path = self._open(path)
        with explained(path):
            stream = system.open(hadoop_path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def read_json(self, path: str) -> dict[str, Any]:
        return json.loads(self.read_bytes(path))

    def write(self, path: str, content: str | bytes) -> None:
        """Writes a whole file: it appears complete or not at all.

        On a file system, through a hidden sibling and a rename; an object store shows an object
        only once it is complete.
        """
        system, hadoop_path = self._open(path)
        data = content.encode() if isinstance(content, str) else content
        target = hadoop_path
        renames = system.getScheme() in ("file", "hdfs", "viewfs")
        if renames:
            target = self._jvm.org.apache.hadoop.fs.Path(
                hadoop_path.getParent(), f".{hadoop_path.getName()}.part"
            )
        with explained(path):
            stream = system.create(target, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
            if renames:
                system.delete(hadoop_path, False)
                system.rename(target, hadoop_path)

    def write_json(self, path: str, value: dict[str, Any]) -> None:
        self.write(path, to_json(value))

    def create(self, path: str, content: str) -> None:
        """Creates a file; of several that try at once exactly one does, on HDFS.

        Raises FileExistsError for the others.
        """
        system, hadoop_path = self._open(path)
        try:
            with explained(path):
                stream = system.create(hadoop_path, False)
        except Py4JJavaError as error:
            if "FileAlreadyExistsException" in str(error):
                raise FileExistsError(path) from error
            raise
        try:
            stream.write(bytearray(content.encode()))
        finally:
            stream.close()

    def sha256(self, path: str) -> str:
        """SHA-256 of a file as 64 hexadecimal digits; Java reads it in blocks."""
        system, hadoop_path = self._open(path)
        with explained(path):
            stream = system.open(hadoop_path)
            try:
                return self._jvm.org.apache.commons.codec.digest.DigestUtils.sha256Hex(stream)
            finally:
                stream.close()


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turns what an object store refuses into a JobError.

    Anything else passes: a store that is down is no user error, and a scheduler starts the job
    again.
    """
    try:
        yield
    except Py4JJavaError as error:
        reasons = (reason for sign, reason in REFUSALS.items() if sign in str(error))
        if reason := next(reasons, None):
            raise JobError(f"{path}: {reason}") from error
        raise
