"""Finds replacements for a word of a paraphrase: the lexicon of udfs/paraphrase, both ways."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from gaixie.udfs.paraphrase.lexicon import load

MOST = 12
"""The most alternatives of a word."""


@cache
def _both_ways() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for phrase, alternatives in load().items():
        for other, *_ in alternatives:
            found[phrase][other] = None
            found[other][phrase] = None
    return {phrase: tuple(others) for phrase, others in found.items()}


def rewordings(text: str, start: int, end: int, source: str) -> list[tuple[str, str]]:
    """Returns (replacement of text[start:end], the new text), with the source's own words last."""
    own = text[start:end]
    found: dict[str, None] = {}
    for first in range(len(own)):  # the whole span, then phrases inside
        for last in range(len(own), first, -1):
            if last - first > 1 or len(own) == 1:  # a single character is too often part of a word
                for other in _both_ways().get(own[first:last], ()):
                    found[own[:first] + other + own[last:]] = None
    choices = sorted((one for one in found if one != own), key=lambda one: one in source)
    return [(one, text[:start] + one + text[end:]) for one in choices[:MOST]]
