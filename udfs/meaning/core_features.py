"""Extracts what tier ``core`` sees of a pair: the eight features, then those of udfs/meaning.

Surface and facts are computed together, from one numbering of a pair (numbering.py).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np

from gaixie.udfs.features import FEATURES, extract_code_points
from gaixie.udfs.meaning import facts, facts_kernel, language_model, numbering, surface, vectors
from gaixie.udfs.meaning.language_model import LanguageModel
from gaixie.udfs.meaning.vectors import VectorTable
from gaixie.udfs.text.code_points import CodePoints, Words
from gaixie.udfs.text.compiled import entry, frozen, row_of

FAMILIES = {
    "surface": surface.NAMES,
    "facts": facts.NAMES,
    "vectors": tuple(f"vectors_{name}" for name in vectors.NAMES),
    "language_model": tuple(f"lm_{name}" for name in language_model.NAMES),
}
"""The columns of each family, by the name of its module."""

CORE_FEATURES = (*FEATURES, *(name for names in FAMILIES.values() for name in names))
"""The order of the columns, everywhere."""

COUNTED = (*surface.NAMES, *facts.NAMES)
"""The columns that count computes, in order."""
_SURFACE = len(surface.NAMES)

Column = TypeVar("Column", CodePoints, Words)
BLOCK = 4096
"""Pairs at a time. With fewer, each family's tables fall out of the cache more often."""


class Resources(NamedTuple):
    """The tables of the families: memory-mapped, so that the processes of a host share them."""

    vectors: VectorTable
    language_model: LanguageModel

    @classmethod
    @cache
    def load(cls) -> Resources:
        """Loads the shipped tables, once in a process.

        Raises OSError or ValueError, in one line that names the file, if one is missing, damaged
        or of another version.
        """
        return cls(VectorTable.load(), LanguageModel.load())

    def digests(self) -> dict[str, str]:
        """Returns ten hexadecimal digits for each table, by its name in the metric's signature."""
        return {"vec": self.vectors.digest[:10], "lm": self.language_model.digest[:10]}


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
            count(*texts, *words),
            vectors.features(*texts, *words, resources.vectors),
            language_model.features(*texts, resources.language_model),
        )
        np.concatenate(families, axis=1, out=columns[here])
    return columns


def _block(column: Column, rows: slice) -> Column:
    """Returns some rows of a column of sentences, or of their words, without a copy."""
    offsets = column.offsets[rows.start : rows.stop + 1]
    return type(column)(column[0][offsets[0] : offsets[-1]], offsets - offsets[0])


def count(a: CodePoints, b: CodePoints, words_a: Words, words_b: Words) -> np.ndarray:
    """Returns the columns of normalised, segmented pairs: float32, shape (rows, len(COUNTED)).

    Raises ModuleNotFoundError without the package ``jieba``, whose dictionary has the names.
    """
    rows = np.empty((len(a.offsets) - 1, len(COUNTED)), np.float32)
    longest = numbering.longest(a, b)
    scratch = (surface.scratch(longest), facts_kernel.scratch(longest))
    columns = *frozen(a, b), *frozen(words_a, words_b)
    _count_rows(*columns, numbering.scratch(longest), *scratch, facts.tables(), rows)
    return rows


@entry
def _count_rows(
    texts_a, texts_b, words_a, words_b, numbers, surface_room, facts_room, fact_tables, rows
):
    for row in range(len(rows)):
        a, b = row_of(texts_a, row), row_of(texts_b, row)
        if max(len(a), len(b)) > numbering.LONGEST:
            rows[row] = np.nan
            continue
        ends_a, ends_b = row_of(words_a, row), row_of(words_b, row)
        counts = numbering.number(a, ends_a, b, ends_b, numbers)
        surface.kernel(a, b, counts, numbers, surface_room, rows[row, :_SURFACE])
        out = rows[row, _SURFACE:]
        facts_kernel.kernel(a, ends_a, b, ends_b, counts, numbers, facts_room, fact_tables, out)
