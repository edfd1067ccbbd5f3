"""The model card of a fitted SPScore-zh: card.md from a template, evaluation.json, and plots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gaixie.udfs.reports import render

TEMPLATE = Path(__file__).with_name("card.md.j2")
COLUMNS = 5
"""Plots in a line of scores_by_kind.png."""


def write(folder: Path, figures: dict[str, Any]) -> None:
    """card.md and evaluation.json, which hold the same figures."""
    text = json.dumps(figures, ensure_ascii=False, indent=1, default=float)
    (folder / "evaluation.json").write_text(text + "\n", encoding="utf-8")
    card = render(TEMPLATE, percent=percent, **figures)
    (folder / "card.md").write_text(card, encoding="utf-8")


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def plot(
    folder: Path,
    reliability: pd.DataFrame,
    scores: np.ndarray,
    rated: np.ndarray,
    kinds: np.ndarray,
) -> None:
    """reliability.png, and scores_by_kind.png: score and rating of every pair, both 0 to 5."""
    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 5], [0, 5], color="0.7", linewidth=1)
    for origin, rows in reliability.groupby("origin"):
        axes.plot(rows["scored"], rows["rated"], marker="o", markersize=4, label=origin)
    axes.set(xlabel="mean score × 5", ylabel="mean rating", xlim=(0, 5), ylim=(0, 5))
    axes.legend(title="origin", frameon=False)
    figure.savefig(folder / "reliability.png", dpi=100)

    names = sorted(set(kinds))
    lines = -(-len(names) // COLUMNS)
    figure = Figure(figsize=(11, 2.2 * lines), layout="constrained")
    grid = np.ravel(figure.subplots(lines, COLUMNS, sharex=True, sharey=True))
    for axes, kind in zip(grid, names, strict=False):
        rows = kinds == kind
        axes.plot([0, 5], [0, 5], color="0.8", linewidth=1)
        axes.scatter(5 * scores[rows], 5 * rated[rows], s=4, alpha=0.4)
        axes.set_title(f"{kind} ({rows.sum()})", fontsize=9)
    for axes in grid[len(names) :]:
        axes.axis("off")
    figure.supxlabel("score × 5")
    figure.supylabel("rating")
    figure.savefig(folder / "scores_by_kind.png", dpi=90)
