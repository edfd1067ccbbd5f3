"""Tables for udfs/meaning/facts.py: its words as a tree, and the names of jieba's dictionary."""

from __future__ import annotations

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

ANYWHERE = "不没我你您他她它"
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
# character, LATIN for ASCII letters, FOREIGN and IS_PLACE.
ROOT_SHIFT, ROOT_MASK = 12, (1 << 11) - 1
LATIN, FOREIGN, IS_PLACE = 1 << 23, 1 << 24, 1 << 25

EDGE_BITS = 12
"""The hash table of edges has 2 ** EDGE_BITS cells."""
NAME_BITS = 18


class Tables(NamedTuple):
    """characters: uint32, by code point. follow: uint64, by node: which characters may go on from
    it, by their low six bits. edges: uint64 (cells,): node << 21 | code point + 1, or 0; children:
    int16 (cells,): the node that the edge leads to. word_at: int16, by node: -1, or the word's
    number; hits: int16, items; first_hit: int32, by word and one more. anywhere: uint8, by node.
    names: uint32 (1 << NAME_BITS,): high halves of hashes of the names' keys, or 0.
    """

    characters: np.ndarray
    follow: np.ndarray
    edges: np.ndarray
    children: np.ndarray
    word_at: np.ndarray
    first_hit: np.ndarray
    hits: np.ndarray
    anywhere: np.ndarray
    names: np.ndarray


@cache
def tables() -> Tables:
    """Builds the tables, once per process."""
    nodes, words = {"": 0}, list(lexicon())
    for word in words:
        for end in range(1, len(word) + 1):
            nodes.setdefault(word[:end], len(nodes))
    if len(nodes) > ROOT_MASK or 2 * len(nodes) > 1 << EDGE_BITS:
        raise OverflowError(f"the words of fact_words.ini need {len(nodes)} nodes: too many")
    cells = numerals.cells()
    for character in FOREIGN_CHARACTERS:
        cells[character] = cells.get(character, 0) | FOREIGN
    for character in PLACES:
        cells[character] = cells.get(character, 0) | IS_PLACE
    for prefix, node in nodes.items():
        if len(prefix) == 1:
            cells[prefix] = cells.get(prefix, 0) | node << ROOT_SHIFT
    for character in map(chr, range(128)):
        if character.isalpha():
            cells[character] = cells.get(character, 0) | LATIN
    characters = np.zeros(max(map(ord, cells)) + 2, np.uint32)  # the last cell stays 0
    for character, cell in cells.items():
        characters[ord(character)] = cell

    edges = np.zeros(1 << EDGE_BITS, np.uint64)
    children = np.zeros(1 << EDGE_BITS, np.int16)
    for prefix, node in nodes.items():
        if len(prefix) > 1:
            key = nodes[prefix[:-1]] << 21 | ord(prefix[-1]) + 1
            slot = (key * int(MULTIPLIER) & (1 << 64) - 1) >> (64 - EDGE_BITS)
            while edges[slot]:
                slot = (slot + 1) % len(edges)
            edges[slot], children[slot] = key, node
    follow = np.zeros(len(nodes), np.uint64)
    for prefix in nodes:
        if len(prefix) > 1:
            follow[nodes[prefix[:-1]]] |= np.uint64(1 << (ord(prefix[-1]) & 63))
    word_at = np.full(len(nodes), -1, np.int16)
    word_at[[nodes[word] for word in words]] = np.arange(len(words))
    hits = [lexicon()[word] for word in words]
    anywhere = np.zeros(len(nodes), np.uint8)
    anywhere[[node for prefix, node in nodes.items() if len(prefix) > 1 or prefix in ANYWHERE]] = 1
    return Tables(
        characters,
        follow,
        edges,
        children,
        word_at,
        np.cumsum([0, *map(len, hits)], dtype=np.int32),
        np.concatenate(hits).astype(np.int16),
        anywhere,
        _name_table(),
    )


def _name_table() -> np.ndarray:
    texts = from_strings(sorted(names()))
    table = np.zeros(1 << NAME_BITS, np.uint32)
    _add_names(texts.values, texts.offsets, table)
    return table


@entry
def _add_names(values, offsets, table):
    for row in range(len(offsets) - 1):
        slot, mark = name_slot(word_key(values, offsets[row], offsets[row + 1]))
        while table[slot]:
            slot = (slot + 1) & (len(table) - 1)
        table[slot] = mark


@inner
def name_slot(key):
    """Returns a key's cell in Tables.names, and its content there (key: udfs/text/words.py)."""
    mixed = key * MULTIPLIER
    mixed = (mixed ^ (mixed >> np.uint64(32))) * MULTIPLIER
    mark = np.uint32((mixed >> np.uint64(8)) & np.uint64(0xFFFFFFFF)) | np.uint32(1)
    return np.int64(mixed >> np.uint64(64 - NAME_BITS)), mark


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
