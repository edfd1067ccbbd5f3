"""Rules of structure: each yields spans of a text and their replacements.

Rules that a regular expression can state are in patterns.yaml. The others are functions, one file
for each family, from a view of the text to (start, end, replacement). ``view.rule`` registers them.
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
"""Maps a rule to the only register that it fits."""


def structural_edits(text: str, words: Words) -> list[tuple[int, int, str, str]]:
    """Returns every edit that the rules give for a text: start, end, replacement, rule."""
    v, register = View(text, words), register_of(text)
    rules = [own for own in RULES.items() if OF_ONE_REGISTER.get(own[0], register) == register]
    found = {(*edit, name): sound(text, edit) for name, give in rules for edit in give(v)}
    return [edit for edit, good in found.items() if good]
