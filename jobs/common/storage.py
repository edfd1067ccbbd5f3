"""Files of a run, wherever it lies: local paths and every URI that Hadoop's FileSystem knows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from jobs.common.errors import JobError


@dataclass(frozen=True)
class File:
    path: str
    size: int
    modified: int
    """Milliseconds since 1970."""


class Storage:
    """Reads, writes and lists through Spark's own Hadoop configuration and credentials."""

    def __init__(self, spark: SparkSession):
        self._jvm = spark._jvm
        self._conf = spark._jsc.hadoopConfiguration()

    def _open(self, path: str) -> tuple[Any, Any]:
        """(FileSystem, Path) of a path."""
        try:
            hadoop_path = self._jvm.org.apache.hadoop.fs.Path(path)
            system = hadoop_path.getFileSystem(self._conf)
        except Exception as error:
            raise JobError(f"{path}: {_first_line(error)}") from error
        if system.getScheme() == "file":
            system.setWriteChecksum(False)
        return system, hadoop_path

    def exists(self, path: str) -> bool:
        system, hadoop_path = self._open(path)
        return system.exists(hadoop_path)

    def list(self, path: str) -> list[File]:
        """Data files of a file, folder (all levels) or glob, in order of their paths.

        Names that begin with "_" or "." are not data. Raises JobError where nothing is there.
        """
        system, pattern = self._open(path)
        roots = system.globStatus(pattern)
        if not roots:
            raise JobError(f"{path}: no such file or folder")
        found = []
        for root in roots:
            base = root.getPath().toString()
            iterator = system.listFiles(root.getPath(), True)
            while iterator.hasNext():
                status = iterator.next()
                name = status.getPath().toString()
                parts = name[len(base) :].split("/") if name != base else []
                if any(part.startswith(("_", ".")) for part in parts):
                    continue
                found.append(File(name, status.getLen(), status.getModificationTime()))
        return sorted(found, key=lambda file: file.path)

    def delete(self, path: str) -> None:
        system, hadoop_path = self._open(path)
        system.delete(hadoop_path, True)

    def read_text(self, path: str) -> str:
        system, hadoop_path = self._open(path)
        stream = system.open(hadoop_path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def read_json(self, path: str) -> dict[str, Any]:
        return json.loads(self.read_text(path))

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
        stream = system.create(target, True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        if renames:
            system.delete(hadoop_path, False)
            system.rename(target, hadoop_path)

    def write_json(self, path: str, value: dict[str, Any]) -> None:
        self.write(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _first_line(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    text = cause.toString() if cause is not None else str(error)
    return text.splitlines()[0]
