"""SL, sentence length: n, the characters of the source.

Source: *Chinese Sentence Paraphrasing*, section 4 (consistency). Unit: characters.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def kernel(n):
    """SL of a source of n characters."""
    return float(n)
