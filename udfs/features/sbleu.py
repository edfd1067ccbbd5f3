"""SBLEU, self-BLEU: BLEU of the paraphrase against its source, over long character n-grams only.

    SBLEU = BP · exp(¼ Σ_{k=4..7} log p_k),   BP = min(1, exp(1 − n / m))

Source: *Chinese Sentence Paraphrasing*, section 4 (synonym replacement: n-grams longer than three).
Decided here: orders 4–7, the brevity penalty, and sacrebleu's ``exp`` smoothing: the k-th order
without a match counts 1 / (2^k · number of its n-grams). Characters follow sacrebleu's ``char``
tokenizer: spaces do not count. Orders longer than the paraphrase are left out (sacrebleu's
effective order); if no order is left, SBLEU is NaN. If no n-gram is shared, SBLEU is 0, as in
sacrebleu. Unit: share (sacrebleu's score / 100).
"""

import numpy as np
from numba import njit

from gaixie.udfs.features.tiles import unpack


@njit(cache=True, nogil=True)
def kernel(runs, count, n, m, used_a, used_b):
    """Returns SBLEU, given the runs of two rows without spaces, n and m characters long.

    used_a, used_b: uint8, one cell for each character, all 0 on entry and on return.

    Every shared n-gram lies in a run. Runs join each occurrence of an n-gram in A to each one in B,
    so pairing them greedily gives min(occurrences in A, in B): BLEU's clipped count.
    Bit k of a cell says that the n-gram of order 4 + k that starts there is paired.
    """
    if m < 4:
        return np.nan
    matches = np.zeros(4, np.int64)
    for r in range(count):
        i, j, length = unpack(runs[r])
        for k in range(length - 3):
            for order in range(min(length - k - 3, 4)):
                bit = np.uint8(1 << order)
                if not (used_a[i + k] & bit) and not (used_b[j + k] & bit):
                    used_a[i + k] |= bit
                    used_b[j + k] |= bit
                    matches[order] += 1
    if matches[0] == 0:  # then no longer n-gram matches
        return 0.0
    for r in range(count):
        i, j, length = unpack(runs[r])
        if length >= 4:
            used_a[i : i + length] = 0
            used_b[j : j + length] = 0
    logs, orders, smoothing = 0.0, 0, 1.0
    for order in range(4):
        total = m - 3 - order
        if total <= 0:
            break
        orders += 1
        if matches[order] == 0:
            smoothing *= 2
            logs += np.log(1.0 / (smoothing * total))
        else:
            logs += np.log(matches[order] / total)
    brevity = 1.0 if m >= n else np.exp(1.0 - n / m)
    return brevity * np.exp(logs / orders)
