"""Writes and prints the report of an evaluation: evaluation.json, evaluation.md, plot."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any

from gaixie.udfs.reports import number, render, write_json

TEMPLATE = Path(__file__).with_name("evaluation.md.j2")
COLOURS = {"copy": "#9aa0a6", "model": "#c0392b", "file": "#c0392b"}
COLUMN_COLOUR = "#2c5f8a"
PANELS = 4
"""Systems in a row of the plot."""


def write(folder: Path, result: dict[str, Any]) -> None:
    """Writes the whole report. result: made by training/evaluate.py."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "evaluation.json", result)
    text = render(TEMPLATE, title=_title, estimate=_estimate, **result)
    (folder / "evaluation.md").write_text(text, "utf-8")
    print(text.partition("\n![")[0])  # without the plot, cases and signatures
    plot(result, folder / "evaluation.png")


def _title(measure: dict[str, Any]) -> str:
    return f"{measure['title']} {measure['better']}".strip()


def _estimate(system: dict[str, Any], measure: dict[str, Any]) -> str:
    """Formats a system's mean, deviation and interval."""
    estimate, digits = system["measures"][measure["name"]], measure["digits"]
    if not estimate["rows"]:
        return "–"
    mean, sd, low, high = (number(estimate[k], digits) for k in ("mean", "sd", "low", "high"))
    return f"{mean} ± {sd} ({low} to {high})"


def plot(result: dict[str, Any], path: Path) -> None:
    """Plots a panel for each measure with a line for each system: mean, and interval as a bar."""
    from matplotlib.figure import Figure  # takes a second to import

    systems, measures = result["systems"], result["measures"]
    lines = -(-len(measures) // PANELS)
    size = 11, lines * (1.1 + 0.32 * len(systems)) + 0.4
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, min(PANELS, len(measures)), squeeze=False, sharey=True)
    for axis, measure in zip_longest(axes.flat, measures):
        axis.set_visible(measure is not None)
        for row, system in enumerate(systems if measure else ()):
            found = system["measures"][measure["name"]]
            kind = "copy" if not row else system["made_by"].split()[0]
            colour = COLOURS.get(kind, COLUMN_COLOUR)
            axis.plot([found["low"], found["high"]], [row, row], color=colour, lw=2.5)
            axis.plot(found["mean"], row, "o", color=colour, ms=5)
            if found["rows"]:
                text, place = number(found["mean"], measure["digits"]), (found["mean"], row)
                style = {"ha": "center", "fontsize": 7, "color": colour}
                axis.annotate(text, place, (0, 5), textcoords="offset points", **style)
        if measure:
            axis.set_title(_title(measure), fontsize=10)
        axis.grid(axis="x", alpha=0.3)
        axis.margins(x=0.12)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    axes.flat[0].set_yticks(range(len(systems)), [system["name"] for system in systems])
    axes.flat[0].set_ylim(len(systems) - 0.4, -0.6)
    figure.suptitle(
        f"means and 95 % intervals, {result['evaluated']:,} rows (↑ higher is better, ↓ lower; "
        "grey: the source itself, red: models, blue: given)",
        fontsize=10,
    )
    figure.savefig(path, dpi=130)
