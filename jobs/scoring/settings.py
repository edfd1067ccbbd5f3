"""Loads a run's settings, a YAML file under the command line, and checks them before it starts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gaixie.jobs.corpus.settings import Csv, Input, Origin, TableName, Uri
from gaixie.jobs.errors import JobError
from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS, TIER_NAMES
from gaixie.udfs.spscore.stages import DEFAULT_CUTS, DEFAULT_MIN_MEANING
from gaixie.udfs.storage import settings
from gaixie.udfs.storage.manifest import check_run_id
from gaixie.udfs.storage.settings import Strict

CONFIG = Path(__file__).parents[2] / "conf/score.yaml"
"""The settings that ship; located from here, since Spark may copy a job's own file elsewhere."""


def _known_segmenter(spec: str) -> str:
    if not re.fullmatch(r"jieba|ltp:.+", spec):
        raise ValueError("expected jieba or ltp:NAME_OR_FOLDER")
    return spec


def _known_time(text: object) -> str:
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        raise ValueError("expected a time such as 2026-11-24 or 2026-11-24T18:30") from None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return when.astimezone(UTC).replace(tzinfo=None).isoformat()


class Thresholds(Strict):
    """Where stages 1, 2 and 3 begin: scores, or quantiles of the origin's scores in the run."""

    scores: tuple[float, float, float] | None = None
    quantiles: tuple[float, float, float] | None = None
    min_meaning: float = Field(0.0, ge=0, le=1)
    """Minimum judged meaning of a pair in stages 2 and 3."""

    @model_validator(mode="after")
    def _one_kind(self) -> Thresholds:
        if (self.scores is None) == (self.quantiles is None):
            raise ValueError("cut points must be either scores or quantiles")
        points: tuple[float, ...] = self.scores or self.quantiles or ()
        if list(points) != sorted(points) or points[0] < 0 or points[-1] > 1:
            raise ValueError(f"cut points must ascend within 0 and 1, not {list(points)}")
        return self

    def in_words(self) -> str:
        """Returns where the stages begin, as in: stages 1, 2 and 3 begin at a score of 0.2, 0.4 and
        0.5."""
        of, points = "a score", self.scores
        if points is None:
            of, points = "the quantile", self.quantiles or (0.0, 0.0, 0.0)
        text = "stages 1, 2 and 3 begin at {} of {:g}, {:g} and {:g}".format(of, *points)
        least = f"; 2 and 3 need a meaning of {self.min_meaning:g}" if self.min_meaning else ""
        return text + least


class ScoreSettings(Strict):
    """conf/score.yaml."""

    inputs: list[Input] = Field(default_factory=list)
    output: Uri | None = None
    """root of the tables: a folder or a URI"""
    run_id: Annotated[str, AfterValidator(check_run_id)] | None = None
    """by default the start time in UTC"""
    table: TableName | None = None
    """Apache Iceberg table, CATALOG.DATABASE.TABLE, to which the published run is added"""
    new_only: bool = False
    """skip files and pairs that published runs of this output and signature have scored"""
    since: Annotated[str, BeforeValidator(_known_time)] | None = None
    """skip files last written before this time, such as 2026-11-24T18:30 (UTC)"""
    rescore: list[str] = Field(default_factory=list)
    """instead of an input, rescore what other signatures scored: run ids, a release, unreleased"""
    min_characters: int = Field(MIN_CHARACTERS, ge=1)
    """shorter sentences go to quarantine"""
    max_characters: int = Field(MAX_CHARACTERS, ge=1, le=20_000)
    """longer sentences go to quarantine"""
    tier: Literal[TIER_NAMES] | None = None  # type: ignore[valid-type]
    """what SPScore-zh sees; by default core"""
    model: str | None = None
    """folder of a fitted SPScore-zh"""
    read_from: float = Field(0.0, ge=0, le=1)
    csv: Csv = Field(default_factory=Csv)
    segmenter: Annotated[str, AfterValidator(_known_segmenter)] = "jieba"
    """jieba | ltp:NAME_OR_FOLDER"""
    thresholds: dict[Origin, Thresholds] = Field({}, alias="cuts")
    """Thresholds in conf/score.yaml, which override DEFAULT_CUTS and DEFAULT_MIN_MEANING."""
    on_corrupt_file: Literal["stop", "quarantine"] = "stop"
    """what to do if some files cannot be read but others can"""
    target_file_mb: float = Field(128, gt=0)
    """size of output files"""
    unit_mb: float | None = Field(None, gt=0)
    """MB of input between two points from which a killed run can resume"""

    @model_validator(mode="after")
    def _complete(self) -> ScoreSettings:
        defaults = {
            origin: Thresholds(scores=scores, min_meaning=DEFAULT_MIN_MEANING[origin])
            for origin, scores in DEFAULT_CUTS.items()
        }
        self.thresholds = defaults | self.thresholds
        if self.rescore:
            self.inputs, self.new_only, self.since, self.on_corrupt_file = [], False, None, "stop"
        for source in self.inputs:
            if "csv" not in source.model_fields_set:
                source.csv = self.csv
        if self.min_characters > self.max_characters:
            raise ValueError("min_characters is above max_characters")
        return self


def load_settings(path: str, overrides: dict[str, Any], assignments: list[str]) -> ScoreSettings:
    """Loads the settings as gaixie.udfs.storage.settings does, but raises JobError."""
    try:
        return settings.load_settings(ScoreSettings, path, overrides, assignments)
    except (OSError, ValueError) as error:
        raise JobError(str(error)) from error
