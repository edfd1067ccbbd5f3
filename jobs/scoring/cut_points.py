"""Decides the cut points of a run: where its stages begin, from counts of its pairs by origin and
score.

The rule of a stage is in gaixie.udfs.spscore.stages. Its cut points are the scores that the
settings give, or quantiles of the origin's pairs in this run: of its distinct scored pairs whose
judged meaning is at least min_meaning. They come from counts in bins of a ten-thousandth, so they
do not depend on units, machines or order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.scoring.settings import Cuts
from gaixie.udfs.spark import held_back, score_bin_column
from gaixie.udfs.spscore.stages import SCORE_BINS, quantile

Cells = Counter[tuple[str, int, bool]]
"""Counts pairs by origin, score bin, and whether their meaning keeps them in stage 1."""

FEW_SHARE = 0.01
"""A stage with a smaller share of its origin's pairs gets a warning."""


@dataclass(frozen=True)
class CutPoints:
    """Cut points, and counts of the pairs before they are written."""

    cuts: dict[str, list[float]]
    """Scores at which stages 1, 2 and 3 begin, by origin; NaN if a quantile had no pairs."""
    min_meaning: dict[str, float]
    cells: Cells
    """Distinct pairs."""

    def counts(self) -> dict[tuple[str, int], int]:
        """Counts the pairs by origin and stage, exact to one score bin at each cut point."""
        counts: Counter[tuple[str, int]] = Counter()
        for (origin, index, held), pairs in self.cells.items():
            number = sum(index / SCORE_BINS >= cut for cut in self.cuts[origin])
            counts[origin, min(number, 1) if held else number] += pairs
        return dict(sorted((+counts).items()))


def count_cells(pairs: DataFrame, cuts: Mapping[str, Cuts]) -> Cells:
    """Counts pairs, which have the columns origin, spscore and meaning."""
    held = held_back("origin", "meaning", min_meaning_of(cuts))
    columns = [F.col("origin"), score_bin_column(), held]
    counted = pairs.groupBy(*columns).count().collect()
    return Counter({(origin, index, held): pairs for origin, index, held, pairs in counted})


def cut_stages(cells: Cells, cuts: Mapping[str, Cuts]) -> CutPoints:
    """Returns where the stages begin. cells: of the distinct pairs; cuts: the settings."""
    kept = bins_of(Counter({key: pairs for key, pairs in cells.items() if not key[2]}))
    points = {
        origin: [*rule.scores]
        if rule.scores
        else [quantile(kept.get(origin, {}), share) for share in rule.quantiles or ()]
        for origin, rule in cuts.items()
    }
    return CutPoints(points, min_meaning_of(cuts), cells)


def min_meaning_of(cuts: Mapping[str, Cuts]) -> dict[str, float]:
    return {origin: rule.min_meaning for origin, rule in cuts.items()}


def bins_of(cells: Cells) -> dict[str, Counter[int]]:
    """Counts pairs by origin and score bin."""
    bins: dict[str, Counter[int]] = {}
    for (origin, index, _), pairs in cells.items():
        if pairs:
            bins.setdefault(origin, Counter())[index] += pairs
    return bins


def warnings_of(stages: Mapping[str, Mapping[int, int]]) -> Iterator[str]:
    """Yields a line for each stage of training that holds almost nothing. stages: pairs by origin
    and stage."""
    for origin, counts in stages.items():
        total = sum(counts.values())
        for number in (1, 2, 3):
            pairs = counts.get(number, 0)
            if pairs < max(1, FEW_SHARE * total) and total:
                yield (
                    f"stage {number} of {origin} holds {pairs:,} of {total:,} pairs: "
                    f"cuts.{origin} (scores, quantiles, min_meaning) decides"
                )
