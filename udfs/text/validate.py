"""Finds the pairs that cannot be scored, and the reason for each.

Such a row goes to quarantine under the first of REASONS that holds for either of its sentences;
nothing is dropped silently. Lengths are in characters of the normalised sentence.
"""

import numpy as np
from numba import njit

from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS
from gaixie.udfs.text.code_points import CodePoints
from gaixie.udfs.text.normalise import HAN, NULL, UNDECODABLE
from gaixie.udfs.text.words import same_text

REASONS = ("null", "undecodable", "empty", "too_short", "too_long", "no_han", "identical")
"""Names of the reasons and of the quarantine's folders; the code of a reason is its index + 1."""

MALFORMED = "malformed"
"""Reason of a line that the reader could not split into columns, so it has no sentences."""


def quarantine_reasons(
    a: CodePoints,
    flags_a: np.ndarray,
    b: CodePoints,
    flags_b: np.ndarray,
    min_characters: int = MIN_CHARACTERS,
    max_characters: int = MAX_CHARACTERS,
) -> np.ndarray:
    """Returns the code of each pair's reason: uint8, shape (rows,); 0 for a pair that is fit.

    a, b and their flags come from gaixie.udfs.text.normalise.normalise_column.
    """
    lengths_a, lengths_b = np.diff(a.offsets), np.diff(b.offsets)
    shorter, longer = np.minimum(lengths_a, lengths_b), np.maximum(lengths_a, lengths_b)
    either = flags_a | flags_b
    holds = (
        (either & NULL) != 0,
        (either & UNDECODABLE) != 0,
        shorter == 0,
        shorter < min_characters,
        longer > max_characters,
        (flags_a & flags_b & HAN) == 0,
        _identical(*a, *b),
    )
    return np.select(holds, np.arange(1, len(REASONS) + 1, dtype=np.uint8), np.uint8(0))


@njit(cache=True, nogil=True)
def _identical(values_a, offsets_a, values_b, offsets_b):
    rows = len(offsets_a) - 1
    identical = np.zeros(rows, np.bool_)
    for row in range(rows):
        n = offsets_a[row + 1] - offsets_a[row]
        if n == offsets_b[row + 1] - offsets_b[row]:
            identical[row] = same_text(values_a, offsets_a[row], values_b, offsets_b[row], n)
    return identical


def take_rows(text: CodePoints, rows: np.ndarray) -> CodePoints:
    """Returns the rows of a column for which the boolean mask is true."""
    if rows.all():
        return text
    lengths = np.diff(text.offsets)
    offsets = np.append(0, np.cumsum(lengths[rows]))
    return CodePoints(text.values[np.repeat(rows, lengths)], offsets)
