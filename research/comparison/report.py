"""The report of a comparison of metrics: comparison.json, comparison.md and its plots."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from gaixie.udfs.reports import render, write_json

TEMPLATE = Path(__file__).with_name("comparison.md.j2")
TITLES = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "auc": "AUC",
    "average_precision": "average precision",
}


def write(folder: Path, result: dict[str, Any]) -> None:
    """All of the report. result: as research/compare_metrics.py makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "comparison.json", result)
    (folder / "comparison.md").write_text(markdown(result), encoding="utf-8")
    for data_set in result["data_sets"]:
        forest(data_set, folder / f"{data_set['name']}.png")
        if data_set.get("between"):
            heat_map(data_set, folder / f"{data_set['name']} between metrics.png")


def markdown(result: dict[str, Any]) -> str:
    """The text of comparison.md."""
    signatures = {s for data_set in result["data_sets"] for s in data_set["signatures"].values()}
    rows = standing(result["data_sets"])
    return render(TEMPLATE, titles=TITLES, standing=rows, signatures=sorted(signatures), **result)


def standing(data_sets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each set's best metric with SPScore-zh beside it, and whether SPScore-zh loses."""
    rows = []
    for data_set in data_sets:
        metrics = data_set["metrics"]
        for position, own in enumerate(metrics):
            if own["name"] == "spscore":
                row = {"set": data_set["name"], "by": data_set["statistic"], "own": own}
                row |= {"best": metrics[0], "place": f"{position + 1} of {len(metrics)}"}
                rows.append(row | {"loses": position > 0 and own["p"] < 0.05})
    return rows


def forest(data_set: dict[str, Any], path: Path) -> None:
    """Every metric's statistic with its interval, the best on top."""
    main = data_set["statistic"]
    rows = [row for row in data_set["metrics"][::-1] if not math.isnan(row[main].score)]
    figure = Figure(figsize=(7, 1 + 0.26 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for position, row in enumerate(rows):
        value, low, high = row[main]
        colour = "#c0392b" if row["name"] == "spscore" else "#34495e"
        marker = "s" if row["with_reference"] else "o"
        axes.plot([low, high], [position, position], color=colour, lw=1.6)
        axes.plot(value, position, marker, color=colour, ms=5)
    axes.set_yticks(
        range(len(rows)), [row["title"] + ("" if row["higher_is_better"] else " ↓") for row in rows]
    )
    axes.axvline(0.5 if data_set["statistic"] == "auc" else 0, color="#bbbbbb", lw=1, zorder=0)
    axes.set_xlabel(f"{TITLES[data_set['statistic']]} with human scores, 95 % interval")
    axes.set_title(
        f"{data_set['name']}, {data_set['rows']:,} pairs (squares: with a reference)", fontsize=10
    )
    axes.grid(axis="x", alpha=0.3)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=130)


def heat_map(data_set: dict[str, Any], path: Path) -> None:
    """Spearman between every two metrics' scores."""
    between = data_set["between"]
    titles, values = between["metrics"], np.array(between["spearman"], float)
    size = 2.5 + 0.27 * len(titles)
    figure = Figure(figsize=(size + 1, size), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set_xticks(range(len(titles)), titles, rotation=90, fontsize=7)
    axes.set_yticks(range(len(titles)), titles, fontsize=7)
    axes.set_title(f"{data_set['name']}: Spearman between metrics", fontsize=10)
    figure.colorbar(image, shrink=0.7)
    figure.savefig(path, dpi=130)
