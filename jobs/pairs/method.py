"""What every method of making pairs has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REPEATED = "repeated"
"""Reason of what is equal, normalised, to something else of its group."""


class Made(NamedTuple):
    """A pair (reason null), or what came into none: a sentence (paraphrase null) or a candidate pair."""

    reason: str | None
    source: str
    paraphrase: str | None


class Method(Protocol):
    """One way to make pairs. It is sent to Spark's workers."""

    unit: str
    """What it counts: the word for what is read, used, and put into quarantine."""
    alone: bool
    """Whether an item is one sentence, rather than two that belong together."""

    def items(self, rows: DataFrame) -> DataFrame:
        """Items from the rows of a table or of files of lines: a row each.

        Columns: foreign, source, paraphrase (equal to source where alone), malformed_line.
        """

    def make(self, members: list[tuple[str, str]]) -> Iterator[Made]:
        """Pairs and leftovers of one group, from the (source, paraphrase) of its items, in any order.

        Every item is in a pair or in one leftover; the same items give the same, whatever their order.
        """
