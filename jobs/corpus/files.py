"""Finds the files of an input, and names those that are left out; keeps inputs and outputs
apart."""

from __future__ import annotations

import glob
import os
import re
from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from urllib.parse import unquote

from gaixie.jobs.corpus.input import Input
from gaixie.jobs.corpus.markers import STARTED, WORK
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST
from gaixie.udfs.storage.storage import File, spark_uri
from gaixie.udfs.storage.tables import KINDS, kind_of

PATTERN = r"[*?\[\]{}]"
"""Characters that make a path a pattern if no file or folder has this name."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Value of a folder k=v that stands for null."""

TABLES_OF_JOBS = ("pairs", "scored")
"""Folders that a job writes beside its manifest, of which one is meant where the job's output is
given as an input."""


def local_path(uri: str) -> str | None:
    """Returns the local path of a URI; None for a store."""
    if uri.startswith("file:"):
        return re.sub(r"^file:(//)?", "", uri)
    return None if "://" in uri else uri


def find_files(path: str) -> tuple[list[File], list[str]]:
    """Lists the files of a file, a folder (all levels) or a pattern, by URI: (data, others).

    Others are what begins with "_" or ".", what is empty or no file, and links that lead to a
    folder that is read anyway. Local files are named file:/…; links are followed. Raises UserError
    if there is nothing, a link leads nowhere, or the store or file system refuses.
    """
    try:
        found, others = _found(path)
    except OSError as error:
        raise UserError(_said(path, error)) from error
    if not found and not others:
        raise UserError(f"{path}: no such file or folder")
    files = sorted({file.uri: file for file in found}.values(), key=lambda file: file.uri)
    return files, sorted({*others})


def _found(path: str) -> tuple[list[File], list[str]]:
    found: list[File] = []
    others: list[str] = []
    local = local_path(path)
    for root in _roots(path):
        root = _table_of_job(root if local is None else os.path.abspath(root))
        if local is None:
            listed = storage.list_files(root)
        else:
            listed, left = _walk(root)
            others += left
        for file in listed:
            below = file.uri.removeprefix(_uri(root) if local is not None else root)
            if is_data(below) and file.size:
                found.append(file)
            else:
                others.append(file.uri)
    return found, others


def _roots(path: str) -> list[str]:
    """Returns what a path names: itself, or what matches its pattern."""
    local = local_path(path)
    if not re.search(PATTERN, path):
        exists = os.path.lexists(local) if local is not None else True
        return [local or path] if exists else []
    if local is not None:
        if os.path.lexists(local):  # a name may contain the characters of a pattern
            return [local]
        return [name for pattern in _without_braces(local) for name in sorted(glob.glob(pattern))]
    if storage.exists(path):
        return [path]
    scheme = path.partition("://")[0]
    names = [name for one in _without_braces(path) for name in storage.filesystem(one)[0].glob(one)]
    return [f"{scheme}://{name.partition('://')[2] or name}" for name in sorted(names)]


