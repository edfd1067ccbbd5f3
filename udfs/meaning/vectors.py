"""Static word vectors: what a paraphrase keeps, loses, adds, replaces and moves in meaning.

Each content word of a sentence looks for its best partner on the other side: first an equal word, k-th
occurrence with k-th occurrence, else the word left over there of the highest cosine. Words weigh by
rarity, a / (a + share of the corpus). The vectors are those of a table that ``research/make_vectors.py``
makes of an encoder; a word without a row is the mean of its characters.

Columns of either side (``source_``, ``paraphrase_``): ``kept`` mean cosine of the best partners,
weighted, and ``kept_plain`` unweighted; ``most``, ``second`` the two largest losses, weight × (1 - cosine),
and ``sum`` all of them; ``gone`` the share of weight without a partner of cosine 0.5; ``replaced`` the
share whose partner is another word of cosine above 0.6, and ``replaced_cosine`` their mean; ``same`` the
share with an equal word. Of both: ``f1`` and ``f1_plain`` of kept; ``inverted`` share of aligned words that
changed order; ``moved`` their mean change of relative position; ``words_a``, ``words_b`` how many there
are; ``left_cosine`` cosine of the mean vectors of the words without an equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaixie.udfs.features.wpa import alphanumeric
from gaixie.udfs.meaning import vectors_kernel as kernels
from gaixie.udfs.meaning.array_folder import read_arrays, write_arrays
from gaixie.udfs.text.code_points import CodePoints, Words
from gaixie.udfs.text.compiled import read_only

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
    rows = np.empty((len(a.offsets) - 1, len(NAMES)), np.float32)
    n, m = (int(np.diff(words.offsets).max(initial=1)) for words in (words_a, words_b))
    room = kernels.room(n, m, table.tables.vectors.shape[1])
    arrays = map(read_only, (*a, *b, *words_a, *words_b, alphanumeric()))
    kernels.fill_rows(*arrays, Tables(*map(read_only, table.tables)), room, rows)
    return rows


class Partner(NamedTuple):
    """What a word's best partner on the other side is."""

    word: int
    """Its number there among the content words; -1 where there is none of a cosine above 0."""
    cosine: float
    same: bool


def partners(
    words_a: list[str], words_b: list[str], table: VectorTable
) -> tuple[list[Partner], list[Partner]]:
    """The Partner of each content word of two sentences, by the definition."""
    taken: dict[int, int] = {}
    for i, word in enumerate(words_a):
        for j, other in enumerate(words_b):
            if _folded(word) == _folded(other) and j not in taken.values():
                taken[i] = j
                break
    equal_b = {j: i for i, j in taken.items()}
    left_a = [i for i in range(len(words_a)) if i not in taken]
    left_b = [j for j in range(len(words_b)) if j not in equal_b]
    vector = {word: _vector(word, table) for word in {*words_a, *words_b}}

    def best(word: str, others: list[str], candidates: list[int]) -> Partner:
        cosines = [float(vector[word] @ vector[others[k]]) / kernels.UNIT**2 for k in candidates]
        if not cosines or max(cosines) <= 0:
            return Partner(-1, 0.0, False)
        index = int(np.argmax(cosines))
        return Partner(candidates[index], cosines[index], False)

    return (
        [
            Partner(taken[i], 1.0, True) if i in taken else best(word, words_b, left_b)
            for i, word in enumerate(words_a)
        ],
        [
            Partner(equal_b[j], 1.0, True) if j in equal_b else best(word, words_a, left_a)
            for j, word in enumerate(words_b)
        ],
    )


def cosines(words_a: Sequence[str], words_b: Sequence[str], table: VectorTable) -> np.ndarray:
    """Of each word with each: float64, shape (words_a, words_b); 0 for a word without a vector."""
    a, b = (
        np.array([_vector(word, table) for word in words]).reshape(len(words), -1)
        for words in (words_a, words_b)
    )
    return a @ b.T / kernels.UNIT**2


def explain(
    words_a: list[str], words_b: list[str], table: VectorTable, count: int = 2
) -> list[str]:
    """The content words whose loss or addition weighs most, in short English phrases."""
    a, b = ([word for word in words if _is_content(word)] for words in (words_a, words_b))
    phrases = []
    for words, matches, verb in zip((a, b), partners(a, b, table), ("lost", "new"), strict=True):
        losses = [
            (_weight(word, table) * (1 - partner.cosine), word)
            for word, partner in zip(words, matches, strict=True)
            if partner.cosine < 0.5 and _weight(word, table) > 0.5
        ]
        worst = sorted(losses, key=lambda loss: -loss[0])[:count]
        phrases += [f"{word} {verb}" for _, word in worst]
    return phrases


