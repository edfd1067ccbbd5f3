"""Finds the files of an input before Spark starts, and looks at the first; keeps inputs and outputs
apart."""

from __future__ import annotations

import glob
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from urllib.parse import unquote

from gaixie.jobs.corpus.input import LICENSE, Input
from gaixie.jobs.corpus.markers import STARTED, WORK
from gaixie.udfs.command_line import UserError, say
from gaixie.udfs.storage import storage, tables
from gaixie.udfs.storage.manifest import MANIFEST
from gaixie.udfs.storage.records import MARKED
from gaixie.udfs.storage.storage import File
from gaixie.udfs.storage.tables import KINDS, Form, TableError, kind_of

PATTERN = r"[*?\[\]{}]"
"""Characters that make a path a pattern if no file or folder has this name."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Value of a folder k=v that stands for null."""

NO_HEADER = "; if no header line is there, --set csv.columns=[source,paraphrase] names the columns"
LONGEST_NAME = 30
"""Characters of a column's name; a longer one is rather a sentence."""
GIVE_ENCODING = "it is not UTF-8: give csv.encoding of this input, such as --encoding"

SMALL_BYTES = 10_000_000
"""Input of less is scanned in this process (about 100,000 pairs)."""

LISTED = 5
"""Names of files that a line lists."""

WRITTEN_BY_SPARK = ("_SUCCESS", ".crc")
"""Ends of the names of files beside a table that nobody needs to hear of."""

TABLES_OF_JOBS = ("pairs", "scored")
"""Folders that a job writes beside its manifest, of which one is meant where the job's output is
given as an input."""


def local_path(uri: str) -> str | None:
    """Returns the local path of a URI; None for a store."""
    if uri.startswith("file:"):
        return re.sub(r"^file:(//)?", "", uri)
    return None if "://" in uri else uri


def shown(uri: str) -> str:
    """Returns a URI, or a message that begins with one, as messages name it: a local path without
    its scheme."""
    return local_path(uri) or uri


def is_data(path: str) -> bool:
    """Returns whether a file below an input is data: no part of its path begins with "_" or "."."""
    return not any(part.startswith(("_", ".")) for part in path.split("/"))


def find_files(path: str) -> tuple[list[File], list[str]]:
    """Lists the files of a file, a folder (all levels) or a pattern, by URI: (data, others).

    Others are what begins with "_" or ".", what is empty or no file, and links that lead to a
    folder that is read anyway. Local files are named file:/…; links are followed. Raises UserError
    if there is no such path, a link leads nowhere, or the store or file system refuses.
    """
    data: dict[str, File] = {}
    others: set[str] = set()
    try:
        for root in map(_table_of_job, _roots(path)):
            in_store = local_path(root) is None
            listed, left = (storage.list_files(root), []) if in_store else _walk(root)
            others.update(left)
            for file in listed:
                if is_data(file.uri.removeprefix(root if in_store else _uri(root))) and file.size:
                    data[file.uri] = file
                else:
                    others.add(file.uri)
    except OSError as error:
        said = str(error)
        named = ": " in said and "[Errno" not in said
        raise UserError(said if named else f"{path}: {error.strerror or said}") from error
    if not data and not others and not os.path.isdir(local_path(path) or ""):
        raise UserError(f"{path}: no such file or folder")
    return sorted(data.values(), key=lambda file: file.uri), sorted(others - data.keys())