def _without_braces(pattern: str) -> list[str]:
    """Replaces {a,b} in a pattern by each of its alternatives."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    start, end = pattern[: match.start()], pattern[match.end() :]
    return [one for part in match[1].split(",") for one in _without_braces(start + part + end)]


def _table_of_job(root: str) -> str:
    """Returns the table in the output of a job, if a folder is one; else the folder.

    Raises UserError if a job writes to the folder, or to the one above, and has not published it.
    """
    if storage.exists(storage.join(root, MANIFEST)):
        for name in TABLES_OF_JOBS:
            if storage.exists(storage.join(root, name)):
                return storage.join(root, name)
        return root
    above, _, name = root.rstrip("/").rpartition("/")
    for folder in (root, above) if name in TABLES_OF_JOBS else (root,):
        with suppress(PermissionError):  # of the folder above
            is_begun = storage.exists(storage.join(folder, WORK, STARTED))
            if is_begun and not storage.exists(storage.join(folder, MANIFEST)):
                raise UserError(f"{root}: not published: the job that writes it has not ended")
    return root


def _walk(root: str) -> tuple[list[File], list[str]]:
    """Lists the files of a local path; a folder to which several links lead is read once."""
    if not os.path.isdir(root):
        return [_file(root)], []
    files: list[File] = []
    others: list[str] = []
    top, seen = os.path.realpath(root), set[str]()
    folders, links = deque([root]), deque[str]()
    while folders or links:
        folder = folders.popleft() if folders else links.popleft()
        real = os.path.realpath(folder)
        above = real != top and os.path.commonpath([real, top]) == real
        if real in seen or above:
            others.append(_uri(folder))
            continue
        seen.add(real)
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if _is_folder(entry):
                (links if entry.is_symlink() else folders).append(entry.path)
            elif entry.is_file():
                files.append(_file(entry.path))
            elif entry.is_symlink() and is_data(entry.path.removeprefix(root)):
                gone = os.readlink(entry.path)
                raise UserError(f"{entry.path}: a link to {gone}, which is not there")
            else:
                others.append(_uri(entry.path))
    return files, others


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # a link that leads to itself
        raise UserError(f"{entry.path}: {error.strerror}") from None


def _file(path: str) -> File:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise UserError(f"{os.fsencode(path)!r}: the name is not UTF-8: rename it") from None
    status = os.stat(path)
    return File(_uri(path), status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def _uri(path: str) -> str:
    return f"file:{os.path.abspath(path)}"


def _said(path: str, error: OSError) -> str:
    said = str(error)
    return said if ": " in said and "[Errno" not in said else f"{path}: {error.strerror or said}"


def is_data(path: str) -> bool:
    """Returns whether a file below an input is data: no part of its path begins with "_" or "."."""
    return not any(part.startswith(("_", ".")) for part in path.split("/"))


def choose_files(settings: Input, files: list[File]) -> tuple[str, list[File]]:
    """Returns (kind of table, files of it), from the input's settings or the file names.

    .txt counts as TSV, and workbooks count, only if no other name tells a format. Raises UserError
    if none does, or several.
    """
    by_kind: dict[str | None, list[File]] = defaultdict(list)
    for file in files:
        by_kind[kind_of(file.uri)].append(file)
    if kind := settings.format:
        silent = [*by_kind.get(None, ()), *by_kind.get("txt", ())]
        return kind, by_kind.get(kind) or silent or files
    for vague, read_as in (("txt", "tsv"), ("xlsx", "xlsx")):
        files_of_kind = by_kind.pop(vague, [])
        if files_of_kind and by_kind.keys() <= {None}:
            return read_as, files_of_kind
    kinds = sorted(kind for kind in by_kind if kind)
    if not kinds:
        known = ", ".join(endings[0] for endings in KINDS.values())
        name = shown(files[0].uri)
        raise UserError(f"{name}: its name ends in no known format ({known}): give --format")
    if len(kinds) > 1:
        counts = ", ".join(f"{len(by_kind[kind])} {kind}" for kind in kinds)
        raise UserError(f"{settings.path}: files of several formats ({counts}): give --format")
    return kinds[0], by_kind[kinds[0]]


def shown(uri: str) -> str:
    """Returns a URI as messages name it: a local path without its scheme."""
    return local_path(uri) or uri


def base_of(path: str) -> str:
    """Returns the folder below which the folders of an input may name columns, in Spark's form."""
    local = local_path(path)
    if re.search(PATTERN, path) and not (local is not None and os.path.lexists(local)):
        path = re.split(PATTERN, path, maxsplit=1)[0].rpartition("/")[0] or "."
    local = local_path(path)
    return spark_uri(path if local is None else os.path.abspath(local)).rstrip("/")


def column_base(uri: str, path: str) -> str:
    """Returns the folder of a file below which all folders name columns, in Spark's form."""
    base = base_of(path)
    folders = spark_uri(uri).removeprefix(base).split("/")[:-1]
    first = next((k for k, folder in enumerate(folders) if "=" in folder), len(folders))
    return base + "/".join(folders[:first])


def names_columns_throughout(uri: str, path: str) -> bool:
    """Tells whether all folders of a file name columns from the first that does; Spark sees no
    others."""
    folders = spark_uri(uri).removeprefix(column_base(uri, path)).split("/")[1:-1]
    return all("=" in folder for folder in folders)


def folder_columns(uri: str, path: str) -> dict[str, str | None]:
    """Returns the columns that a file's folders below an input name: origin=llm/day=1 has two."""
    folders = spark_uri(uri).removeprefix(base_of(path)).split("/")[:-1]
    pairs = [folder.partition("=") for folder in folders if "=" in folder]
    return {
        unquote(name): None if value == NO_VALUE else unquote(value) for name, _, value in pairs
    }


def check_apart(output: str, inputs: Iterable[str]) -> None:
    """Raises UserError if OUTPUT lies in an input, or an input in what is written below OUTPUT.

    An input may be a pattern, which also reads everything below its matches. The job writes only to
    OUTPUT/runs and OUTPUT/releases, so an input may lie elsewhere below OUTPUT, or be a run's
    scored pairs.
    """
    root = _parts(output)
    for path in inputs:
        read = _parts(path)
        if _begins(root, read):
            raise UserError(
                f"output {output} lies in the input {path}: the next run would read what this one "
                "writes; choose an output outside the input"
            )
        for name in ("runs", "releases"):
            if _begins([*root, name], read):
                raise UserError(f"input {path} holds {output}/{name}, where jobs write")


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
