"""Why a pair is judged as it is, in words: what each family of features can name."""

from __future__ import annotations

from gaixie.udfs.meaning import facts, language_model, vectors
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import Segmenter

ODD_SPOTS = 2
"""Odd spots that are named at most."""
SOFT = ("quantity", "modality", "link", "question", "pronoun")
"""Kinds of facts that good paraphrases change too: the features count them, nobody wants to read them."""


def explain(source: str, paraphrase: str, segmenter: Segmenter, resources: Resources) -> list[str]:
    """What pulls the judgements of a pair down, in short English phrases; may be empty."""
    a, b = normalise(source), normalise(paraphrase)
    words_a, words_b = segmenter.cut([a, b])
    spots = language_model.odd_spots(b, resources.language_model, ODD_SPOTS)
    odd = [f"odd: {b[spot.start : spot.end]}" for spot in spots]
    changed = [line for line in facts.explain(a, b, words_a, words_b) if not line.startswith(SOFT)]
    named = " ".join(changed)
    words = vectors.explain(words_a, words_b, resources.vectors)
    return [*changed, *(line for line in words if line.split()[0] not in named), *odd]
