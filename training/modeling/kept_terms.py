"""Terms that a paraphrase has to keep to the character, beside the entities of fixed form.

    with keeping(tokenizer, ["贸易司"]):
        generator.candidates(["…"], decoding)

A term becomes an indexed token of the sentence, as a long word does (kind ``word``), and the search
is held to write every indexed token of its source. So the model sees that something is there, but
not what it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import WORD
from gaixie.udfs.text.entities import Entity, EntityFinder
from gaixie.udfs.text.normalise import normalise


class TermFinder(EntityFinder):
    """Finds terms as well as what an EntityFinder finds.

    A term inside an entity is kept with it; where the two overlap otherwise the term wins. Of terms
    that begin at one place the longest is found.
    """

    def __init__(self, entities: EntityFinder, terms: Sequence[str]):
        super().__init__(entities.settings)
        self._entities = entities
        known = sorted(
            {normalise(term) for term in terms} - {""}, key=lambda term: (-len(term), term)
        )
        self._terms = re.compile("|".join(map(re.escape, known)) or "(?!)")

    def find(self, text: str) -> list[Entity]:
        """The entities and terms of a normalised text, in order, none overlapping another."""
        found = self._entities.find(text)
        terms = [Entity(WORD, match.start(), match.end()) for match in self._terms.finditer(text)]
        terms = [
            term
            for term in terms
            if not any(own.start <= term.start and term.end <= own.end for own in found)
        ]
        apart = [
            own
            for own in found
            if not any(own.start < term.end and term.start < own.end for term in terms)
        ]
        return sorted([*apart, *terms], key=lambda own: own.start)


@contextmanager
def keeping(tokenizer: Any, terms: Sequence[str]) -> Iterator[None]:
    """Has a tokenizer of ours index terms; any other one stays as it is. Not for two threads at
    once."""
    if not terms or not isinstance(tokenizer, EntityAlignedTokenizer):
        yield
        return
    before = tokenizer.codec.finder
    tokenizer.codec.finder = TermFinder(before, terms)
    try:
        yield
    finally:
        tokenizer.codec.finder = before
