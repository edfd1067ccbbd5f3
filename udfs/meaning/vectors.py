"""Measures by static word vectors what meaning a paraphrase keeps, loses, adds or moves.

Each content word of a sentence takes its best partner on the other side: an equal word (the k-th
occurrence matches the k-th), else the remaining word with the highest cosine. Words are weighted by
rarity, a / (a + share of the corpus). ``research/make_vectors.py`` makes the table of vectors from
an encoder; a word without a row is the mean of its characters.

Columns of each side (``source_``, ``paraphrase_``): ``kept``, the weighted mean cosine of the best
partners, and ``kept_plain``, unweighted; ``most``, ``second``, the two largest losses (weight × (1
- cosine)), and ``sum``, all losses; ``gone``, the share of weight without a partner of cosine 0.5;
``replaced``, the share whose partner is another word of cosine above 0.6, and ``replaced_cosine``,
the mean of these cosines; ``same``, the share with an equal word. Columns of both sides: ``f1`` and
``f1_plain`` of kept; ``inverted``, the share of aligned words that changed order; ``moved``, their
mean change of relative position; ``words_a``, ``words_b``, the numbers of words; ``left_cosine``,
the cosine of the mean vectors of the words without an equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaixie.udfs.meaning import vectors_kernel as kernels
from gaixie.udfs.meaning.array_folder import digest_of, read_arrays, write_arrays
from gaixie.udfs.text.code_points import CodePoints, Words
from gaixie.udfs.text.compiled import frozen
from gaixie.udfs.text.words import alphanumeric

FOLDER = Path(__file__).parents[1] / "models/vectors-zh"
MANIFEST, FORMAT, VERSION = "vectors.json", "gaixie-word-vectors", 1
HOW_TO_MAKE = "python research/make_vectors.py makes them"

_SIDE = (
    *("kept", "kept_plain", "most", "second", "sum"),
    *("gone", "replaced", "replaced_cosine", "same"),
)
NAMES = (
    *(f"source_{name}" for name in _SIDE),
    *(f"paraphrase_{name}" for name in _SIDE),
    *("f1", "f1_plain", "inverted", "moved", "words_a", "words_b", "left_cosine"),
)
"""The columns, in order."""


class Tables(NamedTuple):
    """The arrays of a folder, as the kernels read them.

    cells: uint64, (a power of two,): the hash table, see vectors_kernel.find_row.
    vectors: int8, (rows, dimensions), of length vectors_kernel.UNIT.
    weights: float32, (rows + 1,); the last is that of a word without a row.
    """

    cells: np.ndarray
    vectors: np.ndarray
    weights: np.ndarray


_TYPES = dict(zip(Tables._fields, ("uint64", "int8", "float32"), strict=True))


class VectorTable(NamedTuple):
    """A table of vectors, memory-mapped, so that the processes of a host share it."""

    tables: Tables
    digest: str

    @classmethod
    def load(cls, folder: str | Path | None = None) -> VectorTable:
        """Loads the table of a folder, by default the shipped one.

        Raises FileNotFoundError or ValueError, in one line that names the file, if one is missing,
        damaged or of another version.
        """
        path = Path(folder or FOLDER) / MANIFEST
        expected, what = {"format": FORMAT, "version": VERSION}, f"word vectors; {HOW_TO_MAKE}"
        arrays, checksum = read_arrays(path, _TYPES, expected, _digest, what)
        return cls(Tables(*arrays), checksum)


def _digest(*arrays: np.ndarray) -> str:
    return digest_of(Tables(*arrays)._asdict(), "{array.dtype}{array.shape}")


def write_table(
    folder: Path, words: Sequence[str], vectors: np.ndarray, weights: np.ndarray, **card: Any
) -> VectorTable:
    """Writes a table. If words differ only in the case of ASCII letters, the first is kept.

    vectors: float, (words, dimensions), any length but zero. weights: (words + 1,), the last for
    words without a row. card: further content of the manifest (anything that JSON holds).
    """
    first: dict[str, int] = {}
    for row, word in enumerate(words):
        first.setdefault("".join(c.lower() if "A" <= c <= "Z" else c for c in word), row)
    kept = np.array(list(first.values()))
    unit = vectors[kept] / np.linalg.norm(vectors[kept], axis=1, keepdims=True)
    cells = np.zeros(1 << (int(1.5 * len(kept)).bit_length()), np.uint64)
    kernels.insert_rows(cells, np.array([_hash(word) for word in first], np.uint64))
    tables = Tables(
        cells,
        np.clip(np.rint(unit * kernels.UNIT), -127, 127).astype(np.int8),
        np.append(weights[kept], weights[-1]).astype(np.float32),
    )
    digest, size = _digest(*tables), {"words": len(kept), "dimensions": int(vectors.shape[1])}
    card = {"format": FORMAT, "version": VERSION, "digest": digest, **size, **card}
    write_arrays(folder / MANIFEST, tables._asdict(), card)
    return VectorTable(tables, digest)


Losses = tuple[np.ndarray, np.ndarray]
NO_LOSSES: Losses = (np.empty(0, np.float32), np.empty(0, np.float32))


def features(
    a: CodePoints,
    b: CodePoints,
    words_a: Words,
    words_b: Words,
    table: VectorTable,
    losses: Losses = NO_LOSSES,
) -> np.ndarray:
    """Returns the columns of normalised, segmented pairs: float32, shape (rows, len(NAMES)).

    NaN if a side has no content word, or if a value is not defined. losses: for each side float32
    zeros, one cell for each character; the first one of a content word gets weight × (1 - cosine)
    if the word weighs over 0.5 and has no partner of cosine 0.5.
    """
    rows = np.empty((len(a.offsets) - 1, len(NAMES)), np.float32)
    n, m = (int(np.diff(words.offsets).max(initial=1)) for words in (words_a, words_b))
    room = kernels.room(n, m, table.tables.vectors.shape[1])
    columns = *frozen(a, b), *frozen(words_a, words_b)
    kernels.fill_rows(*columns, alphanumeric(), *frozen(table.tables), room, rows, losses)
    return rows


def cosines(words_a: Sequence[str], words_b: Sequence[str], table: VectorTable) -> np.ndarray:
    """Returns each word's cosine with each: float64, (words_a, words_b); 0 without a vector."""
    found = ([vector_of(word, table) for word in words] for words in (words_a, words_b))
    a, b = (np.array(own).reshape(len(own), -1) for own in found)
    return a @ b.T / kernels.UNIT**2


def vector_of(word: str, table: VectorTable) -> np.ndarray:
    """Returns a word's vector, or its characters' mean: float64, of length UNIT or zeros."""
    vectors = table.tables.vectors
    if (row := find_row(word, table)) < len(vectors):
        return vectors[row].astype(np.float64)
    rows = [row for row in (find_row(character, table) for character in word) if row < len(vectors)]
    total = vectors[rows].astype(np.float64).sum(axis=0) if rows else np.zeros(vectors.shape[1])
    length = np.sqrt((total * total).sum())
    return np.clip(np.rint(total * (kernels.UNIT / length)), -127, 127) if length else total


def find_row(word: str, table: VectorTable) -> int:
    """Returns the row of a word, or the number of rows if it has none."""
    return kernels.find_row(table.tables.cells, _hash(word), len(table.tables.vectors))


def _hash(word: str) -> np.uint64:
    text = np.array(list(map(ord, word)), np.uint32)
    return np.uint64(kernels.word_hash(text, 0, len(text)))
