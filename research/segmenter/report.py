"""What the command prints of a trained model, and the model's card."""

from __future__ import annotations

from pathlib import Path

from gaixie.udfs.reports import render

HERE = Path(__file__).parent


def table(evaluation: dict) -> str:
    """The evaluation for a reader: what was trained on, and the scores in per cent."""
    return render(HERE / "table.txt.j2", **evaluation)


def card(evaluation: dict) -> str:
    """The model card, in Markdown."""
    return render(HERE / "card.md.j2", **evaluation)
