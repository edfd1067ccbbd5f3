"""Why a pair is judged as it is, in words: what each family of features can name."""

from __future__ import annotations

from collections.abc import Mapping

from gaixie.udfs.meaning import counted, facts, language_model, vectors
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.text.code_points import from_strings, word_ends
from gaixie.udfs.text.normalise import is_han, normalise
from gaixie.udfs.text.segmenters import Segmenter

LOW = {"structure": 0.3, "synonyms": 0.3, "meaning": 0.8, "fluency": 0.8}
"""Below these a judgement wants a reason."""
ODD_SPOTS = 2
"""Odd spots that are named at most."""
NUMERALS = frozenset("0123456789零〇一二两三四五六七八九十百千万亿第")
SOFT = ("quantity", "modality", "link", "question", "pronoun", "time")
"""Kinds of facts that good paraphrases change too: the features count them, nobody wants to read them."""


def explain(
    source: str,
    paraphrase: str,
    segmenter: Segmenter,
    resources: Resources,
    judgements: Mapping[str, float] | None = None,
) -> list[str]:
    """What pulls the judgements of a pair down, in short English phrases; may be empty.

    judgements: the four, in [0, 1]; reasons are given for the low ones. Without them, for all.
    """
    low = {name for name in LOW if judgements is None or judgements[name] < LOW[name]}
    a, b = normalise(source), normalise(paraphrase)
    for name, text in (("source", a), ("paraphrase", b)):
        if not any(is_han(ord(character)) for character in text):
            return [f"no Chinese in the {name}"]
    words_a, words_b = segmenter.cut([a, b])
    reasons: list[str] = []
    texts = from_strings([a]), from_strings([b])
    row = counted.features(*texts, word_ends([words_a]), word_ends([words_b]))[0]
    kept, moved = (float(row[counted.NAMES.index(name)]) for name in ("words_kept", "words_moved"))
    if "structure" in low and moved < 0.2 and kept > 0.2:
        reasons.append(f"{1 - moved:.0%} of the shared words in the same order")
    if "synonyms" in low and kept > 0.5:
        reasons.append(f"{kept:.0%} of the words kept")
    if "meaning" in low:
        lines = facts.explain(a, b, words_a, words_b)
        changed = [line for line in lines if not line.startswith(SOFT)]
        named = " ".join(changed)
        words = vectors.explain(words_a, words_b, resources.vectors)
        reasons += changed
        for line in words:
            word = line.split()[0]
            if word not in named and not _is_number(word):
                reasons.append(line)
    if "fluency" in low:
        spots = language_model.odd_spots(b, resources.language_model, ODD_SPOTS)
        reasons += [f"odd: {b[spot.start : spot.end]}" for spot in spots]
    return reasons


def _is_number(word: str) -> bool:
    """Numerals alone, or several and a classifier, 四百名: a number, which the facts name."""
    return NUMERALS.issuperset(word) or (len(word) > 2 and NUMERALS.issuperset(word[:-1]))
