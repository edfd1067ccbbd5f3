"""Extracts what tier ``core`` sees of a pair: the eight features, then those of udfs/meaning."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np

from gaixie.udfs.features import FEATURES, extract_code_points
from gaixie.udfs.meaning import counted, facts, language_model, surface, vectors
from gaixie.udfs.meaning.language_model import LanguageModel
from gaixie.udfs.meaning.vectors import VectorTable
from gaixie.udfs.text.code_points import CodePoints, Words

FAMILIES = {
    "surface": surface.NAMES,
    "facts": facts.NAMES,
    "vectors": tuple(f"vectors_{name}" for name in vectors.NAMES),
    "language_model": tuple(f"lm_{name}" for name in language_model.NAMES),
}
"""The columns of each family, by the name of its module."""

CORE_FEATURES = (*FEATURES, *(name for names in FAMILIES.values() for name in names))
"""The order of the columns, everywhere."""

Column = TypeVar("Column", CodePoints, Words)
BLOCK = 4096
"""Pairs at a time. With fewer, each family's tables fall out of the cache more often."""


class Resources(NamedTuple):
    """The tables of the families: memory-mapped, so that the processes of a host share them."""

    vectors: VectorTable
    language_model: LanguageModel

    @classmethod
    def load(
        cls, vectors_folder: str | None = None, language_model_folder: str | None = None
    ) -> Resources:
        """Loads the tables of two folders, by default the shipped ones, once in a process.

        Raises OSError or ValueError, in one line that names the file, if one is missing, damaged
        or of another version.
        """
        return _load(vectors_folder, language_model_folder)

    def digests(self) -> dict[str, str]:
        """Returns ten hexadecimal digits for each table, by its name in the metric's signature."""
        return {"vec": self.vectors.digest[:10], "lm": self.language_model.digest[:10]}


@cache
def _load(vectors_folder: str | None, language_model_folder: str | None) -> Resources:
    return Resources(VectorTable.load(vectors_folder), LanguageModel.load(language_model_folder))


def extract_core(
    a: CodePoints, b: CodePoints, words_a: Words, words_b: Words, resources: Resources
) -> np.ndarray:
    """Returns the features of normalised, segmented pairs: float32, (rows, len(CORE_FEATURES)).

    NaN means missing. Raises ValueError for a sentence that the kernels reject.
    """
    rows = len(a.offsets) - 1
    columns = np.empty((rows, len(CORE_FEATURES)), np.float32)
    for start in range(0, rows, BLOCK):
        here = slice(start, min(start + BLOCK, rows))
        texts = _block(a, here), _block(b, here)
        words = _block(words_a, here), _block(words_b, here)
        families = (
            extract_code_points(*texts, *words),
            counted.features(*texts, *words),
            vectors.features(*texts, *words, resources.vectors),
            language_model.features(*texts, resources.language_model),
        )
        np.concatenate(families, axis=1, out=columns[here])
    return columns


def _block(column: Column, rows: slice) -> Column:
    """Returns some rows of a column of sentences, or of their words, without a copy."""
    offsets = column.offsets[rows.start : rows.stop + 1]
    return type(column)(column[0][offsets[0] : offsets[-1]], offsets - offsets[0])