def _roots(path: str) -> list[str]:
    """Returns what a path names: itself, or what matches its pattern."""
    local = local_path(path)
    if local is not None:
        if os.path.lexists(local) or not re.search(PATTERN, local):
            return [os.path.abspath(local)] if os.path.lexists(local) else []
        found = (glob.glob(pattern, recursive=True) for pattern in _without_braces(local))
        return [os.path.abspath(name) for names in found for name in sorted(names)]
    if not re.search(PATTERN, path) or storage.exists(path):
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

    Raises UserError if it is, or lies in, an output that a job has begun and not published.
    """
    names = root.rstrip("/").split("/")
    above = ["/".join(names[:k]) for k, name in enumerate(names) if name in TABLES_OF_JOBS]
    for folder in (root, *above):
        with suppress(PermissionError):  # of a folder above
            is_begun = storage.exists(storage.join(folder, WORK, STARTED))
            if is_begun and not storage.exists(storage.join(folder, MANIFEST)):
                raise UserError(f"{root}: not published: the job that writes it has not ended")
    tables = []
    with suppress(OSError):  # there is none, or it is not a job's
        if b'"gaixie"' in storage.read_bytes(storage.join(root, MANIFEST)):
            tables = [storage.join(root, name) for name in TABLES_OF_JOBS]
    return next(filter(storage.exists, tables), root)


def _walk(root: str) -> tuple[list[File], list[str]]:
    """Lists the files of a local path; a folder to which several links lead is read once."""
    if not os.path.isdir(root):
        return [_file(root)], []
    files: list[File] = []
    others: list[str] = []
    top = os.path.realpath(root)
    seen = {top}
    for folder, folders, names in os.walk(root, followlinks=True, onerror=_refuse):
        for name in sorted(folders):
            path = os.path.join(folder, name)
            real = os.path.realpath(path)
            hidden = os.path.islink(path) and not is_data(path.removeprefix(root))
            if hidden or real in seen or f"{top}/".startswith(f"{real.rstrip('/')}/"):
                folders.remove(name)
                others.append(_uri(path))
            elif is_data(path.removeprefix(root)):
                seen.add(real)
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                files.append(_file(path))
            elif os.path.islink(path) and is_data(path.removeprefix(root)):
                raise UserError(f"{path}: a link to {os.readlink(path)}, which is not there")
            else:
                others.append(_uri(path))
        folders.sort()
    return files, others


def _refuse(error: OSError) -> None:
    raise error


def _file(path: str) -> File:
    status = os.stat(path)
    return File(_uri(path), status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def _uri(path: str) -> str:
    uri = f"file:{os.path.abspath(path)}"
    try:
        uri.encode()
    except UnicodeEncodeError:
        raise UserError(f"{os.fsencode(path)!r}: the name is not UTF-8: rename it") from None
    return uri


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
    plain = sorted(by_kind.keys() - {None, "txt", "xlsx"}, key=str)
    kinds = plain or [name for name in ("txt", "xlsx") if name in by_kind]
    if not kinds:
        known = ", ".join(endings[0] for endings in KINDS.values())
        name = shown(files[0].uri)
        raise UserError(f"{name}: its name ends in no known format ({known}): give --format")
    if len(kinds) > 1:
        counts = ", ".join(f"{len(by_kind[kind])} {kind}" for kind in kinds)
        fault = f"files of several formats ({counts}): give its format (--format), or a pattern"
        raise UserError(f"{settings.path}: {fault} such as *.{kinds[0]}")
    return "tsv" if kinds == ["txt"] else str(kinds[0]), by_kind[kinds[0]]


def folder_columns(uri: str, path: str) -> dict[str, str | None]:
    """Returns the columns that a file's folders below an input name: origin=llm/day=1 has two."""
    local = local_path(path)
    if re.search(PATTERN, path) and not (local is not None and os.path.lexists(local)):
        path = re.split(PATTERN, path, maxsplit=1)[0].rpartition("/")[0] or "."
    base = storage.spark_uri(path) if local_path(path) is None else _uri(local_path(path) or "")
    folders = storage.spark_uri(uri).removeprefix(base).split("/")[:-1]
    pairs = [folder.partition("=") for folder in folders if "=" in folder]
    return {
        unquote(name): None if value == NO_VALUE else unquote(value) for name, _, value in pairs
    }


def check_apart(output: str, inputs: Sequence[str]) -> None:
    """Raises UserError if OUTPUT lies in an input, or an input in what is written below OUTPUT.

    An input may be a pattern, which also reads everything below its matches. The job writes only to
    OUTPUT/runs and OUTPUT/releases, so an input may lie elsewhere below OUTPUT, or be a run's
    scored pairs.
    """
    if "" in (output, *inputs):
        raise UserError("an empty path is given, such as an unset variable")
    _uri(local_path(output) or "")  # refuses a name that is not UTF-8
    root = _resolved(output)
    for path in [one for given in inputs for one in (given, *_links(given))]:
        if _lies_in(root, path) or ("**" in path and _lies_in(f"{root}/_.parquet", path)):
            fault = "the next run would read what this one writes; choose an output outside it"
            raise UserError(f"output {output} lies in the input {path}: {fault}")
        for name in ("runs", "releases"):
            if _lies_in(f"{root}/{name}", path):
                raise UserError(f"input {path} holds {output}/{name}, where jobs write")


def _links(path: str) -> list[str]:
    """Returns the links below a local path to folders elsewhere, which are read too."""
    found = []
    for top in map(os.path.realpath, _roots(path) if local_path(path) else ()):
        for folder, names, _ in os.walk(top):
            links = filter(os.path.islink, (os.path.join(folder, name) for name in names))
            found += [one for one in links if is_data(one[len(top) :]) and not _lies_in(top, one)]
    return found


