"""Holds what all steps of a scoring run share, and loads the metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import StructField

from gaixie.jobs.corpus.reading import InputFiles
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.command_line import UserError
from gaixie.udfs.spark import score_columns
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.text.segmenters import load_segmenter


@dataclass(frozen=True)
class Scorer:
    """What decides a score: the metric, the segmenter, and the signature of both."""

    metric: SPScore
    segmenter: str
    signature: str


def load_scorer(settings: ScoreSettings) -> Scorer:
    """Loads the metric of a run. Raises UserError if it cannot be loaded."""
    try:
        with local_copy(None, settings.model) as (_, folder):
            metric = SPScore.load(folder or settings.tier)
        if settings.tier not in (None, metric.tier):
            raise ValueError(
                f"{settings.model}: a model of tier {metric.tier}, not {settings.tier}; "
                "give only one of model and tier"
            )
        if metric.tier == "full":
            metric.read_from = settings.read_from
        signature = metric.signature(load_segmenter(settings.segmenter))
    except (ValueError, OSError, ImportError) as error:
        raise UserError(str(error)) from error
    return Scorer(metric, settings.segmenter, signature)


@dataclass(frozen=True)
class Job:
    """One scoring run."""

    spark: SparkSession
    settings: ScoreSettings
    scorer: Scorer
    inputs: list[InputFiles]
    run_id: str
    folder: str
    limit: int | None
    """Maximum number of rows to read."""
    check_lock: Callable[[], None]
    """Raises UserError if another process holds the run; called before each step that deletes or
    publishes."""

    @cached_property
    def score(self) -> Callable[..., Column]:
        """Returns the UDF that scores a pair; see gaixie.udfs.spark.score_columns."""
        lengths = self.settings.min_characters, self.settings.max_characters
        return score_columns(self.scorer.metric, self.scorer.segmenter, *lengths)

    @property
    def extra_columns(self) -> dict[str, StructField]:
        """Returns the columns of the inputs that the run carries along, by name."""
        return {column.name: column for source in self.inputs for column in source.extra_columns}

    def path(self, name: str) -> str:
        return storage.join(self.folder, name)

    def delete(self, *names: str) -> None:
        """Deletes files and folders of the run."""
        self.check_lock()
        for name in names:
            storage.delete(self.path(name))
