"""WPA, word positional alignment: how far the shared words moved.

Equation (1) of *Chinese Sentence Paraphrasing*, section 4 (see udfs/features/spa.py), where I is
the words that A and B share, in the order of A; the k-th occurrence matches the k-th occurrence. A
word has at least one letter, digit or Han character, so punctuation does not count. RD counts
characters, as in SPA. WPA is NaN if no word is shared.
"""

import numpy as np
from numba import njit

from gaixie.udfs.text.words import is_word, same_text, word_key


@njit(cache=True, nogil=True)
def match_words(a, ends_a, b, ends_b, alnum, keys, starts, partner):
    """Matches the words of code points a and b, whose ends are as in text.code_points.Words.

    keys: uint64, starts: int32, shape (cells,): scratch space, a cell for every word of b. partner:
    as in positional_alignment_kernel, -1 on entry. Returns the number of shared words.
    """
    count_b = 0
    begin = np.int64(0)
    for k in range(len(ends_b)):
        end = np.int64(ends_b[k])
        if is_word(b, begin, end, alnum):
            keys[count_b] = word_key(b, begin, end)
            starts[count_b] = begin
            count_b += 1
        begin = end
    shared = 0
    begin = np.int64(0)
    for k in range(len(ends_a)):
        end = np.int64(ends_a[k])
        if is_word(a, begin, end, alnum):
            key = word_key(a, begin, end)
            for j in range(count_b):
                if keys[j] == key and same_text(a, begin, b, np.int64(starts[j]), end - begin):
                    partner[begin] = starts[j]
                    shared += 1
                    keys[j] = 0  # marks it as taken
                    break
        begin = end
    return shared