def _resolved(path: str) -> str:
    """Returns a path without links, dots and a last slash."""
    local = local_path(path)
    return path.rstrip("/") if local is None else os.path.realpath(local)


def _lies_in(path: str, folder: str) -> bool:
    """Returns whether a path lies at or below a folder, which may be a pattern."""
    above = [path[:place] for place, letter in enumerate(f"{path}/") if letter == "/"]
    patterns = _without_braces(_resolved(folder))
    return any(name == one or fnmatchcase(name, one) for name in above for one in patterns)


# An input


@dataclass(frozen=True)
class FoundFiles:
    """The files of an input."""

    settings: Input
    kind: str
    """One of gaixie.udfs.storage.tables.KINDS."""
    files: list[File]
    left_out: list[str]
    """URIs of the files below the input's path that are not read."""
    folder_names: list[str]
    """Columns that the names of folders hold, such as day=1."""

    @property
    def size(self) -> int:
        """Returns the bytes of the files."""
        return sum(file.size for file in self.files)

    @property
    def form(self) -> Form:
        return self.settings.csv.form(self.kind)


def find_input(settings: Input) -> FoundFiles:
    """Finds the files of an input, and looks at the first.

    Raises UserError for a missing path, an empty input, an unknown format, or a first file that
    cannot be read or has no such column.
    """
    data, others = find_files(settings.path)
    if not data:
        raise UserError(f"{settings.path}: no data, expected at least one file with rows")
    kind, files = choose_files(settings, data)
    chosen = {file.uri for file in files}
    left_out = [*(file.uri for file in data if file.uri not in chosen), *others]
    if told := [uri for uri in left_out if not uri.endswith(WRITTEN_BY_SPARK)]:
        names = ", ".join(uri.rpartition("/")[2] for uri in told[:LISTED])
        names += ", …" * (len(told) > LISTED)
        say(f"{settings.path}: {len(files)} {kind} files; left out {len(told)}: {names}")
    first = files[0].uri
    folder_names = [*folder_columns(first, settings.path)]
    for file in files:
        if [*folder_columns(file.uri, settings.path)] != folder_names:
            named = ", ".join(folder_names) or "none"
            raise UserError(f"{shown(file.uri)}: its folders name other columns than {named}")
    found = FoundFiles(settings, kind, files, left_out, folder_names)
    try:
        header = tables.header_of(first, found.form)
    except TableError as error:
        raise UserError(shown(str(error))) from None
    if kind != "jsonl":  # whose columns are known once all of it is read
        recognised(settings, [*header, *folder_names], shown(first))
    return found


def recognised(settings: Input, names: list[str], path: str) -> Input:
    """Returns the settings with the columns of the two sentences, once the names are checked.

    Raises UserError if a requested column is missing, or two columns have one name.
    """
    for side in ("source", "paraphrase"):
        name = f"{side}_column"
        known = tables.known_as(names, side)
        if name not in settings.model_fields_set and side not in names and known:
            settings = settings.model_copy(update={name: known})
    if settings.carried is None and settings.source_column == settings.paraphrase_column:
        both = f"column '{settings.source_column}' is both source and paraphrase: choose two"
        raise UserError(f"{path}: {both}")
    options = {
        settings.source_column: "; --source-column names another",
        settings.paraphrase_column: "; --paraphrase-column names another",
        settings.origin_column: "; give --origin, or --origin-column for another",
    }
    for wanted in (*settings.text_columns, *(settings.carried or ())):
        if wanted not in names:
            there = ", ".join(names) or "none"
            if any(name.isdecimal() or len(name) > LONGEST_NAME for name in names):
                options = dict.fromkeys(options, NO_HEADER)
            hint = f"; {GIVE_ENCODING} gb18030" if MARKED.search(there) else options.get(wanted, "")
            if there.startswith("锘"):  # UTF-8's mark, read as GB18030
                hint = f"; it is UTF-8, not {settings.csv.encoding}: leave out csv.encoding"
            if not there.isprintable():
                is_text = "\0" not in there and not MARKED.search(there)
                there = repr(there)[1:-1] if is_text else "what looks like UTF-16, or a binary file"
            raise UserError(f"{path}: no column '{wanted}', it has: {there}{hint}")
    lower = [name.lower() for name in names]
    if settings.license and LICENSE in lower:
        both = f"column '{LICENSE}', but the settings say {settings.license!r} for all its pairs"
        raise UserError(f"{path}: has a {both}; remove one of the two")
    if twice := [name for name in names if lower.count(name.lower()) > 1]:
        raise UserError(f"{path}: columns '{twice[0]}' and '{twice[1]}' have one name: rename one")
    return settings
