"""Derives formats and stores from paths, and keeps inputs and outputs apart."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase

from gaixie.jobs.corpus.settings import Input
from gaixie.jobs.corpus.user_settings import user_settings
from gaixie.jobs.errors import JobError
from gaixie.udfs.storage.storage import File

ENDINGS = {
    "parquet": (".parquet",),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "txt": (".txt",),
}
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
DEFAULT_FS = "spark.hadoop.fs.defaultFS"


def local_path(uri: str) -> str | None:
    """Returns the local path of a URI; None for another store.

    If Hadoop is configured, it decides what a path without a scheme means: it may be HDFS.
    """
    if uri.startswith("file:"):
        return re.sub(r"^file:(//)?", "", uri)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", uri):
        return None
    if "HADOOP_CONF_DIR" in os.environ or "YARN_CONF_DIR" in os.environ:
        return None
    return uri if (_default_file_system() or "file:").startswith("file:") else None


def hadoop_path(uri: str) -> str:
    """Returns the part of a URI that Hadoop and Spark spell alike: they write file:/a and
    file:///a."""
    return uri.partition(":")[2].lstrip("/")


def _default_file_system() -> str | None:
    """Returns the file system of paths without a scheme, if the user's Spark settings name one."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has read the settings
        from pyspark import SparkConf, SparkContext

        SparkContext._ensure_initialized()
        return SparkConf().get(DEFAULT_FS)
    return user_settings().get(DEFAULT_FS)


def check_apart(output: str, inputs: Iterable[str]) -> None:
    """Raises JobError if OUTPUT lies in an input, or an input in what is written below OUTPUT.

    An input may be a glob, which also reads everything below its matches. The job writes only to
    OUTPUT/runs and OUTPUT/releases, so an input may lie elsewhere below OUTPUT.
    """
    root = _parts(output)
    for path in inputs:
        read = _parts(path)
        if _begins(root, read):
            raise JobError(
                f"output {output} lies in the input {path}: the next run would read what this one "
                "writes; choose an output outside the input"
            )
        for name in ("runs", "releases"):
            if _begins(read, [*root, name]) or _begins([*root, name], read):
                raise JobError(
                    f"input {path} lies in {output}/{name}, where jobs write; copy it to another "
                    "folder"
                )


def _parts(path: str) -> list[str]:
    """Splits a path into scheme, bucket and names; resolves links and dots of a local path."""
    scheme, _, rest = path.rpartition("://")
    if scheme in ("", "file"):
        scheme, rest = "file", os.path.realpath(rest.removeprefix("file:"))
    return [scheme, *filter(None, rest.split("/"))]


def _begins(whole: list[str], start: list[str]) -> bool:
    """Returns whether a path lies at or below another, whose names may be patterns."""
    patterns = [re.sub(r"\{[^}]*\}", "*", name) for name in start]  # fnmatch does not know {a,b}
    pairs = zip(whole, start, patterns, strict=False)
    return len(whole) >= len(start) and all(
        name == plain or fnmatchcase(name, pattern) for name, plain, pattern in pairs
    )


def choose_files(settings: Input, files: list[File]) -> tuple[str, list[File]]:
    """Returns (format, files of it), from the input's settings or the file names.

    .txt counts as TSV only if no other name tells a format. Raises JobError if none does, or
    several.
    """
    by_format: dict[str | None, list[File]] = defaultdict(list)
    for file in files:
        by_format[_format_of(file.uri)].append(file)
    if kind := settings.format:
        silent = [file for file in files if _format_of(file.uri) in (None, "txt")]
        return kind, by_format.get(kind) or silent or files
    if text := by_format.pop("txt", None):
        if by_format.keys() <= {None}:
            return "tsv", text
    kinds = sorted(name for name in by_format if name)
    if not kinds:
        raise JobError(
            f"{files[0].uri}: the name does not end in a known format, "
            "expected .parquet, .jsonl, .csv or .tsv (or set the input's format)"
        )
    if len(kinds) > 1:
        counts = ", ".join(f"{len(by_format[name])} {name}" for name in kinds)
        raise JobError(
            f"{settings.path}: files of several formats ({counts}); set the input's format "
            "(--format) to skip the others"
        )
    return kinds[0], by_format[kinds[0]]


def _format_of(path: str) -> str | None:
    name = path.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return next((kind for kind, endings in ENDINGS.items() if name.endswith(endings)), None)


def is_data(path: str) -> bool:
    """Returns whether a file below an input is data: no part of its path begins with "_" or "."."""
    return not any(part.startswith(("_", ".")) for part in path.split("/"))
