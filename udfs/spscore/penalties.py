"""Facts lost or invented lower meaning and score, whatever else the pair has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

PENALISED = ("meaning", "spscore")
"""The outputs that a lost or an invented fact lowers, whatever else the pair has."""
COUNTED = 2
"""A penalty counts so many of a kind at most."""


def penalty(
    features: np.ndarray, columns: Sequence[str], factors: Mapping[str, float]
) -> np.ndarray:
    """The product of factor ** count over the counted columns: float32 in [0, 1], shape (rows,).

    features: shape (rows, len(columns)). NaN counts as none, and more than COUNTED as COUNTED.
    """
    total = np.ones(len(features), np.float32)
    for name, factor in factors.items():
        count = np.nan_to_num(features[:, columns.index(name)])
        total *= np.float32(factor) ** np.clip(count, 0, COUNTED).astype(np.float32)
    return total
