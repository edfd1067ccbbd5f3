"""Static word vectors: what a paraphrase keeps, loses, adds, replaces and moves in meaning.

Each content word of a sentence looks for its best partner on the other side: first an equal word,
k-th occurrence with k-th occurrence, else the word left over there of the highest cosine. Words
weigh by rarity, a / (a + share of the corpus). The vectors are those of a table that
``research/make_vectors.py`` makes of an encoder; a word without a row is the mean of its
characters.

Columns of either side (``source_``, ``paraphrase_``): ``kept`` mean cosine of the best partners,
weighted, and ``kept_plain`` unweighted; ``most``, ``second`` the two largest losses, weight × (1 -
cosine), and ``sum`` all of them; ``gone`` the share of weight without a partner of cosine 0.5;
``replaced`` the share whose partner is another word of cosine above 0.6, and ``replaced_cosine``
their mean; ``same`` the share with an equal word. Of both: ``f1`` and ``f1_plain`` of kept;
``inverted`` share of aligned words that changed order; ``moved`` their mean change of relative
position; ``words_a``, ``words_b`` how many there are; ``left_cosine`` cosine of the mean vectors of
the words without an equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaixie.udfs.meaning import vectors_kernel as kernels
from gaixie.udfs.meaning.array_folder import read_arrays, write_arrays
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
    """A table of vectors; memory-mapped, so that the processes of a host share it."""

    tables: Tables
    digest: str

    @classmethod
    def load(cls, folder: str | Path | None = None) -> VectorTable:
        """The table of a folder; by default the one that ships.

        Raises FileNotFoundError or ValueError, in one line that names the file, where one is
        missing, damaged or of another version.
        """
        path = Path(folder or FOLDER) / MANIFEST
        expected, what = {"format": FORMAT, "version": VERSION}, f"word vectors; {HOW_TO_MAKE}"
        arrays, checksum = read_arrays(path, _TYPES, expected, _digest, what)
        return cls(Tables(*arrays), checksum)


def _digest(*arrays: np.ndarray) -> str:
    """Ten hexadecimal digits of SHA-256 over the arrays."""
    checksum = hashlib.sha256()
    for array in arrays:
        checksum.update(f"{array.dtype}{array.shape}".encode())
        checksum.update(np.ascontiguousarray(array).data)
    return checksum.hexdigest()[:10]


def write_table(
    folder: Path, words: Sequence[str], vectors: np.ndarray, weights: np.ndarray, **card: Any
) -> VectorTable:
    """Writes a table. Of words that differ in the case of ASCII letters alone the first is kept.

    vectors: float, (words, dimensions), any length but zero. weights: (words + 1,), the last for
    words without a row. card: what the manifest says besides (anything that JSON holds).
    """
    first: dict[str, int] = {}
    for row, word in enumerate(words):
        first.setdefault("".join(c.lower() if "A" <= c <= "Z" else c for c in word), row)
    kept = np.array(list(first.values()))
    unit = vectors[kept] / np.linalg.norm(vectors[kept], axis=1, keepdims=True)
    hashes = np.array(
        [
            kernels.word_hash(np.array(list(map(ord, word)), np.uint32), 0, len(word))
            for word in first
        ],
        np.uint64,
    )
    cells = np.zeros(1 << (int(1.5 * len(kept)).bit_length()), np.uint64)
    kernels.insert_rows(cells, hashes)
    tables = Tables(
        cells,
        np.clip(np.rint(unit * kernels.UNIT), -127, 127).astype(np.int8),
        np.append(weights[kept], weights[-1]).astype(np.float32),
    )
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "digest": _digest(*tables),
        "words": len(kept),
        "dimensions": int(vectors.shape[1]),
        **card,
    }
    write_arrays(folder / MANIFEST, tables._asdict(), manifest)
    return VectorTable(tables, manifest["digest"])


def features(
    a: CodePoints, b: CodePoints, words_a: Words, words_b: Words, table: VectorTable
) -> np.ndarray:
    """The columns of normalised, segmented pairs: float32, shape (rows, len(NAMES)).

    NaN where a side has no content word, and for what is not defined.
    """
    rows, *rest = _room(a, words_a, words_b, table)
    columns = *frozen(a, b), *frozen(words_a, words_b)
    kernels.fill_rows(*columns, alphanumeric(), *rest, rows)
    return rows


def losses(
    a: CodePoints, b: CodePoints, words_a: Words, words_b: Words, table: VectorTable
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Returns what features does, and what each word of the sentences loses.

    The losses of a side: float32, a cell for each of its characters. The first of a content word
    has its weight × (1 - cosine) where it weighs over 0.5 and has no partner of cosine 0.5; all
    others have 0.
    """
    rows, *rest = _room(a, words_a, words_b, table)
    found = np.zeros(len(a.values), np.float32), np.zeros(len(b.values), np.float32)
    columns = *frozen(a, b), *frozen(words_a, words_b)
    kernels.fill_losses(*columns, alphanumeric(), *rest, rows, found)
    return rows, found


def _room(a: CodePoints, words_a: Words, words_b: Words, table: VectorTable) -> tuple[Any, ...]:
    """Returns the rows that the kernels fill in, the tables and the room that they need."""
    rows = np.empty((len(a.offsets) - 1, len(NAMES)), np.float32)
    n, m = (int(np.diff(words.offsets).max(initial=1)) for words in (words_a, words_b))
    room = kernels.room(n, m, table.tables.vectors.shape[1])
    return rows, *frozen(table.tables), room


def cosines(words_a: Sequence[str], words_b: Sequence[str], table: VectorTable) -> np.ndarray:
    """Of each word with each: float64, shape (words_a, words_b); 0 for a word without a vector."""
    a, b = (
        np.array([vector_of(word, table) for word in words]).reshape(len(words), -1)
        for words in (words_a, words_b)
    )
    return a @ b.T / kernels.UNIT**2


def vector_of(word: str, table: VectorTable) -> np.ndarray:
    """The vector of a word, or of its characters' mean: float64, of length UNIT or zeros."""
    vectors = table.tables.vectors
    if (row := find_row(word, table)) < len(vectors):
        return vectors[row].astype(np.float64)
    rows = [row for row in (find_row(character, table) for character in word) if row < len(vectors)]
    total = vectors[rows].astype(np.float64).sum(axis=0) if rows else np.zeros(vectors.shape[1])
    length = np.sqrt((total * total).sum())
    return np.clip(np.rint(total * (kernels.UNIT / length)), -127, 127) if length else total


def find_row(word: str, table: VectorTable) -> int:
    """The row of a word; the number of all rows where it has none."""
    text = np.array(list(map(ord, word)), np.uint32)
    value = np.uint64(kernels.word_hash(text, 0, len(text)))
    return kernels.find_row(table.tables.cells, value, len(table.tables.vectors))
