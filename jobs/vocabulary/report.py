"""What a vocabulary came out as: the paper's Table 5 and Figure 2."""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gaixie.udfs.text.parts_of_speech import CLASSES

EDGES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""How often words occur: the lower edges of the figure's columns."""


def table(rows: Mapping[str, Mapping[str, int]]) -> str:
    """rows: distinct, kept, running, running_kept of each class."""
    head = f"{'part of speech':<22}{'distinct':>12}{'kept':>12}{'ratio':>8}{'of running words':>18}"
    lines = [head, "─" * len(head)]
    total = {key: sum(row[key] for row in rows.values()) for key in next(iter(rows.values()))}
    for name, row in [*rows.items(), ("total", total)]:
        if name == "total":
            lines.append("─" * len(head))
        ratio = f"{row['kept'] / row['distinct']:.2f}" if row["distinct"] else "–"
        share = f"{row['running_kept'] / row['running']:.3f}" if row["running"] else "–"
        lines.append(f"{name:<22}{row['distinct']:>12,}{row['kept']:>12,}{ratio:>8}{share:>18}")
    return "\n".join(lines)


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
    canvas = FigureCanvasAgg(figure)
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
    words = [sum(by_count[name].values()) for name in names]
    axes.set_yticks(range(len(names)), [f"{n} ({w:,})" for n, w in zip(names, words, strict=True)])
    ends = [*(str(e) if n - e == 1 else f"{e}–{n - 1}" for e, n in pairwise(EDGES))]
    axes.set_xticks(range(len(EDGES)), [*ends, f"{EDGES[-1]:,}+"], fontsize=8)
    axes.set_xlabel("occurrences of a word")
    figure.colorbar(image, label="% of the class's words", pad=0.01)
    png = io.BytesIO()
    canvas.print_png(png)
    return png.getvalue()
