"""Loads the settings of a run, a YAML file under the command line, and checks them before it
starts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gaixie.jobs.corpus.input import Csv, Input, Origin, Uri
from gaixie.udfs.command_line import as_user_error
from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS, MOST_CHARACTERS, TIER_NAMES
from gaixie.udfs.spscore.stages import DEFAULT_MIN_MEANING, DEFAULT_QUANTILES, ORIGINS
from gaixie.udfs.storage import settings
from gaixie.udfs.storage.manifest import RunId
from gaixie.udfs.storage.settings import Strict

CONFIG = Path(__file__).parents[2] / "conf/score.yaml"
"""The settings that ship; located from here, since Spark may copy a job's own file elsewhere."""


class Cuts(Strict):
    """Where stages 1, 2 and 3 of an origin begin; by default at DEFAULT_QUANTILES."""

    scores: tuple[float, float, float] | None = None
    quantiles: tuple[float, float, float] | None = None
    """Shares of the origin's pairs, of those whose meaning is at least min_meaning, below each."""
    min_meaning: Annotated[float, Field(ge=0, le=1)] = DEFAULT_MIN_MEANING
    """Least judged meaning of a pair in stages 2 and 3."""

    @model_validator(mode="after")
    def _ascending(self) -> Cuts:
        if self.scores and self.quantiles:
            raise ValueError("cut points must be either scores or quantiles")
        points = self.scores or self.quantiles or (0.0,)
        if list(points) != sorted(points) or points[0] < 0 or points[-1] > 1:
            raise ValueError(f"cut points must ascend within 0 and 1, not {list(points)}")
        return self

    def completed(self, origin: str) -> Cuts:
        """Returns the cuts with the quantiles of an origin if no cut points are given."""
        if self.scores or self.quantiles:
            return self
        return self.model_copy(update={"quantiles": DEFAULT_QUANTILES[origin]})


class ScoreSettings(Strict):
    """conf/score.yaml."""

    inputs: list[Input] = Field(default_factory=list)
    output: Uri | None = None
    """root of the tables: a folder or a URI"""
    run_id: RunId | None = None
    """by default the start time in UTC"""
    new_only: bool = False
    """skip files that published runs of this output and signature have scored"""
    min_characters: int = Field(MIN_CHARACTERS, ge=1)
    """shorter sentences go to quarantine"""
    max_characters: int = Field(MAX_CHARACTERS, ge=1, le=MOST_CHARACTERS)
    """longer sentences go to quarantine"""
    tier: Literal[TIER_NAMES] | None = None  # type: ignore[valid-type]
    """what SPScore-zh sees; by default core"""
    model: str | None = None
    """folder of a fitted SPScore-zh"""
    read_from: float = Field(0.0, ge=0, le=1)
    csv: Csv = Field(default_factory=Csv)
    segmenter: str = Field("jieba", pattern=r"^(jieba|ltp:.+)$")
    """jieba | ltp:NAME_OR_FOLDER"""
    cuts: dict[Origin, Cuts] = Field(default_factory=dict)
    cuts_of: Uri | None = Field(None, title="RUN_FOLDER")
    """folder of a published run whose cut points are kept, so that stages mean the same"""
    max_quarantined: float = Field(1.0, ge=0, le=1)
    """share of rows in quarantine above which nothing is published"""
    target_file_mb: float = Field(128, gt=0)
    """size of output files"""
    unit_mb: float | None = Field(None, gt=0, le=1e6)
    """MB of input between two points from which a killed run can resume"""

    @model_validator(mode="after")
    def _complete(self) -> ScoreSettings:
        self.cuts = {origin: self.cuts.get(origin, Cuts()).completed(origin) for origin in ORIGINS}
        for source in self.inputs:
            if "csv" not in source.model_fields_set:
                source.csv = self.csv
        if self.min_characters > self.max_characters:
            raise ValueError("min_characters is above max_characters")
        return self


def load_settings(path: str, overrides: dict[str, Any], assignments: list[str]) -> ScoreSettings:
    """Loads the settings as gaixie.udfs.storage.settings does, but raises UserError."""
    with as_user_error():
        return settings.load_settings(ScoreSettings, path, overrides, assignments)
