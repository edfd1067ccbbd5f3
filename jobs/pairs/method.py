"""What every method of making pairs has, and the marks of its settings."""

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
"""Reason: once normalised, it equals something else of its group."""

ALONE = "alone"
"""Reason: nothing else is in its group or cluster."""

OVER_LIMIT = "over_limit"
"""Reason: it is in none of the pairs that are kept of its group or cluster, or the group has too
many items."""


class Made(NamedTuple):
    """A pair (the reason is null), or a sentence or pair that was left out."""

    reason: str | None
    source: str
    paraphrase: str | None


@dataclass(frozen=True)
class Option:
    """Marks a setting that has an option of its own on the command line."""

    name: str | None = None
    """The option's name where it differs from the field's."""


@dataclass(frozen=True)
class Free:
    """Marks a setting that decides no pair: a building may be resumed with another value."""


class Group(Strict):
    """The settings of one method: a group of conf/pairs.yaml. A field's docstring is its help."""

    model_config = ConfigDict(frozen=True)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @classmethod
    def options(cls) -> dict[str, str]:
        """Returns the fields that have an option, by the option's name."""
        fields = cls.model_fields.items()
        marks = ((name, mark) for name, field in fields for mark in field.metadata)
        return {mark.name or name: name for name, mark in marks if isinstance(mark, Option)}

    def deciding(self) -> dict[str, Any]:
        """Returns the settings that decide pairs."""
        fields = type(self).model_fields.items()
        free = {name for name, field in fields if Free() in field.metadata}
        return self.model_dump(mode="json", exclude=free)


class Method:
    """One way to make pairs. It is sent to Spark's workers."""

    unit: ClassVar[str] = "sentences"
    """The word for what is read, used, and put into quarantine."""
    alone: ClassVar[bool] = True
    """Whether an item is one sentence, rather than two that belong together."""
    origin: ClassVar[str] = "parallel"
    """The origin of its pairs unless the settings name one."""
    options: ClassVar[tuple[str, ...]] = ()
    """Settings of BuildSettings that this method has and some others do not."""
    groups: ClassVar[tuple[str, ...]] = ()
    """Groups of settings that this method has."""
    decides: ClassVar[tuple[str, ...]] = ()
    """Settings and groups that decide its pairs, beside those that decide all methods' pairs."""

    @classmethod
    def of(cls, settings: BuildSettings) -> Self:
        """Returns the method of some settings. Raises JobError for what is missing or at odds."""
        raise NotImplementedError

    def builder(self) -> type[BuildPairs]:
        """Returns the class that builds pairs by this method."""
        from gaixie.jobs.pairs.build import BuildPairs

        return BuildPairs

    def check(self, dry_run: bool = False) -> None:
        """Raises JobError for a model that is missing or no good, before the input is read.

        dry_run: whether this is a dry run, which may need less.
        """

    def version(self) -> str | None:
        """Returns the model's version for the lineage, where the settings do not name one."""
        return None

    def items(self, rows: DataFrame) -> DataFrame:
        """Returns the items of the rows of a table or of files of lines.

        Columns: foreign, source, paraphrase (equal to source where alone), malformed_line.
        """
        raise NotImplementedError

    def make(self, members: list[tuple[str, str]]) -> Iterator[Made]:
        """Yields pairs and leftovers of one group, from the distinct (source, paraphrase) in it.

        Every item is in a pair or in one leftover, whatever the order of the items.
        """
        raise NotImplementedError
