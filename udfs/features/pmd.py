"""PMD, phrase mixing degree: how differently far apart the clauses stand that both sentences hold.

    MD(S) = (1 / |S|) Σ_i Σ_{j ≥ i} |D_S(I_i, I_j)|        PMD = |MD(A) − MD(B)| / |I|

Source: *Chinese Sentence Paraphrasing*, section 4 (structure), Equation (2). I are the clauses that
A and B share (k-th occurrence with k-th occurrence), |S| is the number of clauses of S, and D_S the
distance of two clauses of I in S. Design section 3: clauses are cut at commas and sentence
punctuation (udfs/text/clauses.py), and D counts characters between the clauses' starts. NaN where
no clause is shared. Unit: characters.

What this measures, taken literally, is not order. An exchange of clauses that leaves the set of
places as it was gives 0, the first two of three among them, since a sum over all pairs does not see
who stands where; and a clause that is inserted where nothing moved gives more than 0, since it
moves starts apart and adds to |S|. The feature stays what Equation (2) says, for tier ``paper``.
The share of shared clauses that changed their order is the column ``clauses_inverted`` of
udfs/meaning/surface.py, which the tiers ``core`` and ``full`` see: 1/3 for the exchange, 0 for the
insertion.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gaixie.udfs.text.clauses import clause_spans
from gaixie.udfs.text.words import same_text


@njit(cache=True, nogil=True)
def kernel(a, b, scratch):
    """PMD of two rows of code points (uint32).

    scratch: int32, shape (6, cells), a cell for each two characters and one more.
    """
    starts_a, ends_a, starts_b, ends_b, shared_a, shared_b = scratch
    count_a = clause_spans(a, starts_a, ends_a)
    count_b = clause_spans(b, starts_b, ends_b)
    shared = 0
    for i in range(count_a):
        begin = np.int64(starts_a[i])
        length = ends_a[i] - begin
        for j in range(count_b):
            other = np.int64(starts_b[j])
            if ends_b[j] - other == length and same_text(a, begin, b, other, length):
                shared_a[shared] = begin
                shared_b[shared] = other
                shared += 1
                ends_b[j] = other  # taken: no clause is empty
                break
    if shared == 0:
        return np.nan
    distance_a, distance_b = 0, 0
    for i in range(shared):
        for j in range(i + 1, shared):
            distance_a += abs(shared_a[j] - shared_a[i])
            distance_b += abs(shared_b[j] - shared_b[i])
    return abs(distance_a / count_a - distance_b / count_b) / shared
