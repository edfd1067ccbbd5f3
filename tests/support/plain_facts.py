"""Computes the columns of udfs/meaning/facts.py by definition, one pair at a time."""

from collections import Counter

from gaixie.udfs.meaning import facts, numbering
from gaixie.udfs.meaning.fact_tables import NEGATION
from gaixie.udfs.meaning.facts import NAMES, opposite


def reference(a: str, b: str, words_a: list[str], words_b: list[str]) -> dict[str, float]:
    """Returns the columns of a normalised pair, given with its words, by definition."""
    if max(len(a), len(b)) > numbering.LONGEST:
        return dict.fromkeys(NAMES, float("nan"))
    found = facts.find(a, words_a), facts.find(b, words_b)
    sides = facts.missing(*found), facts.missing(*found[::-1])
    kinds = [Counter(fact.kind for fact in side) for side in sides]
    items = [Counter(fact.item for fact in side) for side in sides]
    words = [
        sum(fact.item not in (-1, NEGATION) and fact.kind != "opposite" for fact in side)
        for side in sides
    ]
    negation = items[1][NEGATION] - items[0][NEGATION]
    switched = {fact.item for fact in sides[0] if fact.kind == "opposite"}
    values = [
        *(side[kind] for kind in ("number", "latin", "name", "foreign") for side in kinds),
        *(kinds[0][kind] + kinds[1][kind] for kind in ("pronoun", "question")),
        *words,
        negation,
        negation % 2,
        sum(items[1][opposite(item)] > 0 for item in switched),
    ]
    changed = sum(values[:6]) + sum(words) + abs(negation) + values[-1]
    return dict(zip(NAMES, map(float, [*values, changed]), strict=True))
