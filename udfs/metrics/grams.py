"""Tokens and n-grams that a paraphrase shares with other sentences: what BLEU, ROUGE and PINC count.

A column of sentences becomes integers: code points, or ids of words. The kernel then puts the
paraphrase's n-grams of all orders into a trie, a node for each different one, and walks it from every
place of the other sentences. What is compared are the tokens: two n-grams never match by accident.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from gaixie.udfs.metrics.words import words

SACREBLEU_TOKENIZERS = ("char", "zh", "13a")
"""sacrebleu's tokenizers that the metrics of n-grams take: characters; Han characters and
otherwise words; words and punctuation."""

TOKENIZERS = (*SACREBLEU_TOKENIZERS, "zh-word")
"""Those, and the words of the segmenter, normalised."""

_ROUGE_WORD = re.compile("[a-z0-9]+")


class Tokens(NamedTuple):
    """Several columns of tokenized sentences, of one length. Equal tokens are equal integers.

    values: uint32, the tokens of all columns.
    offsets: int64, shape (columns, rows + 1): row i of column c is
    ``values[offsets[c, i]:offsets[c, i + 1]]``.
    present: bool, shape (columns, rows): False where the sentence is null.
    """

    values: np.ndarray
    offsets: np.ndarray
    present: np.ndarray

    def columns(self, *chosen: int) -> Tokens:
        """The number of columns."""
        return Tokens(self.values, self.offsets[list(chosen)], self.present[list(chosen)])


class Overlap(NamedTuple):
    """What the first column of :class:`Tokens` shares with all others together, order by order.

    matches: int64, shape (rows, order): n-grams of the paraphrase that match, each clipped to its
    largest count in one of the others. distinct: the same shape, different n-grams of the
    paraphrase; shared: how many of them any other has.
    length: int64, shape (rows,), tokens of the paraphrase; closest: of the other that is closest in
    length, the shorter one of two.
    scored: bool, shape (rows,): the paraphrase and at least one other are there. All counts of a
    row that is not scored are 0.
    """

    matches: np.ndarray
    distinct: np.ndarray
    shared: np.ndarray
    length: np.ndarray
    closest: np.ndarray
    scored: np.ndarray


def tokenizer(name: str) -> Callable[[str], list[str]]:
    """The function from a sentence to its tokens: one of SACREBLEU_TOKENIZERS, or rouge_score's ``word``.

    sacrebleu's are its own code. ``word`` is what rouge_score does without a stemmer: runs of
    lower-cased ASCII letters and digits.
    """
    if name == "word":
        return lambda text: _ROUGE_WORD.findall(text.lower())
    tokenize = _sacrebleu_tokenizer(name)
    return lambda text: tokenize(text.rstrip()).split()


@cache
def _sacrebleu_tokenizer(name: str) -> Callable[[str], str]:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=name).tokenizer


def tokenize_columns(columns: Sequence[pa.Array], name: str, segmenter: str = "jieba") -> Tokens:
    """Tokens of Arrow string columns, as :func:`tokenizer` gives them, or ``zh-word``.

    Characters at kernel speed; words through Python. segmenter: of zh-word. Raises
    UnicodeDecodeError for bytes that are not UTF-8.
    """
    if name == "char":
        parts = [_characters(column) for column in columns]
    elif name == "zh-word":
        parts = _ids([words(column, segmenter) for column in columns])
    else:
        cut = tokenizer(name)
        parts = _ids([map(cut, column.fill_null("").to_pylist()) for column in columns])
    ends = np.cumsum([len(values) for values, _ in parts])
    return Tokens(
        np.concatenate([values for values, _ in parts]),
        np.stack([part[1] + end - len(part[0]) for part, end in zip(parts, ends, strict=True)]),
        np.stack([np.asarray(column.is_valid()) for column in columns]),
    )


def _characters(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Code points without white space, and the rows' offsets."""
    if not len(column):
        return np.empty(0, np.uint32), np.zeros(1, np.int64)
    column = column.cast(pa.large_string()).fill_null("")
    _, offsets, data = column.buffers()
    offsets = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    codes = np.frombuffer(str(data.data, "utf-8").encode("utf-32-le"), np.uint32)
    return _without_spaces(codes, data, offsets - offsets[0])


