"""parallel: human Chinese and machine Chinese of one foreign sentence, where a translation is at hand.

A row is one pair, from the human to the machine translation, and the other way round too with both
directions. Rows whose two sentences are, normalised, those of another row of the group are merged.

Source: *Chinese Sentence Paraphrasing*, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.pairs.method import REPEATED, Made
from gaixie.jobs.scoring.inputs import MALFORMED_LINE
from gaixie.udfs.text.normalise import normalise


@dataclass(frozen=True)
class Parallel:
    """The method."""

    both_directions: bool

    unit = "rows"
    alone = False

    def items(self, rows: DataFrame) -> DataFrame:
        """Columns of rows: source (human), paraphrase (machine), malformed_line, and foreign if there is one.

        Without a foreign sentence the human one makes the group.
        """
        foreign = F.col("foreign" if "foreign" in rows.columns else "source").cast("string")
        return rows.select(foreign.alias("foreign"), "source", "paraphrase", MALFORMED_LINE)

    def make(self, members: list[tuple[str, str]]) -> Iterator[Made]:
        known: set[frozenset[str]] = set()
        for source, paraphrase in sorted(members):
            texts = frozenset((normalise(source), normalise(paraphrase)))
            if texts in known:
                yield Made(REPEATED, source, paraphrase)
                continue
            known.add(texts)
            yield Made(None, source, paraphrase)
            if self.both_directions:
                yield Made(None, paraphrase, source)
