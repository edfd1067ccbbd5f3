"""What the paraphraser is and how good it is, in words."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml


@cache
def card() -> dict[str, str]:
    """Returns its card by language, en and zh, from card.yaml: a paragraph each."""
    return dict(yaml.safe_load(Path(__file__).with_name("card.yaml").read_text("utf-8")))
