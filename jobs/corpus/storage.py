"""Reads and writes files through Hadoop, with a Spark session's settings and credentials.

Jobs use it where they may meet hdfs:// besides local paths and S3. udfs/storage/storage.py has
functions of the same names that need no session.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from gaixie.jobs.corpus.paths import is_data
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File, to_json

REFUSALS = {
    "SignatureDoesNotMatch": "wrong credentials: the secret key does not match the access key",
    "InvalidAccessKeyId": "wrong credentials: the store does not know this access key",
    "NoAuthWithAWSException": "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "Unable to load credentials": "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "AccessDeniedException": "access denied: the credentials are wrong or lack the permission",
    "UnknownStoreException": "no such bucket",
    "NoSuchBucket": "no such bucket",
}
"""Signs of errors that a retry cannot fix, the clearest first."""


LITERAL = {"__globPaths__": "false"}
"""Makes Spark's readers take file names literally: [, {, * and ? are ordinary characters."""


class Storage:
    """Reads, writes and lists through Spark's own Hadoop configuration and credentials."""

    def __init__(self, spark: SparkSession):
        self._jvm: Any = spark._jvm
        self._conf = spark._jsc.hadoopConfiguration()

    @contextmanager
    def _at(self, path: str) -> Iterator[tuple[Any, Any]]:
        """Yields Hadoop's (FileSystem, Path) of a path; turns a store's refusals into JobError.

        Other errors pass through: a store that is down is no user error, and a scheduler restarts
        the job.
        """
        system = None
        try:
            place = self._jvm.org.apache.hadoop.fs.Path(path)
            system = place.getFileSystem(self._conf)
            if system.getScheme() == "file":
                system.setWriteChecksum(False)
            yield system, place
        except Py4JJavaError as error:
            reasons = (reason for sign, reason in REFUSALS.items() if sign in str(error))
            if reason := next(reasons, None):
                raise JobError(f"{path}: {reason}") from error
            if system is None:  # an unknown scheme, or not a URI
                fault = error.java_exception.toString().splitlines()[0]
                raise JobError(f"{path}: {fault}") from error
            raise

    @contextmanager
    def _stream(self, path: str, overwrite: bool | None = None) -> Iterator[Any]:
        """Opens a file to read or to write. overwrite: whether an existing file may be replaced;
        None reads."""
        with self._at(path) as (system, place):
            stream = system.open(place) if overwrite is None else system.create(place, overwrite)
            try:
                yield stream
            finally:
                stream.close()

    def exists(self, path: str) -> bool:
        with self._at(path) as (system, place):
            return system.exists(place)

    def list_files(self, path: str) -> list[File]:
        """Lists the data files of a file, folder (all levels) or glob, sorted by path.

        Names that begin with "_" or "." are not data. Raises JobError if there is nothing.
        """
        with self._at(path) as (system, pattern):
            if system.exists(pattern):  # a name may contain the characters of a pattern
                roots = [pattern]
            else:
                roots = [status.getPath() for status in system.globStatus(pattern) or ()]
            if not roots:
                raise JobError(f"{path}: no such file or folder")
            files = [file for root in roots for file in self._files(system, root)]
        return sorted(files, key=lambda file: file.uri)

    def _files(self, system: Any, root: Any) -> Iterator[File]:
        base = system.getFileStatus(root).getPath().toString()
        iterator = system.listFiles(root, True)
        while iterator.hasNext():
            status = iterator.next()
            name = status.getPath().toString()
            if is_data(name.removeprefix(base)):
                modified = datetime.fromtimestamp(status.getModificationTime() / 1000, UTC)
                yield File(name, status.getLen(), modified)

    def children(self, path: str) -> list[str]:
        """Returns the names of the files and folders directly below a folder, sorted; none if it is
        missing."""
        with self._at(path) as (system, place):
            found = system.listStatus(place) if system.exists(place) else ()
            return sorted(status.getPath().getName() for status in found)

    def delete(self, path: str) -> None:
        with self._at(path) as (system, place):
            system.delete(place, True)

    def read_bytes(self, path: str) -> bytes:
        with self._stream(path) as stream:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))

    def read_json(self, path: str) -> dict[str, Any]:
        return json.loads(self.read_bytes(path))

    def write(self, path: str, content: str | bytes) -> None:
        """Writes a whole file: it appears complete or not at all.

        A file system gets a hidden sibling and a rename; an object store shows an object only once
        it is complete.
        """
        data = content.encode() if isinstance(content, str) else content
        with self._at(path) as (system, place):
            renames = system.getScheme() in ("file", "hdfs", "viewfs")
            hidden = f"{place.getParent().toString()}/.{place.getName()}.part"
            with self._stream(hidden if renames else path, overwrite=True) as stream:
                stream.write(bytearray(data))
            if renames:
                system.delete(place, False)
                system.rename(self._jvm.org.apache.hadoop.fs.Path(hidden), place)

    def write_json(self, path: str, value: dict[str, Any]) -> None:
        self.write(path, to_json(value))

    def write_table(self, path: str, table: pa.Table) -> None:
        """Writes a Parquet file."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        self.write(path, sink.getvalue().to_pybytes())

    def create(self, path: str, content: str) -> None:
        """Creates a file; on HDFS, exactly one of several simultaneous attempts succeeds.

        Raises FileExistsError for the others.
        """
        try:
            with self._stream(path, overwrite=False) as stream:
                stream.write(bytearray(content.encode()))
        except Py4JJavaError as error:
            if "FileAlreadyExistsException" in str(error):
                raise FileExistsError(path) from error
            raise

    def sha256(self, path: str) -> str:
        """Returns a file's SHA-256 as 64 hexadecimal digits; Java reads it in blocks."""
        with self._stream(path) as stream:
            return self._jvm.org.apache.commons.codec.digest.DigestUtils.sha256Hex(stream)
