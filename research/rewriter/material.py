"""Defines the arrays that the rewriter is trained on, and their file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

KINDS = ("translated", "written", "plain", "edited")
"""Kinds of pairs: two translations; two sentences of a written group; a sentence to restore from
noise; a sentence that a program edited, and its original."""
PREFIXES = 9
"""Rows of the embedding after the vocabulary: four kinds and five degrees."""
LONGEST = 96
"""Maximum number of tokens of a text."""


class Material(NamedTuple):
    """Tokens of all texts, and pairs of texts."""

    tokens: np.ndarray
    """uint16: all texts concatenated, without special tokens."""
    ends: np.ndarray
    """int64 (texts,): where each text ends in ``tokens``."""
    pairs: np.ndarray
    """int32 (pairs, 2): source and paraphrase."""
    kinds: np.ndarray
    """uint8 (pairs,): index into KINDS."""
    degrees: np.ndarray
    """uint8 (pairs,): 1 to 5; 0 if both sides are the same text."""
    watched: np.ndarray
    """bool (pairs,): kept to watch the training, not trained on."""


def save(material: Material, path: Path) -> None:
    """Writes the arrays, compressed."""
    np.savez_compressed(path, **material._asdict())


def load(path: Path) -> Material:
    """Reads the arrays."""
    with np.load(path) as saved:
        return Material(**{name: saved[name] for name in Material._fields})
