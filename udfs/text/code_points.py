"""Converts sentences to code points, the form in which every kernel reads text.

A character is a Unicode code point. A column of sentences becomes one flat buffer of code points
and the offsets of its rows. Arrow lays out strings the same way, but here one cell holds one
character, so "the character at position 7" is an array access.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class CodePoints(NamedTuple):
    """A column of sentences.

    values: uint32, shape (total characters,): the rows one after another.
    offsets: int64, shape (rows + 1,): row i is ``values[offsets[i]:offsets[i + 1]]``.
    """

    values: np.ndarray
    offsets: np.ndarray


class Words(NamedTuple):
    """Where the words of a column of sentences end.

    ends: int32, shape (total words,): end of each word in characters, counted from its row's start.
    offsets: int64, shape (rows + 1,): the words of row i are ``ends[offsets[i]:offsets[i + 1]]``.

    The words of a row cover it without gaps: word k is ``row[ends[k - 1]:ends[k]]`` (0 before the
    first). Punctuation and spaces are words of their own.
    """

    ends: np.ndarray
    offsets: np.ndarray


def from_strings(texts: list[str]) -> CodePoints:
    """Converts Python strings without normalising them. Lone surrogates are allowed."""
    data = "".join(texts).encode("utf-32-le", "surrogatepass")
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return CodePoints(np.frombuffer(data, np.uint32), offsets)


def word_ends(rows: Sequence[Sequence[str]]) -> Words:
    """Returns where the words of each row end, given the words."""
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    ends = [np.cumsum([*map(len, words)], dtype=np.int32) for words in rows]
    return Words(np.concatenate([*ends, np.empty(0, np.int32)]), offsets)


def to_strings(text: CodePoints) -> list[str]:
    """Returns the rows as Python strings."""
    whole = text.values.tobytes().decode("utf-32-le", "surrogatepass")
    return [whole[start:end] for start, end in pairwise(text.offsets.tolist())]
