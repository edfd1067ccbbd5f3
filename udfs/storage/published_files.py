"""Whether the files of a published run or release are still what its manifest says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ReleaseFile, RunFile, RunManifest

THREADS = 8

Listed = RunFile | ReleaseFile
"""A file as a manifest has it."""


def stored_files(folder: str) -> dict[str, storage.File]:
    """The files below a folder, by their paths there; one listing."""
    return {file.uri.removeprefix(f"{folder}/"): file for file in storage.list_files(folder)}


def fault_of(
    listed: Listed, stored: storage.File | None, digest: Callable[[str], str | None] | None
) -> str | None:
    """What is wrong with a file, beginning with its path; None where nothing is.

    digest: SHA-256 of a URI, or None where that is not known; without it, sizes alone count.
    """
    path = listed.path
    if stored is None:
        return f"{path}: missing"
    if stored.size != listed.bytes:
        return f"{path}: {stored.size} bytes, the manifest has {listed.bytes}"
    found = digest(stored.uri) if digest and listed.sha256 else None
    if found and found != listed.sha256:
        return f"{path}: SHA-256 is {found}, the manifest has {listed.sha256}"
    return None


def run_faults(
    folder: str, manifest: RunManifest, digest: Callable[[str], str | None] | None = None
) -> list[str]:
    """What is wrong with the files of a run, a line each that begins with the path in its folder."""
    stored = stored_files(folder)
    listed = [file for files in manifest.files.values() for file in files]
    with ThreadPoolExecutor(THREADS) as pool:
        looked = pool.map(lambda file: fault_of(file, stored.get(file.path), digest), listed)
        faults = [*filter(None, looked)]
    return [*faults, *_others(stored, listed)]


def _others(stored: Iterable[str], listed: Iterable[RunFile]) -> Iterator[str]:
    """Tables that readers of the folders would take for the run's."""
    known = {file.path for file in listed}
    for path in sorted(stored):
        if re.fullmatch(r"(scored|quarantine)/(?!.*/[_.]).*\.parquet", path) and path not in known:
            yield f"{path}: not in the manifest"
