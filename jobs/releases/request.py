"""Holds the options of a release, and checks them before any work."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, PositiveFloat, StringConstraints, field_validator

from gaixie.jobs.releases.store import check_version
from gaixie.udfs.spscore.stages import STAGES
from gaixie.udfs.storage.manifest import ReleaseSettings, RunId
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.text.splits import SPLITS

SHARES_TOLERANCE = 1e-9

Line = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^.+$")]


class ReleaseRequest(Strict):
    """The options of a release."""

    root: str
    runs: tuple[RunId, ...] = Field(min_length=1)
    """published runs"""
    version: Annotated[str, AfterValidator(check_version)]
    """such as 1.0, 2.3.1 or 1.0-rc1"""
    license: Line
    """such as CC-BY-4.0"""
    license_note: str = ""
    """why pairs whose inputs declare another licence may be released under this one"""
    title: str = "Gaixie 改写: scored Chinese paraphrases"
    """title of the data set's card"""
    stages: tuple[Annotated[int, Field(ge=STAGES[0], le=STAGES[-1])], ...] = (1, 2, 3)
    """stages to release"""
    keep_columns: tuple[str, ...] = ()
    """further columns of the runs"""
    split: list[Annotated[float, Field(ge=0, le=1)]] = Field(default=[1.0])
    """shares of the groups, and of the sources of pairs without one; by default all is train"""
    seed: int = 13
    """seed of split and shuffle"""
    shards_mb: PositiveFloat = 128
    """size of a file in MB"""
    dry_run: bool = False
    """only show what would be released"""

    @property
    def settings(self) -> ReleaseSettings:
        """Returns the settings that decide the rows and their files, as the manifest states
        them."""
        return ReleaseSettings(
            stages=sorted(self.stages),
            split=dict(zip(SPLITS, self.split, strict=False)),
            seed=self.seed,
            shards_mb=self.shards_mb,
            keep_columns=[*self.keep_columns],
        )

    @field_validator("runs", "stages", "keep_columns")
    @classmethod
    def _once(cls, values: tuple) -> tuple:
        return tuple(dict.fromkeys(values))

    @field_validator("split")
    @classmethod
    def _all_of_it(cls, shares: list[float]) -> list[float]:
        if not shares[0] or abs(sum(shares) - 1) > SHARES_TOLERANCE:
            raise ValueError("expected three shares that add up to 1, train's above 0")
        return shares
