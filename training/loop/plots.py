"""Plots a run from its logs: loss, accuracy and score over the steps, stage by stage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COLOURS = ("#dce9f7", "#e4f3dc", "#fbe9d6")
"""Background colours of the stages."""


def draw(output: Path) -> Path:
    """Draws OUTPUT/curriculum.png from a run's log.jsonl and history.jsonl, and returns its
    path."""
    from matplotlib.figure import Figure  # takes a second to import

    log, history = (read_lines(output / name) for name in ("log.jsonl", "history.jsonl"))
    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(3, sharex=True)
    titles = ("loss of a training token", "accuracy of a validation token", "mean SPScore-zh")
    for axis, title, lines, name in zip(
        axes, titles, (log, history, history), ("loss", "accuracy", "score"), strict=True
    ):
        points = [(line["step"], line[name]) for line in lines if line[name] is not None]
        axis.plot(
            *zip(*points, strict=True) if points else ((), ()), marker=None if lines is log else "."
        )
        axis.set_ylabel(title)
        for stage, (start, end) in enumerate(spans(log, history), 1):
            axis.axvspan(start, end, color=COLOURS[(stage - 1) % len(COLOURS)], zorder=0)
            if axis is axes[0]:
                top = axis.get_xaxis_transform()
                axis.text((start + end) / 2, 1.02, f"stage {stage}", ha="center", transform=top)
    best = [line for line in history if line["improved"]]
    if best:
        steps, scores = ([line[name] for line in best] for name in ("step", "score"))
        axes[2].plot(steps, scores, "*", label="best of its stage")
        axes[2].legend(loc="best", frameon=False)
    axes[2].set_xlabel("optimiser steps")
    path, part = output / "curriculum.png", output / ".curriculum.part.png"
    figure.savefig(part, dpi=100)
    part.replace(path)
    return path


def spans(log: list[dict[str, Any]], history: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Returns the first and last step of each stage so far."""
    ends = [line["step"] for line in history if line["action"] in ("next stage", "finish")]
    last = max((line["step"] for line in log), default=0)
    if last > max(ends, default=0):
        ends.append(last)
    return [*zip([0, *ends[:-1]], ends, strict=True)]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the JSON lines of a file; none if it does not exist."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
