"""Computes the columns of surface.py and facts.py together, from one numbering of a pair."""

from __future__ import annotations

import numpy as np

from gaixie.udfs.meaning import facts, facts_kernel, numbering, surface
from gaixie.udfs.meaning.fact_tables import tables
from gaixie.udfs.meaning.numbering import LONGEST
from gaixie.udfs.text.code_points import CodePoints, Words
from gaixie.udfs.text.compiled import entry, frozen, row_of

NAMES = (*surface.NAMES, *facts.NAMES)
"""The columns, in order."""

_SURFACE = len(surface.NAMES)


def features(a: CodePoints, b: CodePoints, words_a: Words, words_b: Words) -> np.ndarray:
    """Returns the columns of normalised, segmented pairs: float32, shape (rows, len(NAMES)).

    Raises ModuleNotFoundError without the package ``jieba``, whose dictionary has the names.
    """
    rows = np.empty((len(a.offsets) - 1, len(NAMES)), np.float32)
    longest = numbering.longest(a, b)
    scratch = (surface.scratch(longest), facts_kernel.scratch(longest))
    columns = *frozen(a, b), *frozen(words_a, words_b)
    _fill(*columns, numbering.scratch(longest), *scratch, tables(), rows)
    return rows


@entry
def _fill(texts_a, texts_b, words_a, words_b, s, t, f, names, rows):
    for row in range(len(rows)):
        a, b = row_of(texts_a, row), row_of(texts_b, row)
        if max(len(a), len(b)) > LONGEST:
            rows[row] = np.nan
            continue
        ends_a, ends_b = row_of(words_a, row), row_of(words_b, row)
        counts = numbering.number(a, ends_a, b, ends_b, s)
        surface.kernel(a, b, counts, s, t, rows[row, :_SURFACE])
        facts_kernel.kernel(a, ends_a, b, ends_b, counts, s, f, names, rows[row, _SURFACE:])
