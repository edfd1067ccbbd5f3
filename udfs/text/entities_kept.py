"""Counts how many of a source's entities stand verbatim in its paraphrase."""

import re
from pathlib import Path

from gaixie.udfs.text.entities import EntityFinder

ENTITIES = Path(__file__).parents[2] / "conf/entities.yaml"


def entities_kept(source: str, paraphrase: str, finder: EntityFinder) -> float:
    """Returns the percentage of the source's distinct entities that are verbatim in the paraphrase;
    NaN if there are none.

    Both texts must be normalised. An entity inside a longer number or Latin name does not count: 3月
    is not in 13月.
    """
    if not (entities := {source[start:end] for _, start, end in finder.find(source)}):
        return float("nan")
    # An entity inside a longer word of the source, as a digit may be, need not stand alone.
    kept = (
        stands_in(entity, paraphrase) if stands_in(entity, source) else entity in paraphrase
        for entity in entities
    )
    return 100.0 * sum(kept) / len(entities)


def stands_in(entity: str, text: str) -> bool:
    """Returns whether a text contains an entity that is not part of a longer number or Latin
    word."""
    before = r"(?<![A-Za-z0-9])(?<!\d\.)" if _is_word(entity[0]) else ""
    behind = r"(?![A-Za-z0-9])(?!\.\d)" if _is_word(entity[-1]) else ""
    return re.search(before + re.escape(entity) + behind, text) is not None


def _is_word(character: str) -> bool:
    return character.isascii() and character.isalnum()
