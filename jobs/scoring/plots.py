"""The plots of a run: scores and judgements by origin, and how they and the features correlate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patheffects import withStroke

from gaixie.jobs.corpus.reporting import BARS, bars_of, png_of
from gaixie.jobs.scoring.sample import MEASURED, Sample
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import ORIGINS

LABEL_WIDTH = 0.024
"""Width of an upright "stage 1", in score: closer labels are moved apart, their lines are not."""
BAR, THRESHOLD, GREY = "#5b8db8", "#b3402a", "#d9d9d9"
LINES = dict(zip(ORIGINS, ("#1f4e79", "#e08214", "#4d9221", "#8e44ad"), strict=True))


def draw_run(
    bins: Mapping[str, Mapping[int, int]],
    thresholds: Mapping[str, Sequence[float | None]],
    sample: Sample,
) -> bytes:
    """PNG, 1,680 x 1,260 pixels.

    bins: pairs by origin and gaixie.udfs.spscore.stages.score_bin; an origin without pairs gets no panel.
    thresholds: where stages 1, 2 and 3 begin, by origin; None and what lies outside [0, 1] is not drawn.
    sample: where the judgements and the correlations come from; NaN is grey.
    """
    origins = [origin for origin, counts in bins.items() if sum(counts.values())]
    figure = Figure(figsize=(12, 9), dpi=140, layout="constrained")
    upper, lower = np.asarray(figure.subfigures(2, 1, height_ratios=(2.5, 1)))
    grid = upper.add_gridspec(max(len(origins), 1), 2, width_ratios=(1.1, 1))
    panel = None
    for row, origin in enumerate(origins):
        panel = upper.add_subplot(grid[row, 0], sharex=panel)
        _histogram(panel, origin, bins[origin], thresholds.get(origin, ()))
        # Room above the bars for the labels, which fill more of a panel where there are more.
        panel.set_ylim(0, panel.dataLim.ymax * (1.05 + 0.15 * len(origins)))
        panel.tick_params(labelbottom=row == len(origins) - 1)
    if panel is None:
        panel = upper.add_subplot(grid[0, 0], yticks=[])
        panel.text(0.5, 0.5, "no pairs were scored", ha="center", va="center")
    panel.set_xlabel("SPScore-zh")
    heat_map = upper.add_subplot(grid[:, 1])
    _correlations(heat_map, np.array(sample.correlations, float), sample.rows)
    _judgements(lower, sample)
    return png_of(figure)


def _histogram(
    axes: Axes, origin: str, bins: Mapping[int, int], thresholds: Sequence[float | None]
) -> None:
    pairs = bars_of(bins)
    density = pairs / pairs.sum() * BARS
    axes.stairs(density, np.linspace(0, 1, BARS + 1), fill=True, color=BAR)
    axes.set_xlim(0, 1)
    axes.set_title(f"{origin}: {int(pairs.sum()):,} pairs", loc="left", fontsize=10)
    axes.set_ylabel("density", fontsize=9)
    axes.tick_params(labelsize=9)
    axes.locator_params(axis="y", nbins=3)
    axes.locator_params(axis="x", nbins=10)
    axes.spines[["top", "right"]].set_visible(False)
    label_at = -1.0
    for number, threshold in enumerate(thresholds, start=1):
        if threshold is None or not 0 <= threshold <= 1:
            continue
        axes.axvline(threshold, color=THRESHOLD, linestyle="--", linewidth=1)
        label_at = max(threshold + 0.006, label_at + LABEL_WIDTH)
        axes.text(
            label_at,
            0.97,
            f"stage {number}",
            transform=axes.get_xaxis_transform(),
            rotation=90,
            ha="left",
            va="top",
            fontsize=8.5,
            color=THRESHOLD,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )


def _judgements(figure: SubFigure, sample: Sample) -> None:
    """A panel for each judgement, a line for each origin."""
    edges = np.linspace(0, 1, BARS + 1)
    panels = figure.subplots(1, len(JUDGEMENTS))
    for axes, name in zip(panels, JUDGEMENTS, strict=True):
        for origin in (origin for origin in ORIGINS if origin in sample.judgements):
            pairs = np.array(sample.judgements[origin][name])
            density = pairs / max(pairs.sum(), 1) * BARS
            axes.stairs(density, edges, color=LINES[origin], linewidth=1.4, label=origin)
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
        axes.set_title(name, loc="left", fontsize=10)
        axes.tick_params(labelsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"density, {sample.rows:,} pairs", fontsize=9)
    if sample.judgements:
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9
        )


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
