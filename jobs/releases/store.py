"""Decides where releases lie, and which of them readers see. Uses plain files, no Spark.

  ROOT/releases/VERSION/build-TOKEN/    everything that one release wrote
  ROOT/releases/VERSION/manifest.json   created once, last: names the build folder that counts
  ROOT/releases/latest.json             the version that readers take by default

Nothing is locked or renamed. If several releases make one version, the one that creates the
manifest publishes it; a build folder that no manifest names does not exist for readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from gaixie.jobs.corpus.runs import now, read_runs
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, ManifestError, ReleaseManifest, read_release

STARTED = "started.json"
"""First file of a build folder, with its version and runs; deleted before the release is
published."""

VERSION = re.compile(r"\d+(\.\d+){1,2}(-[0-9A-Za-z][0-9A-Za-z.-]*)?")


def folder_of(root: str, version: str) -> str:
    return storage.join(root, "releases", version)


def manifest_of(root: str, version: str) -> str:
    return storage.join(folder_of(root, version), MANIFEST)


def latest_of(root: str) -> str:
    return storage.join(root, "releases", "latest.json")


def check_version(version: str) -> str:
    """Returns the version. Raises UserError if it is none."""
    if not VERSION.fullmatch(version):
        raise UserError(f"--version {version}: expected numbers such as 1.0, 2.3.1 or 1.0-rc1")
    return version


def versions(root: str) -> list[str]:
    """Returns the versions of which a release was begun."""
    return [*filter(VERSION.fullmatch, storage.children(storage.join(root, "releases")))]


def published_release(root: str, version: str) -> ReleaseManifest:
    """Reads the manifest of a published release. Raises UserError if there is none."""
    check_version(version)
    try:
        return read_release(folder_of(root, version))
    except FileNotFoundError:
        fault = f"no release '{version}'; --list names the published ones"
        raise UserError(f"{manifest_of(root, version)}: {fault}") from None


def readable(root: str) -> tuple[list[ReleaseManifest], list[str]]:
    """Reads all manifests, oldest first, and says what is wrong with those that cannot be read."""
    found, faults = [], []
    for name in versions(root):
        try:
            found.append(read_release(folder_of(root, name)))
        except FileNotFoundError:
            continue
        except (OSError, ManifestError) as error:
            faults.append(str(error))
    return sorted(found, key=lambda manifest: manifest.created), faults


def runs_in_use(root: str, unpublished: bool = True) -> set[str]:
    """Returns the runs of all releases. Raises ManifestError for a release that cannot be read.

    unpublished: whether to include the runs of releases in progress or killed.
    """
    found, faults = readable(root)
    if faults:
        raise ManifestError(faults[0])
    named = {run.run_id for manifest in found for run in manifest.runs}
    for folder in unpublished_builds(root) if unpublished else ():
        with suppress(FileNotFoundError):
            named |= {*storage.read_json(storage.join(folder, STARTED))["runs"]}
    return named


def unreleased_runs(root: str) -> list[str]:
    """Returns the published runs that no release names, oldest first."""
    named = runs_in_use(root, unpublished=False)
    return [run.run_id for run in read_runs(root) if run.run_id not in named]


def read_latest(root: str) -> str | None:
    """Returns the version that latest.json names; None before the first release."""
    try:
        return storage.read_json(latest_of(root))["version"]
    except FileNotFoundError:
        return None


def set_latest(root: str, version: str) -> None:
    """Points latest.json at a published version, whatever it named before."""
    published_release(root, version)
    pointer = {"version": version, "manifest": f"releases/{version}/{MANIFEST}"}
    storage.write_json(latest_of(root), pointer | {"moved": now("microseconds")})


def unpublished_builds(root: str) -> Iterator[str]:
    """Yields the build folders that no manifest names."""
    for version in versions(root):
        folder = folder_of(root, version)
        names = {*storage.children(folder)}
        if MANIFEST in names:
            names -= {MANIFEST, read_release(folder).build}
        for name in sorted(names):
            yield storage.join(folder, name)
