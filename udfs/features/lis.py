"""LIS, longest identical substring, relative to the source.

    LIS = length of the longest common substring of A and B / n

Source: *Chinese Sentence Paraphrasing*, section 4 (synonym replacement). We divide by the length
of the source. LIS is NaN if the source is empty. Unit: share of the source.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def kernel(longest_run, n):
    """Returns LIS, given the longest run that gaixie.udfs.features.tiles.shared_runs found."""
    return longest_run / n if n else np.nan
