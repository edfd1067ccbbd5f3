"""The model card of a fitted SPScore-zh: card.md from a template, evaluation.json, and a plot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from gaixie.udfs.reports import render

TEMPLATE = Path(__file__).with_name("card.md.j2")


def write(folder: Path, figures: dict[str, Any]) -> None:
    """card.md and evaluation.json, which hold the same figures."""
    text = json.dumps(figures, ensure_ascii=False, indent=1, default=float)
    (folder / "evaluation.json").write_text(text + "\n", encoding="utf-8")
    card = render(TEMPLATE, percent=percent, **figures)
    (folder / "card.md").write_text(card, encoding="utf-8")


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def plot(folder: Path, reliability: pd.DataFrame) -> None:
    """reliability.png: mean score and mean rating of tenths of an origin's pairs, both 0 to 5."""
    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 5], [0, 5], color="0.7", linewidth=1)
    for origin, rows in reliability.groupby("origin"):
        axes.plot(rows["scored"], rows["rated"], marker="o", markersize=4, label=origin)
    axes.set(xlabel="mean score × 5", ylabel="mean rating", xlim=(0, 5), ylim=(0, 5))
    axes.legend(title="origin", frameon=False)
    figure.savefig(folder / "reliability.png", dpi=100)
