"""Finds facts that a paraphrase loses or invents: numbers, names, negation, words with facts.

| column | meaning |
|---|---|
| numbers_lost, numbers_new | numbers of the source (of the paraphrase) that the other side lacks |
| | (udfs/text/numerals.py, udfs/text/quantities.py); weak ones never count as lacking; and |
| | clashes: 上午 became 晚上, 超过 became 不足 ([exclusive] in udfs/meaning/fact_words.ini) |
| latin_lost, latin_new | Latin words and codes, ignoring case |
| names_lost, names_new | places, organisations and persons of jieba's dictionary that the other |
| | side does not have in any words (北京 counts for 北京市) |
| foreign_lost, foreign_new | different characters of transliterated names (runs of three or more |
| | characters that such names are written with) that the other side does not have |
| pronouns, questions | pronouns, and words that ask, lost and new together |
| facts_lost, facts_new | words that carry facts (udfs/meaning/fact_words.ini) except negation, by |
| | item |
| negation_added | words of negation, paraphrase minus source |
| negation_odd | 1 if negation_added is odd |
| opposites | pairs of opposites of which the source has more of one and the paraphrase more of |
| | the other: 增加 became 减少 |
| changed | sum of numbers, Latin words, names, words, opposites and the size of negation_added |

A negation that asks (是不是, 可以不?) counts as a question. If a sentence has over numbering.LONGEST
characters, all columns are NaN.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import numpy as np

from gaixie.udfs.meaning.fact_tables import (
    COUNTED_ANYWHERE,
    FOREIGN_CHARACTERS,
    FOREIGN_RUN,
    ITEMS,
    LINES,
    LONGEST_WORD,
    NEGATION,
    OPPOSITES_FROM,
    PLACES,
    SURE_LINES,
    VALUES,
    WORD_LINES,
    YES_NO,
    lexicon,
    names,
)
from gaixie.udfs.text import numerals
from gaixie.udfs.text.numerals import Number

NAMES = (
    *("numbers_lost", "numbers_new", "latin_lost", "latin_new", "names_lost", "names_new"),
    *("foreign_lost", "foreign_new", "pronouns", "questions", "facts_lost", "facts_new"),
    *("negation_added", "negation_odd", "opposites", "changed"),
)
"""The columns, in order."""


class Fact(NamedTuple):
    """A fact that the other sentence does not have, text[start:end]."""

    kind: str
    """``number``, ``latin``, ``name``, ``foreign`` (a character), or a kind of ITEMS."""
    start: int
    end: int
    item: int = -1
    """Its number in ITEMS."""


class Found(NamedTuple):
    """The facts in a normalised sentence, in order."""

    text: str
    numbers: list[Number]
    latin: list[re.Match[str]]
    names: list[tuple[int, int]]
    foreign: list[int]
    """Places of the characters of transliterated names."""
    items: list[Fact]


def find(text: str, words: Sequence[str]) -> Found:
    """Returns the facts of a normalised sentence. words: the sentence's."""
    edges = pairwise([0, *accumulate(map(len, words))])
    named = [(start, end) for start, end in edges if text[start:end] in names()]
    foreign: list[int] = []
    runs = groupby(range(len(text)), lambda place: text[place] in FOREIGN_CHARACTERS)
    for is_foreign, places in runs:
        if is_foreign and len(run := list(places)) >= FOREIGN_RUN:
            foreign += [place for place in run if text[place] != "·"]
    latin = list(numerals.CODE.finditer(text))
    return Found(text, numerals.find(text, words), latin, named, foreign, _items(text, words))


def missing(here: Found, there: Found) -> list[Fact]:
    """Returns the facts of one sentence that the other lacks; each fact matches one at most."""
    facts = []
    others = [*there.numbers]
    for number in here.numbers:
        same = next((k for k, other in enumerate(others) if number.same(other)), None)
        if same is not None:
            del others[same]
        elif not number.weak:
            facts.append(Fact("number", number.start, number.end))
    latin = Counter(match[0].lower() for match in there.latin)
    for match in here.latin:
        if latin[match[0].lower()]:
            latin[match[0].lower()] -= 1
        else:
            facts.append(Fact("latin", *match.span()))
    letters = "".join(filter(str.isalnum, there.text))
    for start, end in here.names:
        if _stem(here.text[start:end]) not in letters:
            facts.append(Fact("name", start, end))
    seen = set(there.text)
    for place in here.foreign:
        if here.text[place] not in seen:
            seen.add(here.text[place])
            facts.append(Fact("foreign", place, place + 1))
    counts = Counter(fact.item for fact in here.items)
    counts -= Counter(fact.item for fact in there.items)
    # If an item has several words, those that the other sentence lacks are the missing ones.
    for fact in sorted(here.items, key=lambda fact: here.text[fact.start : fact.end] in there.text):
        if counts[fact.item]:
            counts[fact.item] -= 1
            facts.append(fact)
    return facts


def clashes(here: Found, there: Found) -> list[tuple[Fact, Fact]]:
    """Returns what was lost and what is new of each line of [exclusive] that clashes."""
    lost, new = missing(here, there), missing(there, here)
    lines = len(LINES) - 1 if here.numbers and there.numbers else WORD_LINES
    if any(fact.item == NEGATION for fact in (*lost, *new)):
        lines = SURE_LINES
    pairs = []
    for first, last in pairwise(LINES[: lines + 1]):
        sides = [[fact for fact in side if first <= fact.item < last] for side in (lost, new)]
        values = [np.bitwise_or.reduce(VALUES[[fact.item for fact in side]]) for side in sides]
        if all(values) and not values[0] & values[1]:
            pairs.append((sides[0][0], sides[1][0]))
    return pairs


def turned(lost: Sequence[Fact], new: Sequence[Fact]) -> list[tuple[Fact, Fact]]:
    """Returns the lost facts whose opposites are new, each with its opposite."""
    of_item = {fact.item: fact for fact in new if fact.kind == "opposite"}
    found = [(fact, of_item.get(opposite(fact.item))) for fact in lost if fact.kind == "opposite"]
    return [(fact, other) for fact, other in found if other]


def opposite(item: int) -> int:
    """Returns the other side of a pair of opposites."""
    return OPPOSITES_FROM + (item - OPPOSITES_FROM ^ 1)


def _stem(name: str) -> str:
    return name[:-1] if len(name) > 2 and name[-1] in PLACES else name


def _items(text: str, words: Sequence[str]) -> list[Fact]:
    """Returns the items in a text; a word may belong to several."""
    edges = {0, *accumulate(map(len, words))}
    facts: list[Fact] = []
    position = matched = 0
    while position < len(text):
        for length in range(min(LONGEST_WORD, len(text) - position), 0, -1):
            word, end = text[position : position + length], position + length
            alone = (position in edges or position == matched) and end in edges
            if word in lexicon() and (length > 1 or word in COUNTED_ANYWHERE or alone):
                break
        else:
            position += 1
            continue
        hits = lexicon()[word]
        if hits[:1] == [NEGATION] and length <= 2:
            after = text[end : end + 1]
            if after in ("", "?") or (length == 1 and position and after == text[position - 1]):
                hits = [YES_NO]
        facts += [Fact(ITEMS[item][0], position, end, item) for item in hits]
        position = matched = end
    return facts
