"""Describes in words what the paraphraser is and how good it is."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml


@cache
def card() -> dict[str, str]:
    """Returns the paraphraser's card from card.yaml: a paragraph for each of en and zh."""
    return dict(yaml.safe_load(Path(__file__).with_name("card.yaml").read_text("utf-8")))
