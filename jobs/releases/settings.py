"""What a release is asked for: the options of jobs/release_dataset.py, checked before work starts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from gaixie.jobs.errors import JobError
from gaixie.jobs.releases.store import check_version
from gaixie.udfs.storage.manifest import ReleaseSettings
from gaixie.udfs.text.splits import SPLITS

SHARES_TOLERANCE = 1e-9

RESERVED = {"run", "split", "subset"}
"""Columns that a release adds while it is written."""


class ReleaseRequest(BaseModel):
    """The options of one release. Raises JobError for a value that is no good."""

    model_config = ConfigDict(extra="ignore")

    root: str
    runs: list[str]
    version: str
    license: str
    title: str
    stages: list[int]
    keep_columns: list[str]
    split: list[float]
    """Share of the sources in each of SPLITS; a single share is that of train."""
    seed: int
    shards_mb: int | float
    shards: int | None
    dry_run: bool
    no_latest: bool

    @property
    def settings(self) -> ReleaseSettings:
        """What decides the rows and their files, as the manifest states it."""
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
            if not values[name]:
                raise JobError(
                    f"--{name} is missing: a release needs --runs, --version and --license"
                )
        return values

    @model_validator(mode="after")
    def _check(self) -> ReleaseRequest:
        check_version(self.version)
        self.license = self.license.strip()
        if len(self.license.splitlines()) != 1:
            raise JobError("--license: expected the licence's name, such as CC-BY-4.0")
        for option in ("runs", "stages", "keep_columns"):
            if twice := [v for v, n in Counter(getattr(self, option)).items() if n > 1]:
                raise JobError(f"--{option.replace('_', '-')}: {twice[0]} is there twice")
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
