"""Where releases lie, and which of them readers see. Plain files, no Spark.

  ROOT/releases/VERSION/build-TOKEN/    all that one release wrote
  ROOT/releases/VERSION/manifest.json   created once, last: names the build folder that counts
  ROOT/releases/latest.json             the version that readers take by default

Nothing is locked or renamed: of several releases of one version, the one that creates the manifest
has published it, and a build folder that no manifest names does not exist for readers.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from gaixie.jobs.errors import JobError
from gaixie.udfs.io import storage

VERSION = re.compile(r"\d+(\.\d+){1,2}(-[0-9A-Za-z][0-9A-Za-z.-]*)?")


def folder_of(root: str, version: str) -> str:
    return storage.join(root, "releases", version)


def manifest_of(root: str, version: str) -> str:
    return storage.join(folder_of(root, version), "manifest.json")


def latest_of(root: str) -> str:
    return storage.join(root, "releases", "latest.json")


def as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def check_version(version: str) -> None:
    if not VERSION.fullmatch(version):
        raise JobError(f"--version {version}: expected numbers such as 1.0, 2.3.1 or 1.0-rc1")


def read_manifest(root: str, version: str) -> dict[str, Any]:
    """The manifest of a published release; JobError where there is none."""
    check_version(version)
    try:
        return storage.read_json(manifest_of(root, version))
    except FileNotFoundError:
        known = ", ".join(one["version"] for one in published(root)) or "none"
        raise JobError(
            f"{manifest_of(root, version)}: no release '{version}'; published: {known}"
        ) from None


def published(root: str) -> list[dict[str, Any]]:
    """Manifests of all releases, the oldest first."""
    found = []
    for name in storage.children(storage.join(root, "releases")):
        if VERSION.fullmatch(name) and storage.exists(manifest_of(root, name)):
            found.append(storage.read_json(manifest_of(root, name)))
    return sorted(found, key=lambda manifest: manifest["created"])


def read_latest(root: str) -> str | None:
    """The version that latest.json names; None before the first release."""
    try:
        return storage.read_json(latest_of(root))["version"]
    except FileNotFoundError:
        return None


def set_latest(root: str, version: str) -> None:
    """Points latest.json at a published version, whichever it named before."""
    read_manifest(root, version)
    pointer = {"version": version, "manifest": f"releases/{version}/manifest.json", "moved": now()}
    storage.write(latest_of(root), as_json(pointer))


def move_latest(root: str, manifest: dict[str, Any]) -> str:
    """Points latest.json at a release just published unless a newer one is there; what it names.

    Two releases that end together may write in either order: each looks afterwards whether one that
    was published later has been passed over, so that the last to write leaves the newest.
    """
    current = read_latest(root)
    if current and read_manifest(root, current)["created"] > manifest["created"]:
        return current
    set_latest(root, manifest["version"])
    later = [one for one in published(root) if one["created"] > manifest["created"]]
    for one in later:
        if one["moves_latest"]:
            return move_latest(root, one)
    return manifest["version"]


def clean(root: str, older_than_hours: float) -> None:
    """Deletes build folders that no manifest names and aborts abandoned uploads; prints what went.

    Only what nothing was written to for older_than_hours, since a release at work looks the same.
    """
    limit = datetime.now(UTC) - timedelta(hours=older_than_hours)
    pending = storage.uploads(storage.join(root, "releases"))
    found = 0
    for version in filter(VERSION.fullmatch, storage.children(storage.join(root, "releases"))):
        folder = folder_of(root, version)
        names = storage.children(folder)
        manifest = "manifest.json" in names and read_manifest(root, version)
        for name in names:
            if name == "manifest.json" or (manifest and name == manifest["build"]):
                continue
            place = storage.join(folder, name)
            if not storage.exists(place):
                continue  # a name that a store kept of a folder deleted before
            found += 1
            files = storage.list_files(place)
            touched = [file.modified for file in files]
            touched += [one.started for one in pending if one.uri.startswith(f"{place}/")]
            if touched and max(touched) > limit:
                print(f"{place}: written to lately: left alone")
                continue
            storage.delete(place)
            size = sum(file.size for file in files) / 1e6
            print(f"{place}: deleted ({len(files)} files, {size:,.1f} MB)")
    old = [upload for upload in pending if upload.started <= limit]
    for upload in old:
        storage.abort_upload(upload)
    print(f"{found} unpublished folders found, {len(old)} abandoned uploads aborted")
