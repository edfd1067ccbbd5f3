"""The arrays that the rewriter is trained on, and their file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

KINDS = ("translated", "written", "plain", "edited")
"""Of pairs: two translations; two sentences of a written group; a sentence and itself, to be
restored; a sentence that was edited by program, and itself."""
PREFIXES = 9
"""Rows of the embedding behind the vocabulary: four kinds, five degrees."""
LONGEST = 96
"""Tokens of a text."""


class Material(NamedTuple):
    """Tokens of all texts, and pairs of texts."""

    tokens: np.ndarray
    """uint16, of all texts one behind the other, without special ones."""
    ends: np.ndarray
    """int64 (texts,): where each ends."""
    pairs: np.ndarray
    """int32 (pairs, 2): source and paraphrase."""
    kinds: np.ndarray
    """uint8 (pairs,): place in KINDS."""
    degrees: np.ndarray
    """uint8 (pairs,): 1 to 5; 0 where the two are one text."""
    watched: np.ndarray
    """bool (pairs,): kept to watch the training."""


def save(material: Material, path: Path) -> None:
    """Writes the arrays, compressed."""
    np.savez_compressed(path, **material._asdict())


def load(path: Path) -> Material:
    """Reads the arrays."""
    with np.load(path) as saved:
        return Material(**{name: saved[name] for name in Material._fields})
