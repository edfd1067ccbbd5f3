"""Selects the vocabulary by definition, in memory, to test jobs/build_vocabulary.py against."""

import math
from collections.abc import Mapping

from gaixie.udfs.text.parts_of_speech import CLASSES


def main_class(counts: Mapping[str, int]) -> str:
    """Returns the class in which a word is most frequent, from its occurrences by class."""
    order = list(CLASSES)
    return min(counts, key=lambda name: (-counts[name], order.index(name)))


def select(counts: Mapping[str, Mapping[str, int]]) -> list[tuple[str, str, int]]:
    """Returns kept (word, class, count), most frequent first. counts: by word and class."""
    classes: dict[str, list[tuple[int, str]]] = {}
    for word, by_class in counts.items():
        classes.setdefault(main_class(by_class), []).append((-sum(by_class.values()), word))
    kept = []
    for name, words in classes.items():
        last = math.floor(CLASSES[name] * len(words) + 0.5)
        kept += [(word, name, -count) for count, word in sorted(words)[:last]]
    return sorted(kept, key=lambda row: (-row[2], row[0]))
