"""Tables for udfs/meaning/facts.py: its words as a tree, and the names of jieba's dictionary."""

from __future__ import annotations

import string
from configparser import ConfigParser
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gaixie.udfs.text import numerals
from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.compiled import entry, inner
from gaixie.udfs.text.segmenters import jieba_tables
from gaixie.udfs.text.words import MULTIPLIER, word_key

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
_UNLESS_NEGATED, _OF_NUMBERS = (
    _KINDS.pop(f"exclusive {k}") for k in ("unless negated", "of numbers")
)


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
