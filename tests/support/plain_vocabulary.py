"""Selects the vocabulary by definition, in memory, to test jobs/build_vocabulary.py against."""

import math
from collections.abc import Mapping

from gaixie.udfs.text.parts_of_speech import CLASSES
from gaixie.udfs.text.vocabulary import PAPER, Rule


def main_class(counts: Mapping[str, int]) -> str:
    """Returns the class in which a word is most frequent, from its occurrences by class."""
    order = list(CLASSES)
    return min(counts, key=lambda name: (-counts[name], order.index(name)))


def select(
    counts: Mapping[str, Mapping[str, int]], rules: Mapping[str, Rule] = PAPER
) -> list[tuple[str, str, int]]:
    """Returns kept (word, class, count), most frequent first. counts: by word and class."""
    classes: dict[str, list[tuple[int, str]]] = {}
    for word, by_class in counts.items():
        classes.setdefault(main_class(by_class), []).append((-sum(by_class.values()), word))
    kept = []
    for name, words in classes.items():
        rule, ordered = rules[name], sorted(words)
        if rule.share is not None:
            last = math.floor(rule.share * len(ordered) + 0.5)
        elif rule.min_count is not None:
            last = sum(-count >= rule.min_count for count, _ in ordered)
        else:
            running, last = sum(-count for count, _ in ordered), 0
            covered, wanted = 0, (rule.coverage or 0.0) * running - 1e-6
            while last < len(ordered) and covered < wanted:
                covered -= ordered[last][0]
                last += 1
        kept += [(word, name, -count) for count, word in ordered[:last]]
    return sorted(kept, key=lambda row: (-row[2], row[0]))
