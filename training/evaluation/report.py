"""The report of an evaluation: a table for the terminal, evaluation.json, evaluation.md and its plot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gaixie.udfs.reports import number, render, write_json

TEMPLATE = Path(__file__).with_name("evaluation.md.j2")
COLOURS = {"copy": "#9aa0a6", "model": "#c0392b", "file": "#c0392b"}
COLUMN_COLOUR = "#2c5f8a"
PANELS = 4
"""In a line of the plot."""


def write(folder: Path, result: dict[str, Any]) -> None:
    """Writes the whole report. result: as training/evaluate.py makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "evaluation.json", result)
    text = render(TEMPLATE, title=_title, estimate=_estimate, **result)
    (folder / "evaluation.md").write_text(text, "utf-8")
    plot(result, folder / "evaluation.png")


def print_table(result: dict[str, Any]) -> None:
    """A column for each system: mean, deviation and interval, on standard output."""
    systems = result["systems"]
    table = Table("", *(system["name"] for system in systems))
    table.add_row("rows", *(f"{system['rows']:,}" for system in systems))
    table.add_row("left out", *(f"{system['left_out']:,}" for system in systems))
    for measure in result["measures"]:
        table.add_row(_title(measure), *(_estimate(system, measure, "\n") for system in systems))
    Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(table)
    print("mean ± standard deviation of the rows (95 % interval of the mean)")
    if references := result["references"]:
        rows = references["systems"]
        table = Table("against references", *rows)
        for k, title in enumerate(references["titles"]):
            values = (row[k] for row in rows.values())
            table.add_row(title, *(_corpus(value, references["digits"][k]) for value in values))
        Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(table)


def _corpus(value: dict[str, float], digits: int) -> str:
    score, low, high = (number(value[key], digits) for key in ("score", "low", "high"))
    return f"{score} ({low} to {high})"


def _title(measure: dict[str, Any]) -> str:
    return f"{measure['title']} {measure['better']}".strip()


def _estimate(system: dict[str, Any], measure: dict[str, Any], separator: str = " ") -> str:
    """A system's mean, its deviation and interval."""
    estimate, digits = system["measures"][measure["name"]], measure["digits"]
    if not estimate["rows"]:
        return "–"
    mean, sd, low, high = (number(estimate[k], digits) for k in ("mean", "sd", "low", "high"))
    return f"{mean} ± {sd}{separator}({low} to {high})"


def plot(result: dict[str, Any], path: Path) -> None:
    """A panel for each measure, a line for each system: mean, and interval as a bar."""
    from matplotlib.figure import Figure  # takes a second to import

    systems, measures = result["systems"], result["measures"]
    lines = -(-len(measures) // PANELS)
    height = lines * (1.1 + 0.32 * len(systems))
    figure = Figure(figsize=(11, height + 0.4), layout="constrained")
    axes = figure.subplots(lines, min(PANELS, len(measures)), squeeze=False, sharey=True)
    for index, measure in enumerate(measures):
        axis = axes.flat[index]
        for row, system in enumerate(systems):
            estimate = system["measures"][measure["name"]]
            colour = COLOURS.get("copy" if not row else system["made_by"].split()[0], COLUMN_COLOUR)
            axis.plot([estimate["low"], estimate["high"]], [row, row], color=colour, lw=2.5)
            axis.plot(estimate["mean"], row, "o", color=colour, ms=5)
            if estimate["rows"]:
                text = number(estimate["mean"], measure["digits"])
                axis.annotate(
                    *(text, (estimate["mean"], row), (0, 5)),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7,
                    color=colour,
                )
        axis.set_title(_title(measure), fontsize=10)
        axis.grid(axis="x", alpha=0.3)
        axis.margins(x=0.12)
        for side in ("top", "right", "left"):
            axis.spines[side].set_visible(False)
        axis.tick_params(axis="y", length=0)
    for axis in axes.flat[len(measures) :]:
        axis.set_visible(False)
    axes.flat[0].set_yticks(range(len(systems)), [system["name"] for system in systems])
    axes.flat[0].set_ylim(len(systems) - 0.4, -0.6)
    figure.suptitle(
        f"means and 95 % intervals, {result['evaluated']:,} rows (↑ higher is better, ↓ lower; "
        "grey: the source itself, red: models, blue: given)",
        fontsize=10,
    )
    figure.savefig(path, dpi=130)
