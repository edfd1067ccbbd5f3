"""Computes penalties: lost or invented facts lower meaning and score, whatever else a pair has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

PENALISED = ("meaning", "spscore")
"""The outputs that a lost or invented fact lowers."""
COUNTED = 2
"""The most facts of one kind that a penalty counts."""


def penalty(
    features: np.ndarray, columns: Sequence[str], factors: Mapping[str, float]
) -> np.ndarray:
    """Returns the product of factor ** count over the counted columns: float32, shape (rows,).

    The product is in [0, 1]. features: shape (rows, len(columns)). NaN counts as 0, and more than
    COUNTED as COUNTED.
    """
    total = np.ones(len(features), np.float32)
    for name, factor in factors.items():
        count = np.nan_to_num(features[:, columns.index(name)])
        total *= np.float32(factor) ** np.clip(count, 0, COUNTED).astype(np.float32)
    return total
