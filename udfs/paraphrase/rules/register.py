"""Finds how formal a text is: of two words with one meaning, one may fit talk, the other law."""

from __future__ import annotations

import re
from typing import Literal

from gaixie.udfs.paraphrase.rules.tables import expression

Register = Literal["spoken", "plain", "written"]

_SPOKEN, _WRITTEN, _TOLD = (re.compile(expression(name)) for name in ("spoken", "written", "told"))
FITS: dict[str, frozenset[Register]] = {
    "+": frozenset(["written"]),
    "-": frozenset(["spoken"]),
    "": frozenset(["spoken", "plain", "written"]),
}
"""Where a word fits that is more formal (+) or more colloquial (-) than another."""
MAY_FIT = frozenset([("+", "plain"), ("-", "plain"), ("-", "written")])
"""Where an edit is doubtful: readers found such edits wrong more often than those that fit."""


def register_of(text: str) -> Register:
    """Returns ``spoken`` for talk, questions, quotations and posts; ``plain`` for stories and
    accounts of people; ``written`` for the rest: news, notices, law, science."""
    if _SPOKEN.search(text):
        return "spoken"
    return "plain" if _TOLD.search(text) and not _WRITTEN.search(text) else "written"


def doubt(mark: str, register: Register) -> bool | None:
    """Tells whether an edit with a mark is doubtful in a register; None if it is wrong there."""
    if register in FITS[mark]:
        return False
    return True if (mark, register) in MAY_FIT else None
