"""What a vocabulary came out as: the paper's Table 5 and Figure 2."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from gaixie.jobs.corpus.reporting import png_of, render

TEMPLATE = Path(__file__).with_name("table.txt.j2")


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


def draw_distribution(counts: Mapping[str, Mapping[str, int]]) -> bytes:
    """PNG: the parts of speech of the words that were kept. counts: as for ``table``."""
    return png_of(distribution(counts))


def distribution(counts: Mapping[str, Mapping[str, int]]) -> Figure:
    """A bar for each part of speech with kept words, the largest on top: its per cent of them."""
    kept = sorted((row["kept"], name) for name, row in counts.items() if row["kept"])
    total = sum(number for number, _ in kept)
    figure = Figure(figsize=(8, 0.9 + 0.3 * max(len(kept), 1)), dpi=140, layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh([name for _, name in kept], [100 * number / total for number, _ in kept])
    labels = [f"{100 * number / total:.1f} % ({number:,})" for number, _ in kept]
    axes.bar_label(bars, labels, padding=3, fontsize=8)
    axes.margins(x=0.2)
    axes.set_xlabel(f"% of the {total:,} words kept")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
