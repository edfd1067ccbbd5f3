"""Draws the parts that plots of runs, releases and vocabularies share."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

from gaixie.udfs.spscore.stages import SCORE_BINS

BARS = 50
"""Bars of a histogram from 0 to 1."""


def bars_of(counts: Mapping[int, int], bars: int = BARS) -> np.ndarray:
    """Returns the pairs of each bar; the last bar also takes those beyond it."""
    numbers = np.minimum(np.array([*counts], int), bars - 1)
    return np.bincount(numbers, weights=[*counts.values()], minlength=bars)


def bars_of_scores(bins: Mapping[int, int]) -> np.ndarray:
    """Returns the pairs of BARS equal bars from 0 to 1, given pairs by score bin."""
    counts: dict[int, int] = {}
    for index, pairs in bins.items():
        bar = index * BARS // SCORE_BINS
        counts[bar] = counts.get(bar, 0) + pairs
    return bars_of(counts)


def draw_panel(
    axes: Axes,
    title: str,
    series: Mapping[str, np.ndarray],
    colours: Mapping[str, str],
    width: float = 1 / BARS,
) -> None:
    """Draws a line for each series: the percentage of its pairs in each bar.

    width: of a bar on the axis. A single series is filled.
    """
    for name, pairs in series.items():
        share = 100 * pairs / max(pairs.sum(), 1)
        edges = np.arange(len(pairs) + 1) * width
        filled = len(series) == 1
        axes.stairs(share, edges, color=colours[name], linewidth=1.6, label=name, fill=filled)
        axes.set_xlim(0, edges[-1])
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def legend(figure: Figure | SubFigure, panels: Iterable[Axes], names: Sequence[str]) -> None:
    """Puts one legend below all panels, in the order of the names."""
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    known = [name for name in names if name in handles]
    if known:
        shown, columns = [handles[name] for name in known], len(known)
        figure.legend(
            shown, known, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
        )


def png_of(figure: Figure) -> bytes:
    """Returns a figure as PNG. It does not use pyplot, so needs no display and shares no state by
    threads."""
    png = io.BytesIO()
    FigureCanvasAgg(figure).print_png(png)
    return png.getvalue()
