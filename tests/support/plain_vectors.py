"""Computes the columns of udfs/meaning/vectors.py by definition, one pair at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gaixie.udfs.meaning import vectors_kernel as kernels
from gaixie.udfs.meaning.vectors import NAMES, VectorTable, find_row, vector_of


class Partner(NamedTuple):
    """A word's best partner on the other side."""

    word: int
    """Its index among the other side's content words; -1 if no cosine is above 0."""
    cosine: float
    same: bool


def partners(
    words_a: list[str], words_b: list[str], table: VectorTable
) -> tuple[list[Partner], list[Partner]]:
    """Returns the Partner of each content word of two sentences, by definition."""
    taken: dict[int, int] = {}
    for i, word in enumerate(words_a):
        for j, other in enumerate(words_b):
            if _folded(word) == _folded(other) and j not in taken.values():
                taken[i] = j
                break
    equal_b = {j: i for i, j in taken.items()}
    left_a = [i for i in range(len(words_a)) if i not in taken]
    left_b = [j for j in range(len(words_b)) if j not in equal_b]
    vector = {word: vector_of(word, table) for word in {*words_a, *words_b}}

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


def reference(words_a: list[str], words_b: list[str], table: VectorTable) -> dict[str, float]:
    """Returns the columns of a pair by definition. words: all words of a normalised sentence."""
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
            _weight(word, table) * vector_of(word, table)
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
    """Returns (start, end, word) of each word with a letter, digit or Han character."""
    spans, start = [], 0
    for word in words:
        if any(map(str.isalnum, word)):
            spans.append((start, start + len(word), word))
        start += len(word)
    return spans


def _folded(word: str) -> str:
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in word)


def _weight(word: str, table: VectorTable) -> float:
    return float(table.tables.weights[find_row(word, table)])
