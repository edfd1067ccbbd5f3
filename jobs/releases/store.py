"""Decides where releases lie, and which of them readers see. Uses plain files, no Spark.

  ROOT/releases/VERSION/build-TOKEN/    everything that one release wrote
  ROOT/releases/VERSION/manifest.json   created once, last: names the build folder that counts
  ROOT/releases/latest.json             the version that readers take by default

Nothing is locked or renamed. If several releases make one version, the one that creates the
manifest publishes it; a build folder that no manifest names does not exist for readers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from gaixie.jobs.corpus.publish import now, read_runs, scored_under
from gaixie.jobs.corpus.settings import TableName
from gaixie.jobs.errors import JobError
from gaixie.udfs.command_line import say
from gaixie.udfs.spscore.stages import STAGES
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import (
    NAME,
    ReleaseManifest,
    ReleaseSettings,
    check_run_id,
    read_release,
)
from gaixie.udfs.text.splits import SPLITS

STARTED = "started.json"
"""First file of a build folder, with its version and runs; deleted before the release is
published."""

VERSION = re.compile(r"\d+(\.\d+){1,2}(-[0-9A-Za-z][0-9A-Za-z.-]*)?")


def folder_of(root: str, version: str) -> str:
    return storage.join(root, "releases", version)


def manifest_of(root: str, version: str) -> str:
    return storage.join(folder_of(root, version), NAME)


def latest_of(root: str) -> str:
    return storage.join(root, "releases", "latest.json")


def build_of(root: str, manifest: ReleaseManifest) -> str:
    """Returns the folder of a release's files."""
    return storage.join(folder_of(root, manifest.version), manifest.build)


def check_version(version: str) -> None:
    if not VERSION.fullmatch(version):
        raise JobError(f"--version {version}: expected numbers such as 1.0, 2.3.1 or 1.0-rc1")


def published_release(root: str, version: str) -> ReleaseManifest:
    """Reads the manifest of a published release. Raises JobError if there is none."""
    check_version(version)
    try:
        return read_release(folder_of(root, version))
    except FileNotFoundError:
        known = ", ".join(manifest.version for manifest in published(root)) or "none"
        raise JobError(
            f"{manifest_of(root, version)}: no release '{version}'; published: {known}"
        ) from None


def published(root: str) -> list[ReleaseManifest]:
    """Reads all manifests, oldest first; reports unreadable ones on standard error."""
    manifests = []
    for version in storage.children(storage.join(root, "releases")):
        if VERSION.fullmatch(version) and storage.exists(manifest_of(root, version)):
            try:
                manifests.append(read_release(folder_of(root, version)))
            except ValueError as error:
                say(f"skipped: {error}")
    return sorted(manifests, key=lambda manifest: manifest.created)


def runs_in_use(root: str, unpublished: bool = True) -> set[str]:
    """Returns the runs of all releases. Raises ManifestError for a release that cannot be read.

    unpublished: whether to include the runs of releases in progress or killed.
    """
    named: set[str] = set()
    for version in filter(VERSION.fullmatch, storage.children(storage.join(root, "releases"))):
        if storage.exists(manifest_of(root, version)):
            named |= {run.run_id for run in read_release(folder_of(root, version)).runs}
    for folder in unpublished_builds(root) if unpublished else ():
        with suppress(FileNotFoundError):
            named |= {*storage.read_json(storage.join(folder, STARTED))["runs"]}
    return named


def unreleased_runs(root: str) -> list[str]:
    """Returns the published runs of the newest run's signature that no release names, oldest first.
    Raises JobError for an unreleased run whose pairs have no score of that signature."""
    named, runs = runs_in_use(root, unpublished=False), read_runs(root)
    new = [run for run in runs if run.run_id not in named]
    if not new:
        return []
    done = scored_under(runs[-1].signature, runs)
    others = [run.run_id for run in new if run.run_id not in done and run.files.get("scored")]
    if others:
        raise JobError(
            f"--unreleased: runs with another signature than run '{runs[-1].run_id}': "
            f"{' '.join(others)}; score their pairs again with score_corpus.py --rescore "
            f"{' '.join(others)}, or name the runs to release with --runs"
        )
    return [run.run_id for run in new if run.signature == runs[-1].signature]


UNRELEASED = "unreleased"


def runs_of(root: str, names: Iterable[str]) -> list[str]:
    """Expands names of runs: a release's version stands for its runs, UNRELEASED for the published
    runs that no release names. Raises JobError for an unpublished version."""
    runs: list[str] = []
    for name in names:
        if name == UNRELEASED:
            named = runs_in_use(root, unpublished=False)
            runs += [run.run_id for run in read_runs(root) if run.run_id not in named]
        elif VERSION.fullmatch(name):
            runs += [run.run_id for run in published_release(root, name).runs]
        else:
            runs.append(name)
    return [*dict.fromkeys(runs)]


