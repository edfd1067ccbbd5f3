"""The plots of a release: scores, judgements and lengths by stage, drawn as those of a run are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from gaixie.jobs.corpus.reporting import bars_of, bars_of_scores, draw_panel, legend, png_of
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import ORIGINS, STAGES

NAMES = [f"stage {stage}" for stage in STAGES]
COLOURS = dict(zip(NAMES, ("#c8c8c8", "#a9cbe5", "#5b8db8", "#1f4e79"), strict=True))
"""The harder, the darker."""

Panels = Mapping[tuple[str, ...], Mapping[int, np.ndarray]]
"""Bars of the stages in each panel, by the words of its title."""


def draw_scores(bins: Mapping[tuple[str, int], Mapping[int, int]]) -> bytes:
    """PNG: a panel for each origin. bins: pairs by (origin, stage) and score bin."""
    series: dict[tuple[str, ...], dict[int, np.ndarray]] = {}
    for (origin, stage), counts in bins.items():
        series.setdefault((origin,), {})[stage] = bars_of_scores(counts)
    return _draw([[(o,)] for o in ORIGINS if (o,) in series], series)


def draw_judgements(bins: Mapping[tuple[int, str], Mapping[int, int]]) -> bytes:
    """PNG: a panel for each judgement. bins: pairs by (stage, judgement) and bin, of BARS from 0 to
    1."""
    series: dict[tuple[str, ...], dict[int, np.ndarray]] = {}
    for (stage, name), counts in bins.items():
        series.setdefault((name,), {})[stage] = bars_of(counts)
    return _draw([[(name,) for name in JUDGEMENTS]], series)


def draw_lengths(
    lengths: Mapping[tuple[str, int, str], Mapping[int, int]], characters: int
) -> bytes:
    """PNG: for each origin the lengths of sources and of paraphrases, in characters.

    lengths: sentences by (origin, stage, side) and bin; characters: width of a bin. The last bar is
    of that length and more: where 99.5 % of all sentences end.
    """
    numbers = [index for counts in lengths.values() for index in counts]
    pairs = np.bincount(numbers, [n for counts in lengths.values() for n in counts.values()])
    bars = max(int(np.searchsorted(np.cumsum(pairs), 0.995 * pairs.sum())), 1) + 1
    series: dict[tuple[str, ...], dict[int, np.ndarray]] = {}
    for (origin, stage, side), counts in lengths.items():
        series.setdefault((origin, side), {})[stage] = bars_of(counts, bars)
    origins = [o for o in ORIGINS if any(name == o for name, _ in series)]
    rows = [[(origin, side) for side in ("source", "paraphrase")] for origin in origins]
    return _draw(rows, series, characters)


def _draw(
    rows: Sequence[Sequence[tuple[str, ...]]], series: Panels, width: float | None = None
) -> bytes:
    """rows: titles of the panels. width: of a bar on the axis, if it does not end at 1."""
    figure = Figure(figsize=(9, 1.2 + 1.7 * len(rows)), dpi=140, layout="constrained")
    grid = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for axes, title in zip(grid.flat, (title for row in rows for title in row), strict=True):
        stages = series.get(title, {})
        bars = {f"stage {stage}": stages[stage] for stage in sorted(stages)}
        given = {} if width is None else {"width": width}
        draw_panel(axes, f"{', '.join(title)}: % of stage", bars, COLOURS, **given)
    legend(figure, grid.flat, NAMES)
    return png_of(figure)
