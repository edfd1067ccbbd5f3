"""Settles pairs that a model writes: each sentence ends in pairs, or in quarantine with a reason.

gaixie.jobs.pairs.pieces cuts the sentences into pieces and writes them one after the other.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from gaixie.jobs.pairs.method import REPEATED, Made, Method
from gaixie.udfs.command_line import in_time
from gaixie.udfs.text.normalise import normalise, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gaixie.jobs.pairs.pieces import WritePairs

COPIED = "copied"
"""Reason: after normalisation it equals the sentence that the model was given."""

EXAMPLES = 5
"""Sentences whose pairs a dry run shows."""
MEASURED = 32
"""Sentences after the examples that a dry run times; the examples warm up."""

WRITTEN = pa.schema(
    [(name, pa.string()) for name in ("reason", "source", "paraphrase", "foreign", "group")]
    + [("parameters", pa.string()), ("dropped", pa.bool_())]
)
"""Columns of a finished piece. dropped: whether this is a candidate without a pair whose sentence
is already accounted for."""


class Written(NamedTuple):
    """A candidate: a pair (reason null), or why it is none."""

    reason: str | None
    source: str
    """The sentence as write received it."""
    paraphrase: str | None
    parameters: Mapping[str, Any] | None = None
    """What differs between the pairs of one run, such as pivot or prompt."""


class Sentences(Method):
    """A method whose items are single sentences. Spark sends it to its workers."""

    options = ("text_column", "model", "model_version")
    decides: ClassVar[tuple[str, ...]] = ("seed",)
    reads: ClassVar[str] = "source"
    """Input of the writer: the sentence (source), or the foreign one that it belongs to."""

    def builder(self) -> type[WritePairs]:
        from gaixie.jobs.pairs.pieces import WritePairs

        return WritePairs

    def items(self, rows: DataFrame) -> DataFrame:
        """rows: source, malformed_line, and foreign if the method reads it.

        Without a foreign sentence, each sentence is its own group.
        """
        foreign = "foreign" if self.reads == "foreign" else "source AS foreign"
        return rows.selectExpr(foreign, "source", "source AS paraphrase", "malformed_line")

    def make(self, members: list[tuple[str, str]]) -> Iterator[Made]:
        """Yields a group's distinct sentences without a reason, and the others as repeated."""
        known: set[str] = set()
        for text in sorted(source for source, _ in members):
            normalised = normalise(text)
            yield Made(REPEATED if normalised in known else None, text, None)
            known.add(normalised)

    def models(self) -> list[str]:
        """Returns the names of the models to load; those in an object store go to every
        executor."""
        return []

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        """Yields at least one candidate of each sentence, in any order; loads its models once.

        sentences: fit and distinct. If no candidate of a sentence makes a pair, the sentence goes
        to quarantine under the reason of its first candidate. This method need not check for
        candidates that are too short, too long, without Han, or equal to the sentence or an earlier
        candidate: Settling does.
        """
        raise NotImplementedError

    def run(self, job: WritePairs) -> dict[str, Any]:
        """Writes the missing pieces. Returns figures for the manifest."""
        job.write_pieces()
        return {}

    def preview(self, sentences: Sequence[str], total: float, cores: int) -> None:
        """Prints pairs of the first sentences, and an estimate of the total time from the next
        ones.

        sentences: the first fit ones. total: estimated fit sentences of the whole input. cores: of
        the cluster.
        """
        for item in self.write(sentences[:EXAMPLES]):
            told = [
                item.reason or "a pair",
                *map("{0[0]} {0[1]}".format, (item.parameters or {}).items()),
            ]
            print(f"  {item.source}\n  -> {item.paraphrase or ''} ({', '.join(told)})")
        measured = sentences[EXAMPLES : EXAMPLES + MEASURED]
        if not measured:
            print("no estimate: too few sentences")
            return
        started = time.monotonic()
        deque(self.write(measured), maxlen=0)
        rate = len(measured) / (time.monotonic() - started)
        print(
            f"estimate: {rate:,.2f} sentences/s in one task ({len(measured)} measured here); about "
            f"{total:,.0f} sentences take {in_time(total / rate / cores)} in {cores} tasks"
        )


@dataclass(frozen=True)
class Settling:
    """Decides what becomes of candidates, for every method."""

    min_characters: int
    max_characters: int
    both_directions: bool
    parameters: str
    """JSON of the settings that decide all pairs of the building."""

    def settle(
        self, rows: Sequence[Mapping[str, str]], reads: str, written: Iterable[Written]
    ) -> pa.Table:
        """Returns a finished piece, columns WRITTEN: every row is in a pair, or listed once with a
        reason.

        rows: source, foreign, group of each sentence. written: the candidates; their source is the
        column that the writer reads. Raises RuntimeError for a sentence without a candidate.
        """
        candidates = defaultdict(list)
        for item in written:
            candidates[item.source].append(item)
        made: list[dict[str, Any]] = []
        for row in rows:
            if not candidates[row[reads]]:
                raise RuntimeError(f"the model wrote nothing for: {row[reads]}")
            made += self._settle_row(row, candidates[row[reads]])
        return pa.Table.from_pylist(made, WRITTEN)

    def _settle_row(
        self, row: Mapping[str, str], items: Sequence[Written]
    ) -> Iterator[dict[str, Any]]:
        reasons = self._judge(row["source"], items)
        for number, (item, reason) in enumerate(zip(items, reasons, strict=True)):
            told = json.loads(self.parameters) | dict(item.parameters or {})
            made = {
                **row,
                "reason": reason,
                "paraphrase": item.paraphrase,
                "parameters": json.dumps(told, sort_keys=True, ensure_ascii=False),
                "dropped": reason is not None and (None in reasons or number > 0),
            }
            yield made
            if reason is None and self.both_directions:
                yield made | {"source": item.paraphrase, "paraphrase": row["source"]}

    def _judge(self, source: str, items: Sequence[Written]) -> list[str | None]:
        """Returns the reason of each candidate that is not a pair, else None."""
        texts = [item.paraphrase for item in items]
        a = normalise_column(pa.array([source] * len(texts), pa.string()))
        b = normalise_column(pa.array(texts, pa.string()))
        codes = quarantine_reasons(*a, *b, self.min_characters, self.max_characters)
        found = np.array([None, *REASONS[:-1], COPIED], object)[codes]
        reasons, known = [], set()
        for item, unfit in zip(items, found, strict=True):
            reason = item.reason or unfit
            text = None if reason else normalise(item.paraphrase or "")
            reasons.append(REPEATED if text in known and text else reason)
            known.add(text)
        return reasons
