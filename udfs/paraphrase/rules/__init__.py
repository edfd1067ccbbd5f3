"""Rules of structure: each names a span of a text and its rewording, a family a file.

A rule takes a text and its words and gives (start, end, replacement); ``view.rule`` registers it.
"""

from gaixie.udfs.paraphrase.rules import (  # noqa: F401  each registers its rules
    adverbials,
    comparisons,
    conditions,
    connectives,
    frames,
    joining,
    negation,
    nouns,
    numbers,
    questions,
    speech,
    voice,
)
from gaixie.udfs.paraphrase.rules.view import RULES, Words


def structural_edits(text: str, words: Words) -> list[tuple[int, int, str, str]]:
    """Every edit that the rules give for a text: start, end, replacement, rule."""
    return [(*edit, name) for name, give in RULES.items() for edit in give(text, words)]
