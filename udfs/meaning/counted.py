"""The columns of surface.py and facts.py at once: both read the same numbering of a pair."""

from __future__ import annotations

import numpy as np

from gaixie.udfs.meaning import facts, facts_kernel, numbering, surface, surface_kernel
from gaixie.udfs.meaning.fact_tables import tables
from gaixie.udfs.meaning.numbering import LONGEST
from gaixie.udfs.text.code_points import CodePoints, Words
from gaixie.udfs.text.compiled import entry

NAMES = (*surface.NAMES, *facts.NAMES)
"""The columns, in order."""

_SURFACE = len(surface.NAMES)


def features(a: CodePoints, b: CodePoints, words_a: Words, words_b: Words) -> np.ndarray:
    """The columns of normalised, segmented pairs: float32, shape (rows, len(NAMES)).

    Raises ModuleNotFoundError if the package ``jieba``, whose dictionary has the names, is missing.
    """
    rows = np.empty((len(a.offsets) - 1, len(NAMES)), np.float32)
    longest = numbering.longest(a, b)
    scratch = (surface_kernel.scratch(longest), facts_kernel.scratch(longest))
    columns = numbering.flat(a, b, words_a, words_b)
    _fill(*columns, numbering.scratch(longest), *scratch, tables(), rows)
    return rows


@entry
def _fill(
    values_a, offsets_a, values_b, offsets_b, ends_a, words_a, ends_b, words_b, s, t, f, names, rows
):
    for row in range(len(rows)):
        a = values_a[offsets_a[row] : offsets_a[row + 1]]
        b = values_b[offsets_b[row] : offsets_b[row + 1]]
        if max(len(a), len(b)) > LONGEST:
            rows[row] = np.nan
            continue
        row_ends_a = ends_a[words_a[row] : words_a[row + 1]]
        row_ends_b = ends_b[words_b[row] : words_b[row + 1]]
        counts = numbering.number(a, row_ends_a, b, row_ends_b, s)
        surface_kernel.kernel(a, b, counts, s, t, rows[row, :_SURFACE])
        facts_kernel.kernel(a, row_ends_a, b, row_ends_b, counts, s, f, names, rows[row, _SURFACE:])
