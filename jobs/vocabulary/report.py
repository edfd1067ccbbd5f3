"""What a vocabulary came out as: the paper's Table 5 and Figure 2."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from gaixie.jobs.reporting import png_of, render
from gaixie.udfs.text.parts_of_speech import CLASSES

TEMPLATE = Path(__file__).with_name("table.txt.j2")

EDGES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""How often words occur: the lower edges of the plot's columns."""


def table(counts: Mapping[str, Mapping[str, int]]) -> str:
    """counts: distinct, kept, running, running_kept of each class."""
    keys = ("distinct", "kept", "running", "running_kept")
    total = {key: sum(row[key] for row in counts.values()) for key in keys}
    rows = [_row(name, row) for name, row in counts.items()]
    return render(TEMPLATE, rows=rows, total=_row("total", total))


def _row(name: str, counts: Mapping[str, int]) -> tuple[str, ...]:
    distinct, kept, running = counts["distinct"], counts["kept"], counts["running"]
    ratio = f"{kept / distinct:.2f}" if distinct else "–"
    share = f"{counts['running_kept'] / running:.3f}" if running else "–"
    return name, f"{distinct:,}", f"{kept:,}", ratio, share


def draw_distribution(by_count: Mapping[str, Mapping[int, int]]) -> bytes:
    """PNG: for each class, how many of its words occur how often, in per cent of its words.

    by_count: words by their number of occurrences, for each class.
    """
    names = [name for name in CLASSES if by_count.get(name)]
    shares = np.zeros((len(names), len(EDGES)))
    for row, name in enumerate(names):
        for count, words in by_count[name].items():
            shares[row, np.searchsorted(EDGES, count, "right") - 1] += words
        shares[row] *= 100 / shares[row].sum()
    figure = Figure(figsize=(11, 0.9 + 0.5 * max(len(names), 1)), dpi=140, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(
        shares, cmap="Blues", aspect="auto", vmin=0, vmax=max(shares.max(initial=1), 1)
    )
    for row, column in np.ndindex(*shares.shape):
        value = shares[row, column]
        if value >= 0.05:
            colour = "white" if value > 0.6 * shares.max() else "black"
            axes.text(
                column, row, f"{value:.1f}", ha="center", va="center", color=colour, fontsize=8
            )
    labels = [f"{name} ({sum(by_count[name].values()):,})" for name in names]
    axes.set_yticks(range(len(names)), labels)
    ends = [*(str(e) if n - e == 1 else f"{e}–{n - 1}" for e, n in pairwise(EDGES))]
    axes.set_xticks(range(len(EDGES)), [*ends, f"{EDGES[-1]:,}+"], fontsize=8)
    axes.set_xlabel("occurrences of a word")
    figure.colorbar(image, label="% of the class's words", pad=0.01)
    return png_of(figure)
