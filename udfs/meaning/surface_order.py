"""Computes the columns of udfs/meaning/surface.py on the order of words, gaps and clauses."""

import numpy as np

from gaixie.udfs.text.clauses import cuts_code
from gaixie.udfs.text.compiled import inner

MATCHED_CLAUSE = 0.3
"""Clauses with a similarity above this are matched."""


@inner
def ratio(part, whole):
    """Returns a share; NaN if the whole is 0."""
    return part / whole if whole else np.nan


@inner
def order(x, y, shared, heads, chain, right, row):
    """Fills words_inverted to last_lost, from word ids x and y."""
    n, m = len(x), len(y)
    if shared == 0:
        row[:5] = np.nan
        return
    for k in range(m - 1, -1, -1):
        chain[k] = heads[y[k]]
        heads[y[k]] = k
    count, first, last = 0, -1, -1
    for k in range(n):
        other = heads[x[k]]
        if other >= 0:
            heads[x[k]] = chain[other]
            right[count] = other
            count += 1
            last = k
            if first < 0:
                first = k
    for k in range(m):
        heads[y[k]] = -1
    row[0] = inverted(right, count)
    row[1] = right[0] / m
    row[2] = (right[count - 1] + 1) / m
    row[3] = first / n
    row[4] = 1 - (last + 1) / n


@inner
def inverted(places, count):
    """Returns the share of pairs in the opposite order."""
    crossed = 0
    for k in range(1, count):
        position = places[k]
        for p in range(k):
            crossed += places[p] > position
    return ratio(crossed, count * (count - 1) // 2)


@inner
def gaps(n, m, begins, partner_x, partner_y, row):
    """Fills gaps to gap_b from the partners of alignment.align.

    Leaves -1 - gap as the partner of each word that has none.
    """
    gaps = replaced = gap_a = gap_b = 0
    i = j = gap = 0
    while True:
        k, p = i, j
        while k < n and partner_x[k] < 0:
            partner_x[k] = -1 - gap
            k += 1
        while p < m and partner_y[p] < 0:
            partner_y[p] = -1 - gap
            p += 1
        gaps += k > i or p > j
        replaced += k > i and p > j
        gap_a = max(gap_a, begins[k] - begins[i])
        gap_b = max(gap_b, begins[n + p] - begins[n + j])
        if k >= n:
            break
        i, j, gap = k + 1, p + 1, gap + 1
    row[0] = gaps
    row[1] = replaced
    row[2] = gap_a
    row[3] = gap_b


@inner
def exchanged(x, y, partners, chains, left, right):
    """Counts pairs of words that took each other's gap, by the partners that gaps leaves."""
    (partner_x, partner_y), (heads, chain) = partners, chains
    for k in range(len(y) - 1, -1, -1):
        if partner_y[k] < 0:
            chain[k] = heads[y[k]]
            heads[y[k]] = k
    count = 0
    for k in range(len(x)):
        if partner_x[k] < 0 and heads[x[k]] >= 0:
            other = heads[x[k]]
            heads[x[k]] = chain[other]
            left[count], right[count] = partner_x[k], partner_y[other]
            count += 1
    for k in range(len(y)):
        heads[y[k]] = -1
    exchanged = 0
    for k in range(count):
        if left[k] != right[k]:
            for p in range(k + 1, count):
                exchanged += left[k] == right[p] and right[k] == left[p]
    return exchanged


@inner
def letter_spans(text, marks, before, starts, ends):
    """Finds the clauses with letters, as positions among the letters; returns their number."""
    count = start = 0
    for position in marks:
        if cuts_code(text, position):
            starts[count], ends[count] = start, before[position]
            count += start < before[position]
            start = before[position]
    starts[count], ends[count] = start, before[len(text)]
    return count + (start < before[len(text)])


@inner
def least_known(starts, ends, before):
    """Returns the lowest share of known letters in a clause. before: as surface's _stretch
    leaves it."""
    least = np.nan
    for p in range(len(starts)):
        share = (before[ends[p]] - before[starts[p]]) / (ends[p] - starts[p])
        least = least if least <= share else share
    return least


@inner
def match_clauses(x, y, spans, flags, right, row):
    """Fills clauses_inverted and clause_worst. flags: by letter id, 0 between calls."""
    starts_x, ends_x, starts_y, ends_y = spans
    worst, matched = np.nan, 0
    for p in range(len(starts_x)):
        for k in range(starts_x[p], ends_x[p]):
            flags[x[k]] = 1
        best, match = 0.0, 0
        for q in range(len(starts_y)):
            shared = 0
            for k in range(starts_y[q], ends_y[q]):
                shared += flags[y[k]]
            share = shared / max(ends_y[q] - starts_y[q], ends_x[p] - starts_x[p])
            if share > best:
                best, match = share, q
        for k in range(starts_x[p], ends_x[p]):
            flags[x[k]] = 0
        worst = worst if worst <= best else best
        right[matched] = match
        matched += best > MATCHED_CLAUSE
    row[1] = inverted(right, matched)
    row[2] = worst
