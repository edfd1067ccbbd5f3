"""Draws the plots of a release: scores, judgements and lengths by stage, in the style of a run's
plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gaixie.jobs.corpus.reporting import bars_of, bars_of_scores, draw_panel, legend, png_of
from gaixie.jobs.releases.counts import pairs_by
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import ORIGINS, STAGES

NAMES = [f"stage {stage}" for stage in STAGES]
COLOURS = dict(zip(NAMES, ("#c8c8c8", "#a9cbe5", "#5b8db8", "#1f4e79"), strict=True))
"""Colours by stage: a harder stage is darker."""


def draw_scores(counts: pd.DataFrame) -> bytes:
    """Returns a PNG with a panel for each origin. counts: see Counts.scores."""
    panels = {
        (origin,): {
            stage: bars_of_scores(pairs_by(part, "bin")) for stage, part in one.groupby("stage")
        }
        for origin, one in counts.groupby("origin")
    }
    return _draw([[(origin,)] for origin in ORIGINS if (origin,) in panels], panels)


def draw_judgements(counts: pd.DataFrame) -> bytes:
    """Returns a PNG with a panel for each judgement. counts: see Counts.judgements."""
    panels = {
        (name,): {stage: bars_of(pairs_by(part, "bin")) for stage, part in one.groupby("stage")}
        for name, one in counts.groupby("output")
    }
    return _draw([[(name,) for name in JUDGEMENTS]], panels)


def draw_lengths(counts: pd.DataFrame, characters: int) -> bytes:
    """Returns a PNG with the lengths of each origin's sources and paraphrases, in characters.

    counts: see Counts.lengths; characters: width of a bin. The last bar covers that length and
    more, where 99.5 % of all sentences end.
    """
    pairs = np.cumsum(np.bincount(counts["bin"], counts["pairs"]))
    bars = max(int(np.searchsorted(pairs, 0.995 * pairs[-1])), 1) + 1
    panels = {
        (origin, side): {
            stage: bars_of(pairs_by(part, "bin"), bars) for stage, part in one.groupby("stage")
        }
        for (origin, side), one in counts.groupby(["origin", "side"])
    }
    sides = ("source", "paraphrase")
    origins = [origin for origin in ORIGINS if (origin, sides[0]) in panels]
    return _draw([[(origin, side) for side in sides] for origin in origins], panels, characters)


def _draw(
    rows: Sequence[Sequence[tuple[str, ...]]],
    panels: Mapping[Any, Mapping[Any, np.ndarray]],
    width: float | None = None,
) -> bytes:
    """Draws panels in rows by title, with their bars by stage.

    width: of a bar on the axis, if the axis does not end at 1.
    """
    figure = Figure(figsize=(9, 1.2 + 1.7 * len(rows)), dpi=140, layout="constrained")
    grid = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for axes, title in zip(grid.flat, (title for row in rows for title in row), strict=True):
        bars = {f"stage {stage}": counts for stage, counts in panels.get(title, {}).items()}
        given = {} if width is None else {"width": width}
        draw_panel(axes, f"{', '.join(title)}: % of stage", bars, COLOURS, **given)
    legend(figure, grid.flat, NAMES)
    return png_of(figure)