def reference(words_a: list[str], words_b: list[str], table: VectorTable) -> dict[str, float]:
    """The columns of one pair by their definitions. words: all words of a normalised sentence."""
    spans_a, spans_b = _content_spans(words_a), _content_spans(words_b)
    a, b = [span[2] for span in spans_a], [span[2] for span in spans_b]
    values = dict.fromkeys(NAMES, float("nan"))
    if not a or not b:
        return values
    matches_a, matches_b = partners(a, b, table)
    for side, words, matches in (("source", a, matches_a), ("paraphrase", b, matches_b)):
        values |= {f"{side}_{name}": value for name, value in _side_values(words, matches, table)}
    for name in ("f1", "f1_plain"):
        kept = f"kept{name.removeprefix('f1')}"
        r, p = values[f"source_{kept}"], values[f"paraphrase_{kept}"]
        values[name] = 2 * r * p / max(r + p, 1e-6)
    aligned = [(i, partner.word) for i, partner in enumerate(matches_a) if partner.cosine > 0.6]
    length_a, length_b = sum(map(len, words_a)), sum(map(len, words_b))
    if aligned:
        shifts = [
            abs(sum(spans_a[i][:2]) / length_a - sum(spans_b[j][:2]) / length_b) / 2
            for i, j in aligned
        ]
        values["moved"] = sum(shifts) / len(shifts)
    pairs = [(j, k) for n, (_, k) in enumerate(aligned) for _, j in aligned[:n] if j != k]
    if pairs:
        values["inverted"] = sum(j > k for j, k in pairs) / len(pairs)
    values["words_a"], values["words_b"] = len(a), len(b)
    left = [
        [
            _weight(word, table) * _vector(word, table)
            for word, partner in zip(words, matches, strict=True)
            if not partner.same
        ]
        for words, matches in ((a, matches_a), (b, matches_b))
    ]
    if all(left):
        x, y = (np.sum(vectors, axis=0) for vectors in left)
        values["left_cosine"] = float(x @ y / np.sqrt((x @ x) * (y @ y) + 1e-9))
    return values


def _side_values(
    words: list[str], matches: list[Partner], table: VectorTable
) -> Iterator[tuple[str, float]]:
    weights = np.array([_weight(word, table) for word in words])
    cosines = np.array([partner.cosine for partner in matches])
    same = np.array([partner.same for partner in matches])
    losses = sorted(weights * (1 - cosines), reverse=True)
    replaced = ~same & (cosines > 0.6)
    mean = (
        (weights * cosines)[replaced].sum() / weights[replaced].sum() if replaced.any() else np.nan
    )
    yield "kept", (weights * cosines).sum() / weights.sum()
    yield "kept_plain", cosines.mean()
    yield "most", losses[0]
    yield "second", losses[1] if len(losses) > 1 else 0.0
    yield "sum", weights.sum() - (weights * cosines).sum()
    yield "gone", weights[cosines < 0.5].sum() / weights.sum()
    yield "replaced", weights[replaced].sum() / weights.sum()
    yield "replaced_cosine", mean
    yield "same", weights[same].sum() / weights.sum()


def _content_spans(words: list[str]) -> list[tuple[int, int, str]]:
    """(start, end, word) of each word with a letter, digit or Han character."""
    spans, start = [], 0
    for word in words:
        if _is_content(word):
            spans.append((start, start + len(word), word))
        start += len(word)
    return spans


def _is_content(word: str) -> bool:
    return any(character.isalnum() for character in word)


def _folded(word: str) -> str:
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in word)


def _row(word: str, table: VectorTable) -> int:
    text = np.array(list(map(ord, word)), np.uint32)
    value = np.uint64(kernels.word_hash(text, 0, len(text)))
    return kernels.find_row(table.tables.cells, value, len(table.tables.vectors))


def _weight(word: str, table: VectorTable) -> float:
    return float(table.tables.weights[_row(word, table)])


def _vector(word: str, table: VectorTable) -> np.ndarray:
    vectors = table.tables.vectors
    row = _row(word, table)
    if row < len(vectors):
        return vectors[row].astype(np.float64)
    rows = [row for row in (_row(character, table) for character in word) if row < len(vectors)]
    total = vectors[rows].astype(np.float64).sum(axis=0) if rows else np.zeros(vectors.shape[1])
    length = np.sqrt((total * total).sum())
    if not length:
        return total
    return np.clip(np.rint(total * (kernels.UNIT / length)), -127, 127)
