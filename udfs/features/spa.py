"""SPA, substring positional alignment: how far the shared substrings moved.

Equation (1) of *Chinese Sentence Paraphrasing*, section 4 (structure):

    PA(A, B) = (1 / |I|²) Σ_i Σ_{j ≥ i} |RD_A(I_i) − RD_B(I_i)|

with RD_α(I_i) = start of I_i in α / length of α, in characters. The summand does not depend on j,
so item i counts once for each shared item from i on: the front of the source weighs most.

The paper does not say how to find I. We take the greedy string tiling of A and B
(udfs/features/tiles.py), with tiles of two characters or more, in the order of A. SPA is NaN if
nothing is shared, and 0 if nothing moved.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def positional_alignment_kernel(partner, size, n, m):
    """Computes Equation (1). partner[i]: start in B of the item that starts at i in A, or -1.

    Resets partner to -1.
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
