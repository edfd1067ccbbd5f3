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

import re
import string
from collections import Counter
from collections.abc import Sequence
from configparser import ConfigParser
from functools import cache
from itertools import accumulate, chain, groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gaixie.udfs.text import numerals
from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.compiled import entry, inner
from gaixie.udfs.text.numerals import Number
from gaixie.udfs.text.segmenters import jieba_tables
from gaixie.udfs.text.words import MULTIPLIER, word_key

NAMES = (
    *("numbers_lost", "numbers_new", "latin_lost", "latin_new", "names_lost", "names_new"),
    *("foreign_lost", "foreign_new", "pronouns", "questions", "facts_lost", "facts_new"),
    *("negation_added", "negation_odd", "opposites", "changed"),
)
"""The columns, in order."""

COUNTED_ANYWHERE = "不没我你您他她它"
"""Characters that also count within words: 看不到, 他用. Any other word of one character counts only if
the segmenter cuts it as a word (都, not 首都), or if it lies between the end of a counted word and the
end of a word (不会)."""


def _sections() -> dict[str, list[str]]:
    """Returns the lines of each section of fact_words.ini."""
    parser = ConfigParser(allow_no_value=True, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # lines as they are
    parser.read(Path(__file__).with_name("fact_words.ini"), "utf-8")
    return {name: [*parser[name]] for name in parser.sections()}


_KINDS = _sections()
FOREIGN_CHARACTERS = frozenset("".join(_KINDS.pop("foreign characters")))
FOREIGN_RUN = 3
SURNAMES = frozenset("".join(_KINDS.pop("surnames")))
NOT_NAMES = frozenset(" ".join(_KINDS.pop("not names")).split())
_HIDING = " ".join(_KINDS.pop("none")).split()
_SIDES = [side for line in _KINDS.pop("opposites") for side in line.split("|")]
_SURE = _KINDS.pop("exclusive")
_UNLESS_NEGATED = _KINDS.pop("exclusive unless negated")
_OF_NUMBERS = _KINDS.pop("exclusive of numbers")


def _values(line: str) -> dict[int, list[str]]:
    """Returns the words of a line of [exclusive] by the values that they may have: bits."""
    values: dict[str, int] = {}
    for number, words in enumerate(line.split("|")):
        for word in words.split():
            values[word] = values.get(word, 0) | 1 << number
    by_value: dict[int, list[str]] = {}
    for word, value in values.items():
        by_value.setdefault(value, []).append(word)
    return by_value


_EXCLUSIVE = [_values(line) for line in (*_SURE, *_UNLESS_NEGATED, *_OF_NUMBERS)]

ITEMS = [(kind, line.split()[0]) for kind, lines in _KINDS.items() for line in lines]
"""(kind, first word) of each item, then both sides of each line of opposites, then the sets of
values of each line of [exclusive]."""
OPPOSITES_FROM = len(ITEMS)
ITEMS += [("opposite", side.split()[0]) for side in _SIDES]
EXCLUSIVE_FROM = len(ITEMS)
ITEMS += [("exclusive", words[0]) for line in _EXCLUSIVE for words in line.values()]
LINES = np.cumsum([EXCLUSIVE_FROM, *map(len, _EXCLUSIVE)])
"""The number of the first item of each line of [exclusive], and one past the last."""
SURE_LINES, WORD_LINES = len(_SURE), len(_SURE + _UNLESS_NEGATED)
"""How many of these lines count whatever happens to the negations, and without numbers."""
VALUES = np.array([0] * EXCLUSIVE_FROM + [value for line in _EXCLUSIVE for value in line])
"""The values, as bits, that an item of [exclusive] may have."""
NEGATION = ITEMS.index(("negation", "不"))
YES_NO = ITEMS.index(("question", "吗"))
KIND_SPAN = {
    kind: (first, first + sum(other == kind for other, _ in ITEMS))
    for first, (kind, _) in reversed(list(enumerate(ITEMS)))
    if kind not in [other for other, _ in ITEMS[:first]]
}
"""The number of each kind's first item, and one past its last."""


@cache
def lexicon() -> dict[str, list[int]]:
    """Returns the items' numbers for each word; none for a word that only hides others."""
    entries: dict[str, list[int]] = {word: [] for word in _HIDING}
    exclusive = (" ".join(words) for line in _EXCLUSIVE for words in line.values())
    for item, line in enumerate([*chain(*_KINDS.values()), *_SIDES, *exclusive]):
        for word in line.split():
            negates = item >= OPPOSITES_FROM and word[0] in "不没" and word not in entries
            entries.setdefault(word, [NEGATION] if negates else []).append(item)
    return entries


LONGEST_WORD = max(map(len, lexicon()))


def is_name(word: str, frequency: int, tag: str) -> bool:
    """Tells whether a word of the dictionary is a place, an organisation or a person.

    Tags of persons are unreliable for short words, and for rare words that do not begin with a
    surname.
    """
    if len(word) < 2 or word in NOT_NAMES:
        return False
    known = frequency >= 20 or word[0] in SURNAMES
    return tag in ("ns", "nt", "nrt") or (tag in ("nr", "nrfg") and len(word) == 3 and known)


@cache
def known_words() -> frozenset[str]:
    """Returns the dictionary's words. Raises ModuleNotFoundError if jieba is not installed."""
    return frozenset(word for word, _, _ in jieba_tables.dictionary())


@cache
def names() -> frozenset[str]:
    """Returns the dictionary's names. Raises ModuleNotFoundError if jieba is not installed."""
    return frozenset(line[0] for line in jieba_tables.dictionary() if is_name(*line))


PLACES = "市省县区州镇乡村岛河江湖山国"
"""A name of three characters or more that ends so also counts as kept without it: 北京市 in 北京."""

# Bits of a cell of Tables.characters, above those of udfs.text.numerals: the node of a word's first
# character; ASCII letters; FOREIGN_CHARACTERS, PLACES, COUNTED_ANYWHERE.
ROOT_SHIFT, ROOT_MASK = 12, (1 << 11) - 1
LATIN, FOREIGN, IS_PLACE, ANYWHERE = 1 << 23, 1 << 24, 1 << 25, 1 << 26

EDGE_BITS = 12
"""The hash table of edges has 2 ** EDGE_BITS cells."""
NAME_BITS = 18


class Tables(NamedTuple):
    """The words of fact_words.ini as a tree, whose root is 0, and the names."""

    characters: np.ndarray  # uint32, by code point; the last cell is 0
    edges: np.ndarray  # uint64, (cells,): node << 21 | code point + 1, or 0
    children: np.ndarray  # int16, (cells,): the node that the edge leads to
    word_at: np.ndarray  # int16, by node: -1, or the word's number
    first_hit: np.ndarray  # int32, by word and one more: where its items begin in hits
    hits: np.ndarray  # int16
    names: np.ndarray  # uint64, (1 << NAME_BITS,): the names' keys (udfs/text/words.py), or 0


@cache
def tables() -> Tables:
    """Builds the tables, once per process."""
    nodes, words = {"": 0}, list(lexicon())
    for word in words:
        for end in range(1, len(word) + 1):
            nodes.setdefault(word[:end], len(nodes))
    if len(nodes) > ROOT_MASK or 2 * len(nodes) > 1 << EDGE_BITS:
        raise OverflowError(f"the words of fact_words.ini need {len(nodes)} nodes: too many")
    edges = np.zeros(1 << EDGE_BITS, np.uint64)
    children = np.zeros(1 << EDGE_BITS, np.int16)
    for prefix, node in nodes.items():
        if len(prefix) > 1:
            key = nodes[prefix[:-1]] << 21 | ord(prefix[-1]) + 1
            slot = (key * int(MULTIPLIER) & (1 << 64) - 1) >> (64 - EDGE_BITS)
            while edges[slot]:
                slot = (slot + 1) % len(edges)
            edges[slot], children[slot] = key, node
    word_at = np.full(len(nodes), -1, np.int16)
    word_at[[nodes[word] for word in words]] = np.arange(len(words))
    hits = [lexicon()[word] for word in words]
    first_hit = np.cumsum([0, *map(len, hits)], dtype=np.int32)
    of_words = first_hit, np.concatenate(hits).astype(np.int16)
    return Tables(_characters(nodes), edges, children, word_at, *of_words, _name_table())


def _characters(nodes: dict[str, int]) -> np.ndarray:
    cells = numerals.cells()
    for bit, characters in (
        (LATIN, string.ascii_letters),
        (FOREIGN, FOREIGN_CHARACTERS),
        (IS_PLACE, PLACES),
        (ANYWHERE, COUNTED_ANYWHERE),
    ):
        for character in characters:
            cells[character] = cells.get(character, 0) | bit
    for prefix, node in nodes.items():
        if len(prefix) == 1:
            cells[prefix] = cells.get(prefix, 0) | node << ROOT_SHIFT
    return numerals.table_of(cells)


def _name_table() -> np.ndarray:
    texts = from_strings(sorted(names()))
    table = np.zeros(1 << NAME_BITS, np.uint64)
    _add_names(texts.values, texts.offsets, table)
    return table


@entry
def _add_names(values, offsets, table):
    for row in range(len(offsets) - 1):
        key = word_key(values, offsets[row], offsets[row + 1])
        table[place_of_name(key, table)] = key


@inner
def first_place(key):
    """Returns the first cell of Tables.names where a key may be."""
    return np.int64((key * MULTIPLIER) >> np.uint64(64 - NAME_BITS))


@inner
def place_of_name(key, table):
    """Returns the cell of Tables.names that has a key, or where it would be."""
    slot = first_place(key)
    while table[slot] != 0 and table[slot] != key:
        slot = (slot + 1) & (len(table) - 1)
    return slot


@inner
def step(node, code, edges, children):
    """Returns the node that a node's edge leads to, or 0."""
    key = (np.uint64(node) << np.uint64(21)) | (np.uint64(code) + np.uint64(1))
    slot = np.int64((key * MULTIPLIER) >> np.uint64(64 - EDGE_BITS))
    while edges[slot] != 0:
        if edges[slot] == key:
            return np.int64(children[slot])
        slot = (slot + 1) & (len(edges) - 1)
    return 0


# Finding the facts of one pair, for explanations


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
    numbers = numerals.find(text, words)
    ends = {number.end for number in numbers}  # the kg of 2kg is no word
    latin = [code for code in numerals.CODE.finditer(text) if code.end() not in ends]
    return Found(text, numbers, latin, named, foreign, _items(text, words))


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