def _ids(
    columns: Iterable[Iterable[list[str] | None]],
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Ids of words and the rows' offsets, by column; a word has one id in all columns."""
    ids: dict[str, int] = {}
    parts = []
    for column in columns:
        values, offsets = [], [0]
        for row in column:
            values += [ids.setdefault(token, len(ids)) for token in row or ()]
            offsets.append(len(values))
        parts.append((np.array(values, np.uint32), np.array(offsets, np.int64)))
    return parts


@njit(cache=True, nogil=True)
def is_space(code):
    """Whether Python's str.isspace says so of a code point: what str.split cuts at."""
    if code > 0x3000:
        return False
    return (
        code == 0x20
        or 0x09 <= code <= 0x0D
        or 0x1C <= code <= 0x1F
        or code == 0x85
        or code == 0xA0
        or code == 0x1680
        or 0x2000 <= code <= 0x200A
        or code == 0x2028
        or code == 0x2029
        or code == 0x202F
        or code == 0x205F
        or code == 0x3000
    )


@njit(cache=True, nogil=True)
def _without_spaces(codes, data, byte_offsets):
    """Code points but spaces, and where each row begins; data is the same text in UTF-8."""
    rows = len(byte_offsets) - 1
    kept = np.empty(len(codes), np.uint32)
    offsets = np.zeros(rows + 1, np.int64)
    read = written = 0
    for row in range(rows):
        for p in range(byte_offsets[row], byte_offsets[row + 1]):
            if data[p] & 0xC0 != 0x80:  # the first byte of a character
                code = codes[read]
                read += 1
                if not is_space(code):
                    kept[written] = code
                    written += 1
        offsets[row + 1] = written
    return kept[:written].copy(), offsets


@njit(cache=True, nogil=True)
def table_size(keys):
    """Cells of a hash table for so many keys: a power of two, at least twice as many."""
    size = 16
    while size < 2 * keys:
        size *= 2
    return size


@njit(cache=True, nogil=True)
def find(key, table, mask, keys):
    """The cell of table that holds the key's index in keys, or the empty one (−1) for it."""
    cell = ((np.int64(key) * 0x1E3779B97F4A7C15) >> 32) & mask  # multiplicative hashing
    while table[cell] >= 0 and keys[table[cell]] != key:
        cell = (cell + 1) & mask
    return cell


def overlap(tokens: Tokens, order: int) -> Overlap:
    """Shared n-grams of orders 1 to ``order``; the paraphrase is the first column of tokens."""
    scored = tokens.present[0] & tokens.present[1:].any(axis=0)
    length = np.where(scored, np.diff(tokens.offsets[0]), 0)
    counts = np.zeros((3, len(scored), order), np.int64)
    matches, distinct, shared = counts
    closest = np.zeros(len(scored), np.int64)
    _overlap_rows(*tokens, scored, counts, closest)
    return Overlap(matches, distinct, shared, length, closest, scored)


@njit(cache=True, nogil=True)
def _overlap_rows(values, offsets, present, scored, counts, closest):
    """Fills counts (matches, distinct, shared) and closest, which are 0 on entry."""
    columns, rows = present.shape
    order = counts.shape[2]
    longest = 0
    for row in range(rows):
        longest = max(longest, offsets[0, row + 1] - offsets[0, row])
    table = np.empty(table_size(longest), np.int64)  # nodes of single tokens
    label = np.empty(order * longest, np.uint32)  # last token of a node's n-gram
    child = np.empty(order * longest, np.int64)
    sibling = np.empty(order * longest, np.int64)
    own = np.empty(order * longest, np.int64)  # times in the paraphrase,
    seen = np.empty(order * longest, np.int64)  # in the other at hand,
    clip = np.empty(order * longest, np.int64)  # at most in one other, as far as own
    for row in range(rows):
        if not scored[row]:
            continue
        a = values[offsets[0, row] : offsets[0, row + 1]]
        closest[row] = _closest(len(a), offsets, present, row)
        matches, distinct, shared = counts[0, row], counts[1, row], counts[2, row]
        mask = table_size(len(a)) - 1
        table[: mask + 1] = -1
        nodes = 0
        for i in range(len(a)):
            node = -1
            for n in range(min(order, len(a) - i)):
                token = a[i + n]
                if n == 0:
                    cell = find(token, table, mask, label)
                    below = table[cell]
                else:
                    below = _step(token, child[node], sibling, label)
                if below < 0:
                    below = nodes
                    nodes += 1
                    label[below] = token
                    child[below] = -1
                    own[below] = seen[below] = clip[below] = 0
                    if n == 0:
                        table[cell] = below
                    else:
                        sibling[below] = child[node]
                        child[node] = below
                    distinct[n] += 1
                node = below
                own[node] += 1
        for c in range(1, columns):
            if not present[c, row]:
                continue
            b = values[offsets[c, row] : offsets[c, row + 1]]
            for j in range(len(b)):
                node = -1
                for n in range(min(order, len(b) - j)):
                    if n == 0:
                        node = table[find(b[j], table, mask, label)]
                    else:
                        node = _step(b[j + n], child[node], sibling, label)
                    if node < 0:
                        break
                    seen[node] += 1
                    if clip[node] < seen[node] <= own[node]:
                        matches[n] += 1
                        shared[n] += clip[node] == 0
                        clip[node] = seen[node]
            seen[:nodes] = 0


@njit(cache=True, nogil=True)
def _step(token, node, sibling, label):
    """The node with this last token among a node and its next siblings, −1 where there is none.

    Few tokens follow a given one within a sentence, so that a list beats a hash table.
    """
    while node >= 0 and label[node] != token:
        node = sibling[node]
    return node


@njit(cache=True, nogil=True)
def _closest(m, offsets, present, row):
    """Length of the other sentence that is closest to m, the shorter one of two."""
    closest = np.int64(-1)
    for c in range(1, len(present)):
        if present[c, row]:
            size = offsets[c, row + 1] - offsets[c, row]
            nearer = abs(size - m) - abs(closest - m)
            if closest < 0 or nearer < 0 or (nearer == 0 and size < closest):
                closest = size
    return closest
