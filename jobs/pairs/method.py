"""Defines what every way to make pairs has: its settings, what it does with the input, and which
items can be in a pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import arrow_udf
from xxhash import xxh3_128_hexdigest

from gaixie.jobs.corpus.input import Csv, Input, Origin, Uri
from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS, MOST_CHARACTERS
from gaixie.udfs.storage.settings import Options
from gaixie.udfs.text.normalise import UNDECODABLE, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons

if TYPE_CHECKING:
    from gaixie.jobs.pairs.build import PairsBuild

REPEATED = "repeated"
"""Reason: after normalisation it equals another item of its group."""

ALONE = "alone"
"""Reason: its group or cluster has no other item."""

OVER_LIMIT = "over_limit"
"""Reason: a limit of the settings, or of what one task can hold, leaves it out."""

NO_GROUP = "no_foreign"
"""Reason: the foreign sentence is null or empty."""

NAMES = ("reason", "source", "paraphrase", "foreign", "group", "parameters")
MADE = ", ".join(f"{name} string" for name in NAMES) + ", dropped boolean"
"""Columns of what a method makes. parameters: null if they are those of the whole building.
dropped: whether this is a further candidate of a sentence that another row accounts for."""
MADE_ARROW = pa.schema([*((name, pa.string()) for name in NAMES), ("dropped", pa.bool_())])

PLACES = {"input", "format", "csv", "output", "human", "machine", "foreign", "clusters"}
"""Settings that say where sentences come from and where pairs go."""

NAMED = {"origin", "model", "model_version", "translator", "target_file_mb", "piece_sentences"}
"""Settings that have a column of their own in the pairs, or leave no trace in them."""


class Candidate(NamedTuple):
    """A pair (the reason is null), or what makes none and why."""

    reason: str | None
    source: str
    paraphrase: str | None
    differs: Mapping[str, Any] | None = None
    """What distinguishes it from the other candidates of its sentence, such as the pivot."""


class PairsInput(Input):
    """A table whose columns become pairs."""

    foreign_column: str | None = None
    """carried as "foreign" where it is not source_column"""
    keys: dict[str, str] = Field(default_factory=dict)
    """further columns that are carried, and their names there"""
    may_have_lists: bool = False

    @property
    def text_columns(self) -> list[str]:
        return [*super().text_columns, *filter(None, [self.foreign_column])]

    @property
    def carried(self) -> dict[str, str]:
        return self.keys | ({self.foreign_column: "foreign"} if self.foreign_column else {})

    @property
    def list_column(self) -> str | None:
        return self.paraphrase_column if self.may_have_lists else None


class Method(Options):
    """A way to make pairs. Each setting is an option, whose help is the text below the field."""

    input: Uri | None = None
    """a table: a file, a folder or a pattern"""
    format: Literal["parquet", "jsonl", "csv", "tsv", "xlsx"] | None = None
    """by default from the file's name"""
    csv: Csv = Field(default_factory=Csv)
    output: Uri
    """a folder or URI that holds no pairs yet"""
    origin: Origin = "parallel"
    """parallel | back_translation | llm | human"""
    seed: int = Field(1, ge=0, lt=2**63)
    """seed of the hash that chooses pairs"""
    min_characters: int = Field(MIN_CHARACTERS, ge=1)
    """shorter sentences go to quarantine"""
    max_characters: int = Field(MAX_CHARACTERS, ge=1, le=MOST_CHARACTERS)
    """longer sentences go to quarantine"""
    target_file_mb: float = Field(128, gt=0)
    """size of output files"""

    may_be_empty: ClassVar[bool] = False
    """Whether no pair at all is a good result."""
    without_effect: ClassVar[set[str]] = set()
    """Settings that do not affect the pairs: a resumed building may change them."""

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.min_characters > self.max_characters:
            raise ValueError("min_characters is above max_characters")
        return self

    @property
    def folder(self) -> str:
        """Returns the output without a trailing slash."""
        return self.output.rstrip("/")

    @property
    def alone(self) -> bool:
        """Returns whether an item is one sentence, not two that belong together."""
        return True

    @property
    def lines(self) -> dict[str, str]:
        """Maps columns to the files of lines that are read instead of a table."""
        return {}

    @property
    def paths(self) -> list[str]:
        """Returns all paths that are read."""
        return [*filter(None, [self.input]), *self.lines.values()]

    def parameters(self) -> dict[str, Any]:
        """Returns what decides the pairs besides the input; each pair's lineage has it."""
        return self.model_dump(mode="json", exclude=PLACES | NAMED | self.without_effect)

    def deciding(self) -> dict[str, Any]:
        """Returns all settings that must stay the same when a killed building is resumed."""
        free = {"output", "target_file_mb", *self.without_effect}
        return self.model_dump(mode="json", exclude=free)

    def lineage(self) -> tuple[str | None, str | None]:
        """Returns the model's name and version, for the pairs."""
        return None, None

    def check(self) -> None:
        """Raises UserError for a setting or model that cannot be used, before the input is read."""

    def show(self, fit: DataFrame) -> None:
        """Prints, in a dry run, what the method would ask a model about these items."""

    def table(self) -> PairsInput:
        """Returns the table to read and its columns."""
        raise NotImplementedError

    def columns(self, source: str, paraphrase: str, **given: Any) -> PairsInput:
        """Returns the table to read, given its columns."""
        given |= {"source_column": source, "paraphrase_column": paraphrase, "origin": self.origin}
        return PairsInput(path=self.input or "", format=self.format, csv=self.csv, **given)

    def items(self, rows: DataFrame) -> DataFrame:
        """Returns the items of the input's rows.

        rows: source, paraphrase, malformed_line, and foreign if there is one. Items: foreign (equal
        ones form a group), source, paraphrase (equal to source if alone), malformed_line.
        """
        raise NotImplementedError

    def make(self, build: PairsBuild, fit: DataFrame) -> DataFrame:
        """Returns pairs and leftovers, columns MADE.

        Every item is in a pair, or in one leftover. fit: the items that can be in a pair, with
        group and without reason.
        """
        raise NotImplementedError

    def used(self, build: PairsBuild, pairs: DataFrame) -> int:
        """Counts the items that are in pairs; here, each item is a source."""
        return pairs.select("group", "source").distinct().count()


