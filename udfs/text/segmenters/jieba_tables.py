"""Builds and caches jieba's dictionary and hidden Markov model as flat arrays for ``jieba.py``.

Source: the data files of the ``jieba`` package (Sun Junyi, https://github.com/fxsjy/jieba, MIT):
``dict.txt``, 349,046 lines ``word frequency tag``, and ``finalseg/prob_*.py``. The package is not
imported, because importing it sets up logging handlers.

The dictionary becomes a double-array trie (Aoe 1989): the children of a node lie at
``trie[base + character id]``, and each cell repeats the base of its parent, so that one load says
whether the child exists. Characters are numbered by how common they are, so that the cells that
ordinary text touches lie close together.

Two details of jieba-rs decide between routes that differ only by rounding: the one word that occurs
twice in ``dict.txt`` counts once in the total, and emissions have six decimals.

Building takes about a second, and reading the cached arrays a few hundredths.
"""

import functools
import math
import runpy
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numba import njit

from gaixie.udfs.storage.cache import cache_folder
from gaixie.udfs.storage.storage import open_file

FORMAT = 1
"""Raise it whenever the contents of the arrays change: it is part of the cache file's name."""

# The kernels in jieba.py are compiled with these values, but numba's cache notices changes to that
# file only: after a change here, touch jieba.py.

# A cell of the trie: base of the parent (22 bits), own base (22), weight (16).
PARENT_SHIFT = 38
BASE_SHIFT = 16
BASE_MASK = (1 << 22) - 1
WEIGHT_MASK = (1 << 16) - 1

# Base of every node without children. No other node has it, so a step from it always fails and the
# kernel needs no test for leaves.
LEAF = 1
NO_PARENT = BASE_MASK  # in free cells

# A cell of Tables.characters.
IN_BLOCK = 1 << 15
ID_MASK = IN_BLOCK - 1

STATES = "BEMS"  # begin, end, middle of a word; single-character word
IMPOSSIBLE = -3.14e100  # jieba's logarithm of zero

# Trades build time against the size of the trie (see _place): 0.3 seconds and 0.85 million cells,
# of which 0.5 million are taken.
MAX_TRIES = 50

# What jieba looks up in the dictionary; any other character is a word of its own.
_HAN_RANGES = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0x2CEB0, 0x2EBEF)),
    (0x2F800, 0x2FA1F),
)
_LATIN = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+#&._%-"


class Tables(NamedTuple):
    """All that decides the cuts. Log probabilities are natural logarithms.

    characters: uint16, shape (0x2FA20,), by code point: the character's id, 0 for one that occurs
        in no table, and the bit IN_BLOCK.
    trie: int64, shape (cells,): see PARENT_SHIFT, BASE_SHIFT, WEIGHT_MASK. The root's base is 0.
    weights: float64, shape (distinct frequencies + 2,): log probability of a word; cell 0, for
        prefixes that are not words, -inf; the last cell, for a character outside the dictionary.
    start: float64, shape (4,): log probability of each of STATES at the start.
    transitions: float64, shape (4, 4): from, to.
    emissions: float64, shape (ids, 4): by character id and state.
    """

    characters: np.ndarray
    trie: np.ndarray
    weights: np.ndarray
    start: np.ndarray
    transitions: np.ndarray
    emissions: np.ndarray


@functools.cache
def load() -> Tables:
    """Loads the tables once per process from the cache file, or builds and tries to cache them."""
    path = cache_path()
    # The file may be absent, unreadable, truncated or damaged.
    damaged = suppress(OSError, ValueError, KeyError, EOFError, BadZipFile)
    with damaged, np.load(path, allow_pickle=False) as arrays:  # checks checksums
        return Tables(*(arrays[name] for name in Tables._fields))
    tables = build()
    # Several workers may start at once: the last one's file stays.
    with suppress(OSError), open_file(str(path), "wb") as file:
        np.savez(file, **tables._asdict())
    return tables


def cache_path() -> Path:
    """Returns where the tables are cached (see udfs/storage/cache.py)."""
    return cache_folder() / f"jieba-{version('jieba')}-tables-{FORMAT}.npz"


def build() -> Tables:
    """Builds the tables from jieba's data files."""
    # A dict, because one word occurs twice and the total must count it once.
    entries = {word: frequency for word, frequency, _ in dictionary()}
    words, frequencies = list(entries), np.array(list(entries.values()))
    emissions = _probabilities("emit")

    lengths = np.array([len(word) for word in words])
    characters, ids = _number_characters(words, lengths, frequencies, emissions)
    log_total = math.log(int(frequencies.sum()))
    distinct, weight = np.unique(-frequencies, return_inverse=True)
    # math.log, because numpy's may differ in the last bit, which decides ties between routes.
    logs = [math.log(-frequency) - log_total for frequency in distinct.tolist()]
    start, transitions = _probabilities("start"), _probabilities("trans")
    return Tables(
        characters=characters,
        trie=_build_trie(ids, lengths, weight + 1, int((characters & ID_MASK).max())),
        weights=np.array([-math.inf, *logs, -log_total]),
        start=np.array([start[state] for state in STATES]),
        transitions=np.array([[transitions[a].get(b, IMPOSSIBLE) for b in STATES] for a in STATES]),
        emissions=_emission_table(characters, emissions),
    )


def _file(path: str) -> Path:
    """Returns a file of the package jieba, which is not imported."""
    return Path(str(distribution("jieba").locate_file(f"jieba/{path}")))


