"""Rules of structure: each names a span of a text and its rewording.

Rules that an expression says are lines of patterns.yaml; the others are functions, a family a file:
they take a view of the text and give (start, end, replacement). ``view.rule`` registers them.
"""

from gaixie.udfs.paraphrase.rules import (  # noqa: F401  each registers its rules
    clauses,
    moves,
    numbers,
    patterns,
    phrases,
    questions,
)
from gaixie.udfs.paraphrase.rules.view import RULES, View, Words, sound


def structural_edits(text: str, words: Words) -> list[tuple[int, int, str, str]]:
    """Every edit that the rules give for a text: start, end, replacement, rule."""
    v = View(text, words)
    found = {(*edit, name): sound(text, edit) for name, give in RULES.items() for edit in give(v)}
    return [edit for edit, good in found.items() if good]
