"""The columns of udfs/meaning/facts.py by their definitions, one pair at a time."""

from __future__ import annotations

from gaixie.udfs.meaning import facts, numbering
from gaixie.udfs.meaning.fact_tables import NEGATION
from gaixie.udfs.meaning.facts import NAMES


def reference(a: str, b: str, words_a: list[str], words_b: list[str]) -> dict[str, float]:
    """The columns of a normalised pair, given with its words: the definition."""
    if max(len(a), len(b)) > numbering.LONGEST:
        return dict.fromkeys(NAMES, float("nan"))
    found = facts.differences(a, b, words_a, words_b)
    lost, new = found.items
    facts_lost, facts_new = (facts._total(side) - side[NEGATION] for side in found.items)
    negation = new[NEGATION] - lost[NEGATION]
    values = [
        *map(len, found.numbers),
        *(side.total() for side in found.latin),
        *map(len, found.names),
        *map(len, found.foreign),
        facts._total(lost, "pronoun") + facts._total(new, "pronoun"),
        facts._total(lost, "question") + facts._total(new, "question"),
        facts_lost,
        facts_new,
        negation,
        negation % 2,
        len(facts._switched(lost, new)),
    ]
    changed = sum(values[:6]) + facts_lost + facts_new + abs(negation) + values[-1]
    return dict(zip(NAMES, map(float, [*values, changed]), strict=True))
