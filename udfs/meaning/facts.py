"""Facts that a paraphrase loses or invents: numbers, names, negation, words that carry facts.

| column | meaning |
|---|---|
| numbers_lost, numbers_new | numbers of the source (of the paraphrase) without one of the same value on the other side (udfs/text/numerals.py); weak ones are not missed |
| latin_lost, latin_new | Latin words and codes, without case |
| names_lost, names_new | places, organisations and persons of jieba's dictionary that the other side does not have in any words (北京市 is there in 北京) |
| foreign_lost, foreign_new | different characters of transliterated names (runs of three or more characters that such names are written with) that the other side does not have |
| pronouns, questions | pronouns, and words that ask, lost and new together |
| facts_lost, facts_new | words that carry facts (udfs/meaning/fact_words.ini), negation apart, by item |
| negation_added | words of negation, paraphrase less source |
| negation_odd | 1 where that is an odd number |
| opposites | pairs of opposites of which the source has more of one and the paraphrase more of the other: 增加 became 减少 |
| changed | numbers, Latin words, names, words, opposites and the size of negation_added together |

A negation that asks (是不是, 可以不?) counts as asking. A pair with a sentence of over
numbering.LONGEST characters is NaN throughout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from gaixie.udfs.meaning.fact_tables import (
    ANYWHERE,
    FOREIGN_CHARACTERS,
    FOREIGN_RUN,
    ITEMS,
    LONGEST_WORD,
    NEGATION,
    OPPOSITES_FROM,
    PLACES,
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


class Differences(NamedTuple):
    """What one side has and the other has not: (lost, new) of each kind."""

    numbers: tuple[list[Number], list[Number]]
    latin: tuple[Counter[str], Counter[str]]
    names: tuple[list[str], list[str]]
    foreign: tuple[set[str], set[str]]
    items: tuple[Counter[int], Counter[int]]
    """Numbers of ITEMS, and how many."""


def differences(a: str, b: str, words_a: list[str], words_b: list[str]) -> Differences:
    """The differences of a normalised pair, given with its words."""
    numbers_a, numbers_b = numerals.find(a, words_a), numerals.find(b, words_b)
    latin_a, latin_b = (Counter(map(str.lower, numerals.CODE.findall(text))) for text in (a, b))
    letters_a, letters_b = _letters(a), _letters(b)
    items_a, items_b = _items(a, words_a), _items(b, words_b)
    return Differences(
        numbers=(_missed(numbers_a, numbers_b), _missed(numbers_b, numbers_a)),
        latin=(latin_a - latin_b, latin_b - latin_a),
        names=(
            [word for word in words_a if word in names() and _stem(word) not in letters_b],
            [word for word in words_b if word in names() and _stem(word) not in letters_a],
        ),
        foreign=(_foreign(a) - set(b), _foreign(b) - set(a)),
        items=(items_a - items_b, items_b - items_a),
    )


def explain(a: str, b: str, words_a: list[str], words_b: list[str]) -> list[str]:
    """The differences of a normalised pair for people: ``number 3000 lost``, ``negation dropped``, ``增加 became 减少``."""
    facts = differences(a, b, words_a, words_b)
    lines = []
    for verb, numbers, latin, named, foreign, items in zip(("lost", "added"), *facts, strict=True):
        lines += [f"number {number.value:.12g} {verb}" for number in numbers]
        lines += [f"{word} {verb}" for word in latin.elements()]
        lines += [f"name {word} {verb}" for word in named]
        lines += [f"{character} of a foreign name {verb}" for character in sorted(foreign)]
        for item, count in items.items():
            kind, word = ITEMS[item]
            if item == NEGATION:
                dropped = "added" if verb == "added" else "dropped"
                lines.append(f"negation {dropped}" + (f" {count} times" if count > 1 else ""))
            elif item < OPPOSITES_FROM:
                lines.append(f"{kind} {word} {verb}")
    for gone, come in _switched(*facts.items):
        lines.append(f"{ITEMS[gone][1]} became {ITEMS[come][1]}")
    return lines


def _total(items: Counter[int], kind: str = "") -> int:
    """Lost or new words of a kind, or of all."""
    return sum(
        count
        for item, count in items.items()
        if item < OPPOSITES_FROM and kind in ("", ITEMS[item][0])
    )


def _switched(lost: Counter[int], new: Counter[int]) -> list[tuple[int, int]]:
    """(lost side, new side) of each pair of opposites that was switched."""
    return [
        (gone, come)
        for first in range(OPPOSITES_FROM, len(ITEMS), 2)
        for gone, come in ((first, first + 1), (first + 1, first))
        if lost[gone] and new[come]
    ]


def _stem(name: str) -> str:
    return name[:-1] if len(name) > 2 and name[-1] in PLACES else name


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _missed(numbers: list[Number], others: list[Number]) -> list[Number]:
    """Numbers without their equal among the others, one for one; no weak ones."""
    values = [number.value for number in others]
    missed = []
    for number in numbers:
        if number.value in values:
            values.remove(number.value)
        elif not number.weak:
            missed.append(number)
    return missed


def _foreign(text: str) -> set[str]:
    """The characters of transliterated names."""
    characters, run = set(), ""
    for character in [*text, ""]:
        if character and character in FOREIGN_CHARACTERS:
            run += character
            continue
        if len(run) >= FOREIGN_RUN:
            characters |= set(run)
        run = ""
    return characters - {"·"}


def _items(text: str, words: Sequence[str]) -> Counter[int]:
    """How often a text has each item."""
    edges = {0, *accumulate(map(len, words))}
    counts: Counter[int] = Counter()
    position = matched = 0
    while position < len(text):
        for length in range(min(LONGEST_WORD, len(text) - position), 0, -1):
            word, end = text[position : position + length], position + length
            alone = (position in edges or position == matched) and end in edges
            if word in lexicon() and (length > 1 or word in ANYWHERE or alone):
                break
        else:
            position += 1
            continue
        hits = lexicon()[word]
        if hits[:1] == [NEGATION] and length <= 2:
            after = text[end : end + 1]
            if after in ("", "?") or (length == 1 and position and after == text[position - 1]):
                hits = [YES_NO]
        counts.update(hits)
        position = matched = end
    return counts
