"""How many of a source's entities stand in its paraphrase, to the character."""

from __future__ import annotations

import re
from pathlib import Path

from gaixie.udfs.text.entities import EntityFinder

ENTITIES = Path(__file__).parents[2] / "conf/entities.yaml"


def entities_kept(source: str, paraphrase: str, finder: EntityFinder) -> float:
    """Per cent of the source's different entities that stand verbatim in the paraphrase; NaN
    without any.

    Both normalised. An entity does not stand in the middle of a longer number or Latin name: 3月 is
    not in 13月.
    """
    entities = {source[start:end] for _, start, end in finder.find(source)}
    if not entities:
        return float("nan")
    # What stands in a longer word of the source already, as a digit may, need not stand alone.
    kept = (
        stands_in(entity, paraphrase) if stands_in(entity, source) else entity in paraphrase
        for entity in entities
    )
    return 100.0 * sum(kept) / len(entities)


def stands_in(entity: str, text: str) -> bool:
    """Whether an entity is in a text, and not as a part of a longer number or Latin word."""
    before = r"(?<![A-Za-z0-9])(?<!\d\.)" if _is_word(entity[0]) else ""
    behind = r"(?![A-Za-z0-9])(?!\.\d)" if _is_word(entity[-1]) else ""
    return re.search(before + re.escape(entity) + behind, text) is not None


def _is_word(character: str) -> bool:
    return character.isascii() and character.isalnum()
