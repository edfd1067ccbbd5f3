"""PMD, phrase mixing degree: how much the distances between shared clauses differ.

    MD(S) = (1 / |S|) Σ_i Σ_{j ≥ i} |D_S(I_i, I_j)|        PMD = |MD(A) − MD(B)| / |I|

Source: *Chinese Sentence Paraphrasing*, section 4 (structure), Equation (2). I is the set of
clauses that A and B share (the k-th occurrence matches the k-th occurrence), |S| is the number of
clauses of S, and D_S is the distance of two clauses of I in S. Decided here: clauses are cut at
commas and sentence punctuation (udfs/text/clauses.py), and D counts the characters between the
starts of two clauses. PMD is NaN if no clause is shared. Unit: characters.

Taken literally, Equation (2) does not measure order. Swapping clauses gives 0 if the set of their
positions stays the same (for example the first two of three), because a sum over all pairs does not
see which clause is where. Inserting a clause gives more than 0 although nothing moves, because it
pushes starts apart and adds to |S|. The feature follows Equation (2) anyway, for tier ``paper``.
Tiers ``core`` and ``full`` also see the share of shared clauses that change their order: the column
``clauses_inverted`` of udfs/meaning/surface.py, 1/3 for this swap and 0 for the insertion.
"""

import numpy as np
from numba import njit

from gaixie.udfs.text.clauses import clause_spans
from gaixie.udfs.text.words import same_text


@njit(cache=True, nogil=True)
def kernel(a, b, scratch):
    """Returns the PMD of two rows of code points (uint32).

    scratch: int32, shape (6, cells), one cell for every two characters and one more.
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
                ends_b[j] = other  # marks it as taken: no clause is empty
                break
    if shared == 0:
        return np.nan
    distance_a, distance_b = 0, 0
    for i in range(shared):
        for j in range(i + 1, shared):
            distance_a += abs(shared_a[j] - shared_a[i])
            distance_b += abs(shared_b[j] - shared_b[i])
    return abs(distance_a / count_a - distance_b / count_b) / shared
