"""Draws a run: scores and judgements by origin, and how they correlate with the features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gaixie.jobs.corpus.reporting import bars_of_scores, draw_panel, legend, png_of
from gaixie.jobs.scoring.sample import MEASURED, Sample
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import ORIGINS

COLOURS = dict(zip(ORIGINS, ("#1f4e79", "#e08214", "#4d9221", "#8e44ad"), strict=True))
THRESHOLD, GREY = "#b3402a", "#d9d9d9"


def draw_run(
    bins: Mapping[str, Mapping[int, int]],
    thresholds: Mapping[str, Sequence[float | None]],
    sample: Sample,
) -> bytes:
    """Returns a PNG of 1,680 x 1,260 pixels.

    bins: pairs by origin and gaixie.udfs.spscore.stages.score_bin; an origin without pairs gets no
    panel. thresholds: where stages 1, 2 and 3 begin, by origin; None and values outside [0, 1] are
    not drawn. sample: source of the judgements and correlations; NaN is grey.
    """
    origins = [origin for origin, counts in bins.items() if sum(counts.values())]
    figure = Figure(figsize=(12, 9), dpi=140, layout="constrained")
    upper, lower = np.asarray(figure.subfigures(2, 1, height_ratios=(2.5, 1)))
    grid = upper.add_gridspec(max(len(origins), 1), 2, width_ratios=(1.1, 1))
    if not origins:
        panel = upper.add_subplot(grid[0, 0], yticks=[])
        panel.text(0.5, 0.5, "no pairs were scored", ha="center", va="center")
    for row, origin in enumerate(origins):
        panel = upper.add_subplot(grid[row, 0])
        pairs = sum(bins[origin].values())
        bars = {origin: bars_of_scores(bins[origin])}
        draw_panel(panel, f"{origin}: {pairs:,} pairs, % by SPScore-zh", bars, COLOURS)
        for threshold in thresholds.get(origin, ()):
            if threshold is not None and 0 <= threshold <= 1:  # the stages begin there
                panel.axvline(threshold, color=THRESHOLD, linestyle="--", linewidth=1)
    heat_map = upper.add_subplot(grid[:, 1])
    _correlations(heat_map, np.array(sample.correlations, float), sample.rows)
    panels = lower.subplots(1, len(JUDGEMENTS))
    for panel, name in zip(panels, JUDGEMENTS, strict=True):
        series = {
            o: np.array(sample.judgements[o][name]) for o in ORIGINS if o in sample.judgements
        }
        draw_panel(panel, f"{name}, %", series, COLOURS)
    legend(lower, panels, ORIGINS)
    return png_of(figure)


def _correlations(axes: Axes, matrix: np.ndarray, rows: int) -> None:
    names = MEASURED
    colours = colormaps["RdBu_r"].with_extremes(bad=GREY)
    axes.imshow(np.ma.masked_invalid(matrix), cmap=colours, vmin=-1, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0, labelsize=9.5)
    axes.spines[:].set_visible(False)
    axes.set_title(f"rank correlation, {rows:,} pairs (grey: undefined)", fontsize=10)
    for (row, column), value in np.ndenumerate(matrix):
        if np.isfinite(value):
            colour = "white" if abs(value) > 0.6 else "black"
            text = f"{value:.2f}".replace("-0.00", "0.00")
            axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=colour)
