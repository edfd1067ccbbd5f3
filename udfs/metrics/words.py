"""Cuts a column into words with the project's segmenters."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

_segmenter = lru_cache(maxsize=2)(load_segmenter)


def words(
    column: pa.Array, segmenter: str = "jieba", lower: bool = False
) -> list[list[str] | None]:
    """Returns the words of each normalised text without spaces; None for a null.

    segmenter: as for ``gaixie.udfs.text.segmenters.load_segmenter``, whose ValueError it raises.
    lower: in lower case.
    """
    texts = [None if text is None else normalise(text) for text in column.to_pylist()]
    cut = iter(_segmenter(segmenter).cut([text for text in texts if text is not None]))
    rows = [None if text is None else [w for w in next(cut) if w != " "] for text in texts]
    return [row and [word.lower() for word in row] for row in rows] if lower else rows


def segmenter_version(segmenter: str) -> str:
    """Returns a segmenter's name and version for a signature: ``jieba-rjieba-0.2.2``."""
    loaded = _segmenter(segmenter)
    return f"{loaded.name}-{loaded.version}"


def is_word(token: str) -> bool:
    """Tells whether a token has a letter or a digit, and so is not punctuation."""
    return any(map(str.isalnum, token))
