"""An edit of a sentence, and several of them together."""

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
    """``word`` of the lexicon, or the name of a rule."""
    sure: bool = True
    """Whether it fits in nearly every context."""
    doubtful: bool = False
    """Whether it may not suit the register of the text: made only where nothing else is left."""


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The sentence after edits that do not overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def fits(edit: Edit, others: Sequence[Edit]) -> bool:
    """Whether an edit overlaps none of the others; two at one place overlap."""
    return all(
        edit.end <= own.start or own.end <= edit.start
        for own in others
        if edit[:2] != own[:2] or edit.start < edit.end
    ) and all(edit[:2] != own[:2] for own in others)


def doubts_of(edits: Sequence[Edit], doubts: np.ndarray) -> list[float]:
    """How likely each edit is wrong, from left to right.

    edits: do not overlap. doubts: of each character of the text after them, float64.
    """
    found, moved = [], 0
    for edit in sorted(edits):
        start = edit.start + moved
        found.append(float(doubts[start : start + max(len(edit.new), 1)].max(initial=0.0)))
        moved += len(edit.new) - edit.end + edit.start
    return found
