"""Selects the vocabulary: the frequent words of each part of speech.

Source: Chinese Sentence Paraphrasing, section 5.1, Table 5. All occurrences of a word with several
tags count under the class in which it is most frequent; ties go to the class that comes first in
parts_of_speech.CLASSES. Within a class words are ordered by count, the most frequent first, and
then by code points. Each class keeps the front of that order:

* ``share``: this share of its distinct words (the paper's way), rounded half up;
* ``min_count``: the words that occur at least this often;
* ``coverage``: the fewest words that make up this share of its running words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gaixie.udfs.text.parts_of_speech import CLASSES


@dataclass(frozen=True)
class Rule:
    """How many words of a class are kept; exactly one of the three is set."""

    share: float | None = None
    min_count: int | None = None
    coverage: float | None = None

    def __post_init__(self) -> None:
        given = [
            value for value in (self.share, self.min_count, self.coverage) if value is not None
        ]
        if len(given) != 1:
            raise ValueError("a rule needs exactly one of share, min_count and coverage")
        for name in ("share", "coverage"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, not {value}")
        if self.min_count is not None and self.min_count < 1:
            raise ValueError(f"min_count must be 1 or more, not {self.min_count}")


PAPER = {name: Rule(share=share) for name, share in CLASSES.items()}
"""The rules of Table 5."""


@dataclass(frozen=True)
class Cut:
    """Keeps the words of a class that occur more than ``above`` times, and the first ``ties`` of
    those that occur exactly ``above`` times."""

    above: int
    ties: int

    def keeps(self, count: int, rank_among_equals: int) -> bool:
        """Tells whether a word is kept. rank_among_equals: from 0, in the order of code points."""
        return count > self.above or (count == self.above and rank_among_equals < self.ties)


def find_cut(words_by_count: Mapping[int, int], rule: Rule) -> Cut:
    """Finds where to cut a class, given how many of its words occur how often.

    A class of millions of words is thus cut without sorting them.
    """
    counts = sorted(words_by_count, reverse=True)
    if rule.min_count is not None:
        return Cut(rule.min_count - 1, 0)
    if rule.share is not None:
        left = math.floor(rule.share * sum(words_by_count.values()) + 0.5)
        for count in counts:
            if words_by_count[count] > left:
                return Cut(count, left)
            left -= words_by_count[count]
        return Cut(0, 0)
    running = sum(count * words for count, words in words_by_count.items())
    missing = (rule.coverage or 0.0) * running
    for count in counts:
        needed = max(math.ceil(missing / count - 1e-9), 0)
        if words_by_count[count] > needed:
            return Cut(count, needed)
        missing -= count * words_by_count[count]
    return Cut(0, 0)
