"""What a release is asked for: the options of jobs/release_dataset.py, checked before work starts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from gaixie.jobs.errors import JobError
from gaixie.jobs.releases.store import check_version
from gaixie.udfs.storage.manifest import ReleaseSettings
from gaixie.udfs.text.splits import SPLITS

SHARES_TOLERANCE = 1e-9

RESERVED = {"run", "split", "subset"}
"""Columns that a release adds while it is written."""


class ReleaseRequest(BaseModel):
    """The options of one release. Raises JobError for a value that is no good."""

    model_config = ConfigDict(frozen=True, extra="ignore")

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

    @field_validator("runs", "stages", "keep_columns")
    @classmethod
    def _no_value_twice(cls, values: list[Any], info: Any) -> list[Any]:
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            raise JobError(f"--{info.field_name.replace('_', '-')}: {twice[0]} is there twice")
        return sorted(values) if info.field_name == "stages" else values

    @field_validator("version")
    @classmethod
    def _version(cls, version: str) -> str:
        check_version(version)
        return version

    @field_validator("license")
    @classmethod
    def _name_of_a_licence(cls, name: str) -> str:
        if len(name.strip().splitlines()) != 1:
            raise JobError("--license: expected the licence's name, such as CC-BY-4.0")
        return name.strip()

    @field_validator("keep_columns")
    @classmethod
    def _no_reserved_column(cls, names: list[str]) -> list[str]:
        if reserved := RESERVED & {*names}:
            raise JobError(f"--keep-columns {min(reserved)}: a release uses this name itself")
        return names

    @field_validator("split")
    @classmethod
    def _shares(cls, shares: list[float]) -> list[float]:
        fit = all(0 <= share <= 1 for share in shares) and shares[0] > 0
        if not fit or abs(sum(shares) - 1) > SHARES_TOLERANCE:
            raise JobError(
                f"--split {' '.join(f'{share:g}' for share in shares)}: expected three shares that "
                "add up to 1, train's above 0"
            )
        return shares

    @model_validator(mode="after")
    def _some_shards(self) -> ReleaseRequest:
        if self.shards_mb <= 0 or (self.shards is not None and self.shards < 1):
            raise JobError("--shards-mb and --shards must be above 0")
        return self
