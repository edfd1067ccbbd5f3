"""Checks that the files of a published run or release still match its manifest."""

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ReleaseFile, RunFile, RunManifest

THREADS = 8

Listed = RunFile | ReleaseFile
"""A file as a manifest lists it."""

TABLES = r"(scored|quarantine)/(?!.*/[_.]).*\.parquet"
"""Files that readers of a run's folders would read as the run's."""

Digest = Callable[[str], str | None]
"""Returns the SHA-256 of a URI, or None if it is not known."""


def file_faults(
    folder: str, listed: Iterable[Listed], digest: Digest | None = None, unlisted: str = ".*"
) -> list[str]:
    """Returns what is wrong with the files below a folder, one line each, beginning with the path.

    digest: without it, only sizes are compared. unlisted: a pattern of paths that the manifest must
    list if they exist.
    """
    stored = {file.uri.removeprefix(f"{folder}/"): file for file in storage.list_files(folder)}

    def fault_of(entry: Listed) -> str | None:
        if (file := stored.pop(entry.path, None)) is None:
            return "missing"
        if file.size != entry.bytes:
            return f"{file.size} bytes, the manifest has {entry.bytes}"
        found = digest(file.uri) if digest and entry.sha256 else None
        if found and found != entry.sha256:
            return f"SHA-256 is {found}, the manifest has {entry.sha256}"
        return None

    listed = [*listed]
    with ThreadPoolExecutor(THREADS) as pool:
        found = zip(listed, pool.map(fault_of, listed), strict=True)
        faults = [f"{entry.path}: {fault}" for entry, fault in found if fault]
    others = sorted(path for path in stored if re.fullmatch(unlisted, path))
    return [*faults, *(f"{path}: not in the manifest" for path in others)]


def print_faults(title: str, faults: Sequence[str]) -> int:
    """Prints faults, one a line, and their number; returns a command's exit code."""
    print(*faults, f"{title}: {len(faults) or 'no'} faults", sep="\n")
    return 1 if faults else 0


def run_faults(folder: str, manifest: RunManifest, digest: Digest | None = None) -> list[str]:
    """Returns what is wrong with the files of a run; see file_faults."""
    listed = [file for files in manifest.files.values() for file in files]
    return file_faults(folder, listed, digest, TABLES)
