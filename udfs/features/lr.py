"""LR, length ratio: m / n, the paraphrase's characters for each of the source's.

Source: *Chinese Sentence Paraphrasing*, section 4 (consistency). NaN where the source is empty.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def kernel(n, m):
    """LR of a source of n and a paraphrase of m characters."""
    return m / n if n else np.nan
