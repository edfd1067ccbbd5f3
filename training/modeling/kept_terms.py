"""Keeps given terms verbatim in a paraphrase, besides the entities of fixed form.

    with keeping(tokenizer, ["贸易司"]):
        generator.candidates(["…"], decoding)

A term becomes an indexed token of the sentence, as a long word does (kind ``word``), and the search
must write every indexed token of its source. So the model sees that a term is there, but not which.
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
    """Finds terms as well as the entities of EntityFinder.

    A term inside an entity is kept with it; if they overlap otherwise, the term wins. Of terms that
    begin at one place, the longest is found.
    """

    def __init__(self, entities: EntityFinder, terms: Sequence[str]):
        super().__init__(entities.settings)
        self._entities = entities
        known = sorted(
            {normalise(term) for term in terms} - {""}, key=lambda term: (-len(term), term)
        )
        self._terms = re.compile("|".join(map(re.escape, known)) or "(?!)")

    def find(self, text: str) -> list[Entity]:
        """Returns the entities and terms of a normalised text, in order, without overlaps."""
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
    """Makes our tokenizer index terms; any other tokenizer stays unchanged. Not thread-safe."""
    if not terms or not isinstance(tokenizer, EntityAlignedTokenizer):
        yield
        return
    before = tokenizer.codec.finder
    tokenizer.codec.finder = TermFinder(before, terms)
    try:
        yield
    finally:
        tokenizer.codec.finder = before
