"""The vocabulary: the frequent words of each part of speech.

Source: Chinese Sentence Paraphrasing, section 5.1, Table 5. A word with several tags counts, with
all its occurrences, under the class in which it is most frequent. Within a class words are ordered
by their counts, the more frequent first, and equals by their code points; each class keeps a front
part of that order:

* ``share``: so many of its distinct words (the paper's way), rounded half up;
* ``min_count``: those that occur so often;
* ``coverage``: the fewest that make up such a part of its running words.

Ties in the class of a word go to the class that stands first in parts_of_speech.CLASSES.
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
            raise ValueError("a rule has one of share, min_count and coverage")
        for name in ("share", "coverage"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, not {value}")
        if self.min_count is not None and self.min_count < 1:
            raise ValueError(f"min_count must be 1 or more, not {self.min_count}")


PAPER = {name: Rule(share=share) for name, share in CLASSES.items()}
"""Table 5."""


@dataclass(frozen=True)
class Cut:
    """Kept are the words of a class that occur more than ``above`` times, and the first ``ties`` of
    those that occur just so often."""

    above: int
    ties: int

    def keeps(self, count: int, rank_among_equals: int) -> bool:
        """Whether a word is kept. rank_among_equals: from 0, in the order of code points."""
        return count > self.above or (count == self.above and rank_among_equals < self.ties)


def find_cut(words_by_count: Mapping[int, int], rule: Rule) -> Cut:
    """Where a class is cut, from how many of its words occur how often.

    So a class of millions of words is cut without sorting them.
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
