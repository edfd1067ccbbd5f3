"""LR, length ratio: m / n, the characters of the paraphrase divided by those of the source.

Source: *Chinese Sentence Paraphrasing*, section 4 (consistency). LR is NaN if the source is empty.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def kernel(n, m):
    """Returns the LR of a source of n and a paraphrase of m characters."""
    return m / n if n else np.nan