class FromSentences(Method):
    """A method whose items are single Chinese sentences, each its own group."""

    text_column: str = "text"
    """the column of the Chinese sentence"""

    def table(self) -> PairsInput:
        return self.columns(self.text_column, self.text_column)

    def items(self, rows: DataFrame) -> DataFrame:
        columns = "source AS foreign", "source", "source AS paraphrase", "malformed_line"
        return rows.selectExpr(*columns)


# Which items can be in a pair


def check_columns(min_characters: int, max_characters: int, alone: bool) -> Callable[..., Column]:
    """Returns a function of the columns (source, paraphrase, foreign): see check_batch."""

    @arrow_udf("reason string, group string")
    def check(source: pa.Array, paraphrase: pa.Array, foreign: pa.Array) -> pa.Array:
        return check_batch(source, paraphrase, foreign, min_characters, max_characters, alone)

    return check


def check_batch(
    source: pa.Array, paraphrase: pa.Array, foreign: pa.Array, least: int, most: int, alone: bool
) -> pa.StructArray:
    """Returns (reason, group) of items whose sentences are strings of shape (rows,).

    reason: one of gaixie.udfs.text.validate.REASONS or NO_GROUP; null if the item can be in a pair.
    group: XXH3-128 of the normalised foreign sentence in UTF-8, as 32 hexadecimal digits. alone:
    source is a single sentence, and paraphrase is the same column. least, most: characters.
    """
    a = normalise_column(source)
    b = a if alone else normalise_column(paraphrase)
    codes = quarantine_reasons(*a, *b, least, most)
    reasons = np.array([None, *REASONS], object)[codes]
    if alone:  # a single sentence equals itself
        reasons[reasons == "identical"] = None
    text, flags = normalise_column(foreign)
    reasons[(np.diff(text.offsets) == 0) & (reasons == None)] = NO_GROUP  # noqa: E711, of each
    reasons[(flags & UNDECODABLE) != 0] = "undecodable"
    data, bounds = text.values.astype("<u4").tobytes(), pairwise((4 * text.offsets).tolist())
    sentences = (data[start:end].decode("utf-32-le", "replace") for start, end in bounds)
    groups = [xxh3_128_hexdigest(sentence.encode()) for sentence in sentences]
    columns = pa.array(reasons.tolist(), pa.string()), pa.array(groups, pa.string())
    return pa.StructArray.from_arrays(columns, ["reason", "group"])


def by_reason(rows: DataFrame) -> Counter[str]:
    """Counts rows by reason."""
    return Counter({row.reason: row["count"] for row in rows.groupBy("reason").count().collect()})
