"""SPA, substring positional alignment: how far the shared substrings moved.

Equation (1) of *Chinese Sentence Paraphrasing*, section 4 (structure):

    PA(A, B) = (1 / |I|²) Σ_i Σ_{j ≥ i} |RD_A(I_i) − RD_B(I_i)|

with RD_α(I_i) = start of I_i in α / length of α, in characters. The inner sum does not depend on j,
so an item counts as often as shared items stand at or behind it: the source's front weighs most.

The paper does not say how I is found; design section 3 takes the greedy string tiling of A and B
(udfs/features/tiles.py), tiles of two characters or more, in the order of A. NaN where nothing is
shared. 0 means that nothing moved.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def positional_alignment_kernel(partner, size, n, m):
    """Equation (1) where partner[i] is the start in B of the item that starts at i in A, or -1.

    Sets partner back to -1.
    """
    if size == 0:
        return np.nan
    total = 0.0
    behind = size
    for i in range(n):
        if partner[i] >= 0:
            total += behind * abs(i / n - partner[i] / m)
            partner[i] = -1
            behind -= 1
    return total / (size * size)
