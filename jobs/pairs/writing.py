"""Methods whose pairs a model writes: a sentence goes in alone, and comes out in pairs or with a reason.

gaixie.jobs.pairs.pieces cuts the sentences into pieces, and calls what is here for each of them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from gaixie.jobs.pairs.method import REPEATED, Made
from gaixie.udfs.text.normalise import normalise, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gaixie.jobs.pairs.pieces import Pieces

COPIED = "copied"
"""Reason of what a model gave back as it was, normalised."""

WRITTEN = pa.schema(
    [(name, pa.string()) for name in ("reason", "source", "paraphrase", "foreign")]
    + [("group", pa.string()), ("parameters", pa.string()), ("dropped", pa.bool_())]
)
"""Columns of a finished piece. dropped: a candidate without a pair, of a sentence that has another."""


class Written(NamedTuple):
    """A candidate: a pair (reason null), or why it is none."""

    reason: str | None
    source: str
    """The sentence as it was handed in."""
    paraphrase: str | None
    parameters: Mapping[str, Any] | None = None
    """What differs between the pairs of one run, such as pivot or prompt."""


class Writer(Protocol):
    """Writes paraphrases; made once a Python worker."""

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        """At least one candidate of each sentence, in any order.

        sentences: fit and distinct. A sentence of which no candidate is a pair goes to quarantine, under
        the reason of its first. Too short, too long, without Han, equal to the sentence or to an earlier
        candidate: all that is found out afterwards, for every method.
        """


@dataclass(frozen=True)
class Sentences:
    """A method whose items are single sentences. It is sent to Spark's workers, and hashable.

    A method adds its settings as fields, and load.
    """

    unit = "sentences"
    alone = True
    reads = "source"
    """What the writer is handed: the sentence (source), or the foreign one that it belongs to (foreign)."""

    def items(self, rows: DataFrame) -> DataFrame:
        """Columns of rows: source, malformed_line; foreign where the method reads it.

        Without a foreign sentence, each makes a group of its own.
        """
        foreign = "foreign" if self.reads == "foreign" else "source AS foreign"
        return rows.selectExpr(foreign, "source", "source AS paraphrase", "malformed_line")

    def make(self, members: list[tuple[str, str]]) -> Iterator[Made]:
        """The distinct sentences of a group, as Made without reason and paraphrase; the others repeated."""
        known: set[str] = set()
        for text in sorted(source for source, _ in members):
            normalised = normalise(text)
            yield Made(REPEATED if normalised in known else None, text, None)
            known.add(normalised)

    def check(self) -> None:
        """Raises JobError for a model that is not there or no good; called before the input is read."""

    def models(self) -> list[str]:
        """Names of what is loaded: those of an object store come to every executor."""
        return []

    def version(self) -> str | None:
        """Of the model, for the lineage, where the settings do not say."""
        return None

    def load(self) -> Writer:
        """The writer, in a Python worker or, for a dry run, in this process."""
        raise NotImplementedError

    def run(self, pieces: Pieces) -> dict[str, Any]:
        """Writes the pieces that are missing; figures for the manifest."""
        pieces.write(self)
        return {}

    def preview(self, sentences: Sequence[str], total: float, cores: int) -> None:
        """Prints examples and what all of it takes, for a dry run.

        sentences: the first that are fit. total: fit sentences of all input, estimated. cores: of the cluster.
        """
        from gaixie.jobs.pairs.preview import preview

        preview(self, sentences, total, cores)


@lru_cache(maxsize=1)
def loaded(method: Sentences) -> Writer:
    """The writer of a method, made once a process."""
    return method.load()


@dataclass(frozen=True)
class Settling:
    """What becomes of candidates, whatever the method."""

    min_characters: int
    max_characters: int
    both_directions: bool
    parameters: str
    """JSON: what decides all pairs of the building."""

    def settle(
        self, rows: Sequence[Mapping[str, str]], reads: str, written: Iterable[Written]
    ) -> pa.Table:
        """A finished piece, columns WRITTEN: every row in a pair, or in one leftover with a reason.

        rows: source, foreign, group of each sentence. written: the candidates; their source is the column
        that the writer reads. Raises RuntimeError for a sentence without a candidate.
        """
        candidates = defaultdict(list)
        for item in written:
            candidates[item.source].append(item)
        made: list[tuple[Any, ...]] = []
        for row in rows:
            items = candidates[row[reads]]
            if not items:
                raise RuntimeError(f"the model gave nothing for: {row[reads]}")
            made += self._settle_row(row, items)
        columns = list(zip(*made, strict=True)) or [()] * len(WRITTEN)
        return pa.table(
            [pa.array(column, kind) for column, kind in zip(columns, WRITTEN.types, strict=True)],
            schema=WRITTEN,
        )

    def _settle_row(
        self, row: Mapping[str, str], items: Sequence[Written]
    ) -> Iterator[tuple[Any, ...]]:
        source, rest = row["source"], (row["foreign"], row["group"])
        reasons = self._judge(source, items)
        has_pair = None in reasons
        for number, (item, reason) in enumerate(zip(items, reasons, strict=True)):
            told = json.loads(self.parameters) | dict(item.parameters or {})
            parameters = json.dumps(told, sort_keys=True, ensure_ascii=False)
            if reason is None:
                yield None, source, item.paraphrase, *rest, parameters, False
                if self.both_directions:
                    yield None, item.paraphrase, source, *rest, parameters, False
            else:
                yield reason, source, item.paraphrase, *rest, parameters, has_pair or number > 0

    def _judge(self, source: str, items: Sequence[Written]) -> list[str | None]:
        """The reason of each candidate that is no pair."""
        texts = [item.paraphrase for item in items]
        a = normalise_column(pa.array([source] * len(texts), pa.string()))
        b = normalise_column(pa.array(texts, pa.string()))
        codes = quarantine_reasons(*a, *b, self.min_characters, self.max_characters)
        names = np.array([None, *REASONS[:-1], COPIED], object)[codes]
        reasons, known = [], set()
        for item, found in zip(items, names, strict=True):
            reason = item.reason or found
            text = None if reason else normalise(item.paraphrase or "")
            reasons.append(REPEATED if text in known and text else reason)
            known.add(text)
        return reasons
