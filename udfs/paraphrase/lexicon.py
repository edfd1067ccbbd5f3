"""Lists words and phrases that may replace one another.

A line of lexicon.tsv is ``phrase<TAB>alternative<TAB>~+alternative<TAB>alternative@where``. An
alternative replaces the phrase without any other change: in most contexts if it has a tilde, else
in nearly all. One with + is more formal than the phrase, one with - more colloquial;
rules/register.py says which texts they fit. ``where`` is a regular expression that must match
around the phrase, written as an underscore: ``(?<!在)_(?=的)`` matches a phrase before 的 that does
not follow 在; ``(目前|本来)_`` matches one that follows either word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gaixie.udfs.paraphrase.edits import Edit
from gaixie.udfs.paraphrase.rules.register import FITS, doubt, register_of

FILE = Path(__file__).with_name("lexicon.tsv")
LONGEST = 8
"""The most characters of a phrase."""
WORDS = 6
"""The most words of a phrase."""
NAMES = frozenset(["nr", "ns", "nt", "nz", "nrt", "nrfg"])
"""Tags of proper names, which must not change."""
ALONE = frozenset("但因若虽仅仍曾均较至与")
"""Single characters that may be replaced; others are too often part of a word."""
_STICKY = frozenset("的了着地得是在不")
"""Characters that an alternative must not double at its edges."""
_PLACE = "\ue000"
"""Marks the phrase in a sentence and in the ``where`` expressions."""
_TITLE = re.compile("《[^》]*》|https?://[!-~]+")


class Alternative(NamedTuple):
    """A replacement for a phrase."""

    new: str
    sure: bool
    """Whether it fits in nearly every context."""
    mark: str
    """+ for one that is more formal than the phrase, - for one that is more colloquial."""
    where: re.Pattern[str] | None
    """What must match in the sentence, with _PLACE for the phrase."""


Lexicon = Mapping[str, Sequence[Alternative]]
Words = Sequence[tuple[str, str]]
"""(word, tag) of a text, in order, without a gap."""


@cache
def load(path: Path = FILE) -> Lexicon:
    """Reads a lexicon. Raises ValueError that names the line of a wrong entry."""
    found = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        phrase, *others = line.split("\t")
        if not all([phrase, *others]) or not others or len(phrase) > LONGEST or phrase in found:
            raise ValueError(f"{path.name}, line {number}: expected phrase<TAB>alternatives")
        found[phrase] = [_alternative(one) for one in others]
    return found


def _alternative(field: str) -> Alternative:
    marked, _, where = field.partition("@")
    place = re.compile(where.replace("_", _PLACE)) if where else None
    new = marked.lstrip("~")
    mark = new[0] if new[0] in FITS else ""
    return Alternative(new.removeprefix(mark), marked[0] != "~", mark, place)


def lexical_edits(text: str, words: Words, lexicon: Lexicon) -> Iterator[Edit]:
    """Yields edits of phrases that begin and end at word boundaries, except names and titles."""
    register = register_of(text)
    bounds, fixed = [0], [match.span() for match in _TITLE.finditer(text)]
    for word, tag in words:
        bounds.append(bounds[-1] + len(word))
        if tag in NAMES and len(word) > 1:
            fixed.append((bounds[-2], bounds[-1]))
    for first, start in enumerate(bounds):
        for end in bounds[first + 1 : first + 1 + WORDS]:
            if end - start > LONGEST:
                break
            if any(start < b and a < end for a, b in fixed):
                continue
            if end - start == 1 and text[start] not in ALONE:
                continue
            for new, sure, mark, where in lexicon.get(text[start:end], ()):
                doubtful = doubt(mark, register)
                if doubtful is None or _doubles(text, start, end, new):
                    continue
                if not where or where.search(text[:start] + _PLACE + text[end:]):
                    yield Edit(start, end, new, "word", sure, doubtful)


def _doubles(text: str, start: int, end: int, new: str) -> bool:
    """Tells whether an alternative would repeat the text beside it or double a particle."""
    before, after = text[max(0, start - len(new)) : start], text[end : end + len(new)]
    return (
        new in (before, after)
        or (before[-1:] == new[0] and new[0] in _STICKY)
        or (after[:1] == new[-1] and new[-1] in _STICKY)
    )
