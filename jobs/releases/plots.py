"""The plots of a release: scores, judgements and lengths by stage, drawn as those of a run are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gaixie.jobs.corpus.reporting import BARS, bars_of, png_of
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import ORIGINS

COLOURS = {0: "#c8c8c8", 1: "#a9cbe5", 2: "#5b8db8", 3: "#1f4e79"}
"""Of the stages: the harder, the darker."""


def draw_scores(bins: Mapping[tuple[str, int], Mapping[int, int]]) -> bytes:
    """PNG: a histogram for each origin, its bars stacked by stage.

    bins: pairs by (origin, stage) and gaixie.udfs.spscore.stages.score_bin.
    """
    figure, panels = _figure([origin for origin, _ in bins], 1)
    edges = np.linspace(0, 1, BARS + 1)
    for origin, (axes,) in panels.items():
        base, total = np.zeros(BARS), 0
        for stage in sorted(stage for name, stage in bins if name == origin):
            pairs = bars_of(bins[origin, stage])
            colour, label = COLOURS[stage], f"stage {stage}"
            axes.stairs(base + pairs, edges, baseline=base, fill=True, color=colour, label=label)
            base, total = base + pairs, total + int(pairs.sum())
        axes.set_xlim(0, 1)
        _style(axes, f"{origin}: {total:,} pairs", "pairs")
    axes.set_xlabel("SPScore-zh")
    _legend(figure, panels)
    return png_of(figure)


def draw_judgements(bins: Mapping[tuple[int, str], Mapping[int, int]]) -> bytes:
    """PNG: a panel for each judgement, a line for each stage.

    bins: pairs by (stage, judgement) and bin, of BARS from 0 to 1.
    """
    figure = Figure(figsize=(9, 2.6), dpi=140, layout="constrained")
    panels = figure.subplots(1, len(JUDGEMENTS), sharex=True, squeeze=False)[0]
    edges = np.linspace(0, 1, BARS + 1)
    for axes, name in zip(panels, JUDGEMENTS, strict=True):
        for stage in sorted(stage for stage, other in bins if other == name):
            counts = bins[stage, name]
            pairs = np.bincount([*counts], weights=[*counts.values()], minlength=BARS)
            share = 100 * pairs / max(pairs.sum(), 1)
            axes.stairs(share, edges, color=COLOURS[stage], linewidth=1.8, label=f"stage {stage}")
        axes.set_xlim(0, 1)
        _style(axes, name, "% of stage" if axes is panels[0] else "")
    _legend(figure, {"": panels})
    return png_of(figure)


def draw_lengths(
    lengths: Mapping[tuple[str, int, str], Mapping[int, int]], characters: int
) -> bytes:
    """PNG: for each origin the lengths of sources and of paraphrases, a line for each stage.

    lengths: sentences by (origin, stage, side) and bin; characters: width of a bin. The axis ends
    where 99.5 % of all sentences do.
    """
    sides = ("source", "paraphrase")
    figure, panels = _figure([origin for origin, _, _ in lengths], len(sides))
    last = max(_last_bin(lengths), 1)
    edges = np.arange(last + 2) * characters
    for origin, row in panels.items():
        for side, axes in zip(sides, row, strict=True):
            for stage in sorted({stage for name, stage, _ in lengths if name == origin}):
                counts = lengths.get((origin, stage, side), {})
                bars = np.array([min(index, last) for index in counts], int)
                pairs = np.bincount(bars, weights=list(counts.values()), minlength=last + 1)
                share = 100 * pairs / max(pairs.sum(), 1)
                axes.stairs(
                    share, edges, color=COLOURS[stage], linewidth=1.8, label=f"stage {stage}"
                )
            axes.set_xlim(0, edges[-1])
            _style(axes, f"{origin}: {side}", "% of stage")
    for axes in row:
        axes.set_xlabel("characters")
    _legend(figure, panels)
    return png_of(figure)


def _last_bin(lengths: Mapping[tuple[str, int, str], Mapping[int, int]]) -> int:
    pairs = np.bincount(
        [index for counts in lengths.values() for index in counts],
        [count for counts in lengths.values() for count in counts.values()],
    )
    return int(np.searchsorted(np.cumsum(pairs), 0.995 * pairs.sum()))


def _figure(origins: Sequence[str], columns: int) -> tuple[Figure, dict[str, list[Axes]]]:
    """An empty figure, and the panels of each origin, a row each."""
    names = [origin for origin in ORIGINS if origin in origins]
    figure = Figure(figsize=(9, 1.2 + 1.7 * len(names)), dpi=140, layout="constrained")
    grid = figure.subplots(len(names), columns, squeeze=False, sharex=True)
    return figure, {name: [*row] for name, row in zip(names, grid, strict=True)}


def _style(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylabel(label, fontsize=9)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=9)
    axes.locator_params(axis="y", nbins=4, integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: Figure, panels: Mapping[str, Sequence[Axes]]) -> None:
    handles: dict[str, Artist] = {}
    for row in panels.values():
        for handle, label in zip(*row[0].get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    labels = sorted(handles)
    figure.legend(
        [handles[label] for label in labels],
        labels,
        loc="outside upper right",
        ncols=len(labels),
        frameon=False,
        fontsize=9,
    )
