"""What every method of making pairs has, and its settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from pydantic import ConfigDict

from gaixie.udfs.storage.settings import Strict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gaixie.jobs.pairs.settings import BuildSettings

REPEATED = "repeated"
"""Reason: once normalised, it equals something else of its group."""

ALONE = "alone"
"""Reason: nothing else is in its group or cluster."""

OVER_LIMIT = "over_limit"
"""Reason: it is in none of the max_pairs pairs that are kept of its group or cluster."""


class Made(NamedTuple):
    """A pair (the reason is null), or what is in none: a sentence (without a paraphrase) or a
    pair."""

    reason: str | None
    source: str
    paraphrase: str | None


class Group(Strict):
    """The settings of one method: a group of conf/pairs.yaml. A field's docstring is its help."""

    model_config = ConfigDict(frozen=True)

    FREE: ClassVar[frozenset[str]] = frozenset()
    """Those that decide no pair, such as batch sizes: a building may be resumed with others."""
    OPTIONS: ClassVar[dict[str, str]] = {}
    """Options on the command line, and their fields; --set takes every field."""

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


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

    def items(self, rows: DataFrame) -> DataFrame:
        """Returns the items of the rows of a table or of files of lines.

        Columns: foreign, source, paraphrase (equal to source where alone), malformed_line.
        """
        raise NotImplementedError

    def make(self, members: list[tuple[str, str]]) -> Iterator[Made]:
        """Yields the pairs and leftovers of one group, from the (source, paraphrase) of its items.

        Every item is in a pair or in one leftover, whatever the order of the items.
        """
        raise NotImplementedError
