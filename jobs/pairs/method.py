"""Defines what every method of making pairs has, and marks for its settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from pydantic import ConfigDict

from gaixie.udfs.storage.settings import Strict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gaixie.jobs.pairs.build import BuildPairs
    from gaixie.jobs.pairs.settings import BuildSettings

REPEATED = "repeated"
"""Reason: after normalisation it equals another item of its group."""

ALONE = "alone"
"""Reason: its group or cluster has no other item."""

OVER_LIMIT = "over_limit"
"""Reason: it is in none of the pairs kept for its group or cluster, or the group has too many
items."""


class Made(NamedTuple):
    """A pair (the reason is null), or a sentence or pair that was left out."""

    reason: str | None
    source: str
    paraphrase: str | None


@dataclass(frozen=True)
class Option:
    """Marks a setting that has its own command-line option."""

    name: str | None = None
    """The option's name if it differs from the field's."""


@dataclass(frozen=True)
class Free:
    """Marks a setting that does not affect pairs: a resumed building may change it."""


class Group(Strict):
    """The settings of one method: a group of conf/pairs.yaml. A field's docstring is its help."""

    model_config = ConfigDict(frozen=True)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @classmethod
    def options(cls) -> dict[str, str]:
        """Maps option names to the fields that have an option."""
        fields = cls.model_fields.items()
        marks = ((name, mark) for name, field in fields for mark in field.metadata)
        return {mark.name or name: name for name, mark in marks if isinstance(mark, Option)}

    def deciding(self) -> dict[str, Any]:
        """Returns the settings that affect pairs."""
        fields = type(self).model_fields.items()
        free = {name for name, field in fields if Free() in field.metadata}
        return self.model_dump(mode="json", exclude=free)


class Method:
    """One way to make pairs. Spark sends it to its workers."""

    unit: ClassVar[str] = "sentences"
    """Name of what is read, used and quarantined."""
    alone: ClassVar[bool] = True
    """Whether an item is one sentence, not two that belong together."""
    origin: ClassVar[str] = "parallel"
    """The origin of its pairs unless the settings name one."""
    options: ClassVar[tuple[str, ...]] = ()
    """Settings of BuildSettings that this method has and some others do not."""
    groups: ClassVar[tuple[str, ...]] = ()
    """Groups of settings that this method has."""
    decides: ClassVar[tuple[str, ...]] = ()
    """Settings and groups that decide its pairs, besides those that decide every method's pairs."""

    @classmethod
    def of(cls, settings: BuildSettings) -> Self:
        """Creates the method of some settings. Raises JobError for missing or conflicting
        settings."""
        raise NotImplementedError

    def builder(self) -> type[BuildPairs]:
        """Returns the class that builds pairs by this method."""
        from gaixie.jobs.pairs.build import BuildPairs

        return BuildPairs

    def check(self, dry_run: bool = False) -> None:
        """Raises JobError for a missing or unusable model, before the input is read.

        dry_run: whether this is a dry run, which may need less.
        """

    def version(self) -> str | None:
        """Returns the model's version for the lineage, if the settings do not name one."""
        return None

    def items(self, rows: DataFrame) -> DataFrame:
        """Returns the items of the rows of a table or of files of lines.

        Columns: foreign, source, paraphrase (equal to source if alone), malformed_line.
        """
        raise NotImplementedError

    def make(self, members: list[tuple[str, str]]) -> Iterator[Made]:
        """Yields the pairs and leftovers of one group, given its distinct (source, paraphrase).

        Every item is in a pair or in one leftover, whatever the order of the items.
        """
        raise NotImplementedError
