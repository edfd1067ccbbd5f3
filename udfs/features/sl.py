"""SL, sentence length: n, the number of characters in the source.

Source: *Chinese Sentence Paraphrasing*, section 4 (consistency). Unit: characters.
"""

from numba import njit


@njit(cache=True, nogil=True)
def kernel(n):
    """Returns the SL of a source of n characters."""
    return float(n)
