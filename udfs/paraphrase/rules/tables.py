"""The words of the rules, from words.yaml."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent


@cache
def _words() -> dict[str, str]:
    return dict(yaml.safe_load((FOLDER / "words.yaml").read_text("utf-8")))


def expanded(text: str) -> str:
    """Replaces each <name> in a text by its expression. Raises KeyError for an unknown name."""
    return re.sub("<([a-z_]+)>", lambda match: expanded(_words()[match[1]]), text)


def expression(name: str) -> str:
    """Returns the regular expression of a name."""
    return expanded(f"<{name}>")


def words(name: str) -> frozenset[str]:
    """Returns the words of a name whose expression lists plain words."""
    return frozenset(expression(name).split("|"))


def patterns() -> dict[str, list[dict[str, Any]]]:
    """Returns the rules of patterns.yaml by name, with expanded expressions."""
    text = (FOLDER / "patterns.yaml").read_text("utf-8")
    return dict(yaml.safe_load(expanded(re.sub("#.*", "", text))))