def read_latest(root: str) -> str | None:
    """Returns the version that latest.json names; None before the first release."""
    try:
        return storage.read_json(latest_of(root))["version"]
    except FileNotFoundError:
        return None


def set_latest(root: str, version: str) -> None:
    """Points latest.json at a published version, whatever it named before."""
    published_release(root, version)
    pointer = {
        "version": version,
        "manifest": f"releases/{version}/{NAME}",
        "moved": now("microseconds"),
    }
    storage.write_json(latest_of(root), pointer)


def move_latest(root: str, manifest: ReleaseManifest) -> str:
    """Points latest.json at a new release unless a newer one is named; returns what it names.

    Two releases that end together may write in either order. Each then checks whether it has passed
    over a later one, so that the last to write leaves the newest.
    """
    current = read_latest(root)
    if current and published_release(root, current).created > manifest.created:
        return current
    set_latest(root, manifest.version)
    for other in published(root):
        if other.created > manifest.created and other.moves_latest:
            return move_latest(root, other)
    return manifest.version


def unpublished_builds(root: str) -> Iterator[str]:
    """Yields the build folders that no manifest names."""
    for version in filter(VERSION.fullmatch, storage.children(storage.join(root, "releases"))):
        folder = folder_of(root, version)
        names = {*storage.children(folder)}
        if NAME in names:
            names -= {NAME, read_release(folder).build}
        for name in sorted(names):
            yield storage.join(folder, name)


# What a release request contains

SHARES_TOLERANCE = 1e-9

RESERVED = {"run", "split", "subset"}
"""Columns that a release adds while it is written."""


class ReleaseRequest(BaseModel):
    """The options of a release. Raises JobError for a wrong value."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    root: str
    runs: list[str] = []
    """published runs"""
    version: str = ""
    """such as 1.0, 2.3.1 or 1.0-rc1"""
    license: str = ""
    """such as CC-BY-4.0"""
    title: str = "Gaixie 改写: scored Chinese paraphrases"
    """title of the data set's card"""
    stages: list[int] = [1, 2, 3]
    """by default 1 2 3"""
    keep_columns: list[str] = []
    """further columns of the runs"""
    split: list[float] = [1.0]
    """shares of the sources, or of the groups if all runs have them; by default all is train"""
    seed: int = 13
    """seed of split and shuffle; by default 13"""
    shards_mb: int | float = 128
    """size of a file in MB; by default 128"""
    shards: int | None = None
    """files per split and stage, instead of a size"""
    dry_run: bool = False
    """only show what would be released"""
    no_latest: bool = False
    """do not change latest.json"""
    table: TableName | None = None
    """Apache Iceberg table, CATALOG.DATABASE.TABLE, with these runs; tagged with the version"""

    @property
    def settings(self) -> ReleaseSettings:
        """Returns the settings that decide the rows and their files, as the manifest states
        them."""
        return ReleaseSettings(
            stages=self.stages,
            split=dict(zip(SPLITS, self.split, strict=False)),
            seed=self.seed,
            shards_mb=self.shards_mb,
            shards=self.shards,
            keep_columns=self.keep_columns,
        )

    @model_validator(mode="before")
    @classmethod
    def _nothing_missing(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name in ("runs", "version", "license"):
            if not values.get(name):
                raise JobError(
                    f"--{name} is missing: a release needs --runs, --version and --license"
                )
        return values

    @model_validator(mode="after")
    def _check(self) -> ReleaseRequest:
        check_version(self.version)
        for run_id in self.runs:
            try:
                check_run_id(run_id)
            except ValueError as error:
                raise JobError(f"--runs {error}") from None
        self.license = self.license.strip()
        if len(self.license.splitlines()) != 1:
            raise JobError("--license: expected the licence's name, such as CC-BY-4.0")
        for option in ("runs", "stages", "keep_columns"):
            if twice := [v for v, n in Counter(getattr(self, option)).items() if n > 1]:
                raise JobError(f"--{option.replace('_', '-')}: {twice[0]} is given twice")
        if unknown := {*self.stages} - {*STAGES}:
            raise JobError(
                f"--stages {min(unknown)}: expected some of {', '.join(map(str, STAGES))}"
            )
        self.stages.sort()
        if reserved := RESERVED & {*self.keep_columns}:
            raise JobError(f"--keep-columns {min(reserved)}: a release uses this name itself")
        fit = all(0 <= share <= 1 for share in self.split) and self.split[0] > 0
        if not fit or abs(sum(self.split) - 1) > SHARES_TOLERANCE:
            raise JobError(
                f"--split {' '.join(f'{share:g}' for share in self.split)}: expected three shares "
                "that add up to 1, train's above 0"
            )
        if self.shards_mb <= 0 or (self.shards is not None and self.shards < 1):
            raise JobError("--shards-mb and --shards must be above 0")
        return self
