"""Rules of structure: each names a span of a text and its rewording.

Rules that an expression says are lines of patterns.yaml; the others are functions, a family a file:
they take a view of the text and give (start, end, replacement). ``view.rule`` registers them.
"""

from gaixie.udfs.paraphrase.rules import (  # noqa: F401  each registers its rules
    clauses,
    moves,
    patterns,
    phrases,
    questions,
)
from gaixie.udfs.paraphrase.rules.register import register_of
from gaixie.udfs.paraphrase.rules.tables import words as rule_words
from gaixie.udfs.paraphrase.rules.view import RULES, View, Words, sound

OF_ONE_REGISTER = dict.fromkeys(rule_words("written_rules"), "written") | dict.fromkeys(
    rule_words("spoken_rules"), "spoken"
)
"""Rule -> the only register whose texts it fits."""


def structural_edits(text: str, words: Words) -> list[tuple[int, int, str, str]]:
    """Every edit that the rules give for a text: start, end, replacement, rule."""
    v, register = View(text, words), register_of(text)
    rules = [own for own in RULES.items() if OF_ONE_REGISTER.get(own[0], register) == register]
    found = {(*edit, name): sound(text, edit) for name, give in rules for edit in give(v)}
    return [edit for edit, good in found.items() if good]
