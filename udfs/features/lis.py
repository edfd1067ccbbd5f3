"""LIS, longest identical substring.

    LIS = length of the longest common substring of A and B / n

Source: *Chinese Sentence Paraphrasing*, section 4 (synonym replacement); here the divisor is the
source's length. NaN where the source is empty. Unit: share of the source.
"""

from __future__ import annotations

import numpy as np
from numba import njit


def reference(source: str, paraphrase: str) -> float:
    """LIS of two normalised sentences, by the textbook table of common suffix lengths."""
    if not source:
        return float("nan")
    longest = 0
    previous = [0] * (len(paraphrase) + 1)
    for a in source:
        current = [0]
        for j, b in enumerate(paraphrase):
            current.append(previous[j] + 1 if a == b else 0)
        longest = max(longest, max(current))
        previous = current
    return longest / len(source)


@njit(cache=True, nogil=True)
def kernel(longest_run, n):
    """LIS from the longest run that gaixie.udfs.features.tiles.shared_runs found."""
    return longest_run / n if n else np.nan
