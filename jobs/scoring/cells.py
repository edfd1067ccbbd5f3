"""Counts the pairs of a run by origin and score; the stages follow from these counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import SCORE_BINS, stage

Cells = Counter[tuple[str, int, bool]]
"""Counts pairs by origin, score bin, and whether their meaning keeps them in stage 1."""


@dataclass(frozen=True)
class Stages:
    """Thresholds and counts of the scored pairs before they are written."""

    thresholds: dict[str, list[float]]
    """Scores at which stages 1, 2 and 3 begin, by origin; NaN if a quantile had no pairs."""
    min_meaning: dict[str, float]
    cells: Cells
    """Distinct pairs."""
    duplicates: Counter[str]
    """Rows left out, by origin."""
    known: Counter[str]
    """Of these, rows whose pair an earlier run has."""

    @cached_property
    def bins(self) -> dict[str, Counter[int]]:
        """Counts distinct pairs by origin and score bin."""
        return bins_of(self.cells)

    def counts(self) -> dict[tuple[str, int], int]:
        """Counts distinct pairs by origin and stage, exact to one score bin at each threshold."""
        counts: Counter[tuple[str, int]] = Counter()
        scores = np.arange(SCORE_BINS + 1) / SCORE_BINS
        reached = {origin: stage(scores, self.thresholds[origin]).tolist() for origin in self.bins}
        for (origin, index, held_back), pairs in self.cells.items():
            number = reached[origin][index]
            counts[origin, min(number, 1) if held_back else number] += pairs
        return dict(sorted((+counts).items()))


def by_origin(cells: Cells) -> Counter[str]:
    return Counter({origin: bins.total() for origin, bins in bins_of(cells).items()})


BARS, TENTHS = 20, 10
"""Number of bins for the score and for a judgement in a manifest's histograms."""


def histograms(
    bins: Mapping[str, Mapping[int, int]], tenths: Mapping[tuple[Any, ...], int]
) -> dict[str, dict[str, list[int]]]:
    """Counts pairs by origin, output and bin.

    bins: pairs by origin and score bin. tenths: pairs by origin, stage, and the tenth of each of
    JUDGEMENTS.
    """
    found = {origin: {"spscore": [0] * BARS} for origin in bins}
    for origin, counts in bins.items():
        found[origin] |= {name: [0] * TENTHS for name in JUDGEMENTS}
        for index, pairs in counts.items():
            found[origin]["spscore"][min(index * BARS // SCORE_BINS, BARS - 1)] += pairs
    for (origin, _, *places), pairs in tenths.items():
        for name, place in zip(JUDGEMENTS, places, strict=True):
            found[origin][name][place] += pairs
    return found


def bins_of(cells: Cells) -> dict[str, Counter[int]]:
    """Counts pairs by origin and score bin."""
    bins: dict[str, Counter[int]] = {}
    for (origin, index, _), pairs in cells.items():
        bins.setdefault(origin, Counter())[index] += pairs
    return bins