def dictionary() -> Iterator[tuple[str, int, str]]:
    """Yields the dictionary's (word, frequency, tag)."""
    fields = _file("dict.txt").read_text("utf-8").split()
    return zip(fields[::3], map(int, fields[1::3]), fields[2::3], strict=True)


def _probabilities(name: str) -> dict[str, Any]:
    """Reads the dict P of ``finalseg/prob_NAME.py``, a module that holds only that literal."""
    return runpy.run_path(str(_file(f"finalseg/prob_{name}.py")))["P"]


def _number_characters(
    words: list[str], lengths: np.ndarray, frequencies: np.ndarray, emissions: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns Tables.characters, and the ids of all words' characters, one word after another."""
    points = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
    characters = np.zeros(_HAN_RANGES[-1][1] + 1, np.uint16)
    for first, last in _HAN_RANGES:
        characters[first : last + 1] = IN_BLOCK
    characters[[*map(ord, _LATIN)]] = IN_BLOCK

    count: Any = np.bincount(points, np.repeat(frequencies, lengths), len(characters))
    count[[ord(character) for state in emissions.values() for character in state]] += 0.5
    count[characters == 0] = 0  # no block contains γ, so γ射线 can never match
    common = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    characters[common] |= np.arange(1, len(common) + 1, dtype=np.uint16)
    return characters, (characters[points] & ID_MASK).astype(np.int64)


def _emission_table(characters: np.ndarray, emissions: dict[str, Any]) -> np.ndarray:
    table = np.full((int((characters & ID_MASK).max()) + 1, len(STATES)), IMPOSSIBLE)
    for column, state in enumerate(STATES):
        ids = characters[[*map(ord, emissions[state])]] & ID_MASK
        # Six decimals, as jieba-rs has them.
        table[ids, column] = [round(value, 6) for value in emissions[state].values()]
    table[0] = IMPOSSIBLE
    return table


def _build_trie(
    ids: np.ndarray, lengths: np.ndarray, weight: np.ndarray, largest_id: int
) -> np.ndarray:
    """Builds Tables.trie. ids: of all words' characters. weight: each word's cell in weights."""
    starts = np.cumsum(lengths) - lengths
    alive = np.flatnonzero(np.minimum.reduceat(ids, starts))  # words without an id-less character
    node = np.zeros(len(lengths), np.int64)  # the node that each word has reached; 0 is the root
    parents, labels, weights, nodes = [], [], [], 1
    for depth in range(lengths.max()):
        alive = alive[lengths[alive] > depth]
        steps = node[alive] * (ID_MASK + 1) + ids[starts[alive] + depth]
        keys, reached = np.unique(steps, return_inverse=True)
        node[alive] = nodes + reached
        ending = alive[lengths[alive] == depth + 1]
        at_level = np.zeros(len(keys), np.int64)
        at_level[node[ending] - nodes] = weight[ending]
        parents.append(keys // (ID_MASK + 1))
        labels.append(keys & ID_MASK)
        weights.append(at_level)
        nodes += len(keys)

    # Nodes are numbered by (depth, parent, label), so the children of a node are neighbours.
    parent, label = np.concatenate(parents), np.concatenate(labels)
    first_child = np.searchsorted(parent, np.arange(nodes + 1))
    children = np.diff(first_child)
    order = np.argsort(-children, kind="stable")[: np.count_nonzero(children)]
    bases = _place(first_child, label, order, nodes)
    if bases.max() >= NO_PARENT:
        raise OverflowError(f"the dictionary needs {bases.max()} trie cells: over {NO_PARENT}")

    # Room for a step from any node by any character: the kernel does not check bounds.
    trie = np.full(bases.max() + largest_id + 1, NO_PARENT << PARENT_SHIFT, np.int64)
    cells = bases[parent] + label
    trie[cells] = (bases[parent] << PARENT_SHIFT) | (bases[1:] << BASE_SHIFT)
    trie[cells] |= np.concatenate(weights)
    return trie


@njit(cache=True, nogil=True)
def _place(first_child, labels, order, nodes):
    """Finds a base for each node, such that all its children fall on free cells.

    No two nodes share a base. Nodes are placed in the given order, most children first (so the root
    comes first). Nodes not in the order are leaves.
    """
    bases = np.full(nodes, LEAF)
    room = 4 * len(labels) + labels.max() + 2
    next_free = np.arange(1, room + 1)  # free cells in ascending order, as a linked list
    taken = np.zeros(room, np.bool_)
    base_taken = np.zeros(room, np.bool_)
    base_taken[:2] = True  # the root's, and LEAF
    head = search_from = 1
    size = len(labels)
    for node in order:
        children = labels[first_child[node] : first_child[node + 1]]
        while taken[head]:
            head += 1
        if 10 * len(children) <= 9 * size:  # narrower nodes may fit where wider ones did not
            size = len(children)
            search_from = head
        base = 0
        if node > 0:
            while taken[search_from]:
                search_from = next_free[search_from]
            cell = search_from
            tries = 0
            while True:
                tries += 1
                base = cell - children[0]
                if base > LEAF and not base_taken[base]:
                    fits = True
                    for child in children[1:]:
                        if taken[base + child]:
                            fits = False
                            break
                    if fits:
                        break
                following = next_free[cell]
                while taken[following]:
                    following = next_free[following]
                next_free[cell] = following
                cell = following
            if tries > MAX_TRIES:  # holes too narrow for this size: leave them to smaller nodes
                search_from = cell
            base_taken[base] = True
        bases[node] = base
        for child in children:
            taken[base + child] = True
    return bases
