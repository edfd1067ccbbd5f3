"""ACS, appositive character similarity: the share of positions with equal characters.

    ACS = |{k : A_k = B_k}| / max(n, m)

Source: *Chinese Sentence Paraphrasing*, section 4 (structure). The paper does not print the
divisor. We divide by the longer sentence, so that ACS lies in [0, 1] and is symmetric. ACS is NaN
if both sentences are empty. Unit: share.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def kernel(a, b):
    """Returns the ACS of two rows of code points (uint32)."""
    n, m = len(a), len(b)
    if n == 0 and m == 0:
        return np.nan
    same = 0
    for k in range(min(n, m)):
        if a[k] == b[k]:
            same += 1
    return same / max(n, m)
