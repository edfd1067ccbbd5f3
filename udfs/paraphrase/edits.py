"""Edits of a sentence, and how to combine them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Edit(NamedTuple):
    """``text[start:end]`` becomes ``new``."""

    start: int
    end: int
    new: str
    kind: str
    """``word`` for one of the lexicon, or the name of a rule."""
    sure: bool = True
    """Whether it fits in nearly every context."""
    doubtful: bool = False
    """Whether it may not suit the register of the text; used only if nothing else is left."""


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Returns the sentence after edits that do not overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def fits(edit: Edit, others: Sequence[Edit]) -> bool:
    """Tells whether an edit overlaps none of the others; two at one position overlap."""
    return all(
        edit.end <= own.start or own.end <= edit.start
        for own in others
        if edit[:2] != own[:2] or edit.start < edit.end
    ) and all(edit[:2] != own[:2] for own in others)


def doubts_of(edits: Sequence[Edit], doubts: np.ndarray) -> list[float]:
    """Returns how likely each edit is wrong, from left to right.

    edits: must not overlap. doubts: float64, one for each character of the edited text.
    """
    found, moved = [], 0
    for edit in sorted(edits):
        start = edit.start + moved
        found.append(float(doubts[start : start + max(len(edit.new), 1)].max(initial=0.0)))
        moved += len(edit.new) - edit.end + edit.start
    return found
