"""Measures what a paraphrase keeps, adds, loses, replaces and moves, beyond the eight features.

Characters are letters, digits and Han characters; words have at least one of them. Occurrences
count, not kinds (k occurrences against l share min(k, l)). A is the source, B the paraphrase; n and
m are their numbers of characters or words. A share of nothing is NaN.

| column | chars_… of characters, words_… of words |
|---|---|
| kept, new | share of A's that B has; share of B's that A lacks |
| pinc | share of B's n-gram occurrences that A lacks: mean over the orders 1 to 4 for which B is |
| | long enough (after Chen and Dolan 2011) |
| lcs | longest common subsequence / n |
| edit | Levenshtein distance / max(n, m) |
| replaced | (n + m - 2 LCS - distance) / max(n, m): substitutions, which spare an insertion |
| moved | 1 - LCS / shared: out of order |

| column | meaning |
|---|---|
| char_runs | runs of the common subsequence without a gap in A and in B |
| words_added | words of B minus words of A |
| words_repeated | occurrences in B beyond both the first and A's |
| long_kept, long_new | words_kept, words_new of words of two characters or more |
| half_lost | of the lost words, the share with a character of a new word: 帮助 for 帮忙 |
| half_new | of the new words, the share with a character of a lost word |
| whole_lost, whole_new | lost (new) words of two characters or more that share no character with |
| | the other side |
| words_inverted | pairs of shared words in the opposite order / all pairs (Kendall); the k-th |
| | occurrence matches the k-th |
| first_at, last_at | where in B the first and the last shared word of A begin and end, in words / |
| | m |
| first_lost, last_lost | words of A before its first and behind its last shared word / n |
| gaps, gaps_replaced | stretches between the words of the common subsequence: all; those with |
| | words on both sides |
| gap_a, gap_b | characters of A (of B) in the longest gap |
| moved | shared words outside the common subsequence |
| exchanged | pairs of moved words that took each other's gap: 甲打乙, 乙打甲 |
| clauses_added | clauses of B minus clauses of A (udfs/text/clauses.py) |
| clauses_inverted | clauses of A, matched to the most similar one of B (over 0.3): pairs in the |
| | opposite order / all |
| clause_worst | similarity to B of the clause of A that is least like any clause of B |
| clause_lost, clause_new | lowest share of characters of a clause of A (of B) that the other side |
| | has |
| stretch_new, stretch_lost | longest run of characters of B (of A) that the other side lacks |
| head_kept, tail_kept | characters that A and B share at the beginning (end) / n |
| end_changed | 1 if A and B end differently: as statement, question, exclamation or none |
| unbalanced | brackets and quotation marks without their other half, B minus A |
| marks_added | characters that are not letters, B minus A |
| latin_b, latin_added | letters of alphabets: share of B; B minus A |
| function_b | share of 的, 了, 在 and the like in B |
| function_lost, function_new | how many of them A loses and B adds |
| de_b, de_added | 的 and 之: share of B; B minus A |
| markers_new | 把, 被, 将, 由, 给 and 让 that B adds |

The similarity of two clauses is the number of characters of B's clause that A's clause has / the
length of the longer. If a sentence has over numbering.LONGEST characters, all columns are NaN.
"""

from collections import namedtuple

import numpy as np

from gaixie.udfs.meaning import numbering, surface_order
from gaixie.udfs.meaning.alignment import NO_PARTNER, ORDERS, align, scan
from gaixie.udfs.meaning.surface_order import ratio
from gaixie.udfs.text.compiled import inlined, inner

_UNIT = ("kept", "new", "pinc", "lcs", "edit", "replaced", "moved")
NAMES = (
    *(f"chars_{name}" for name in _UNIT),
    *(f"words_{name}" for name in _UNIT),
    *("char_runs", "words_added", "words_repeated"),
    *("long_kept", "long_new", "half_lost", "half_new", "whole_lost", "whole_new"),
    *("words_inverted", "first_at", "last_at", "first_lost", "last_lost"),
    *("gaps", "gaps_replaced", "gap_a", "gap_b", "moved", "exchanged"),
    *("clauses_added", "clauses_inverted", "clause_worst", "clause_lost", "clause_new"),
    *("stretch_new", "stretch_lost", "head_kept", "tail_kept"),
    *("end_changed", "unbalanced", "marks_added", "latin_b", "latin_added"),
    *("function_b", "function_lost", "function_new", "de_b", "de_added", "markers_new"),
)
"""The columns, in order."""

KINDS_OF_BRACKETS = len(numbering.BRACKETS) // 2 + 2
"""Kinds of brackets; 0 is none, and the last is the straight quote."""

CHARS, WORDS, RUNS, REPEATED, LONG, ORDER, GAPS = 0, 7, 14, 16, 17, 23, 28
CLAUSES, STRETCHES, MARKS = 34, 39, 43
"""Where the groups of columns begin in NAMES."""
_LOST, _NEW = 1, 2


class Scratch(
    namedtuple(
        "Scratch",
        "masks history vectors partner_x partner_y flags heads chain left right spans brackets",
    )
):
    """Scratch space for the longest sentence of a batch.

    masks, history, vectors, partner_x and partner_y: see alignment.scan and alignment.align. flags:
    uint8, by letter id, 0 between calls. heads: int32, by word id, -1 between calls. chain, left,
    right: int32, by letter. spans: int32, (4, clauses). brackets: int32, by kind.
    """


def scratch(longest: int) -> Scratch:
    """Allocates scratch space for sentences of up to longest characters."""
    pair, blocks = 2 * longest + 1, longest // 64 + 1
    arrays: list[np.ndarray] = [
        np.zeros(pair * blocks, np.uint64),
        np.empty((longest + 1) * blocks, np.uint64),
        np.empty(6 * blocks, np.uint64),
        *np.empty((2, longest + 1), np.int32),
        np.zeros(pair, np.uint8),
        np.full(pair, -1, np.int32),
        *np.empty((3, longest + 4), np.int32),
        np.empty((4, longest // 2 + 2), np.int32),
        np.zeros(KINDS_OF_BRACKETS, np.int32),
    ]
    return Scratch(*arrays)


@inlined
def kernel(a, b, counts, s, t, row):
    """Fills row for the pair that s numbers. counts: the result of numbering.number.

    The callees take single arrays, because passing the whole scratch would cost more than most do.
    """
    n, m, known, words_a, words_b, known_words = counts
    x, y = s.letters[:n], s.letters[n : n + m]

    shared = _shared(s.of_a, s.of_b, known)
    _unit(x, y, shared, t.masks, t.history, t.vectors, row[CHARS:WORDS])
    align(n, m, t.history, t.partner_x, t.partner_y)
    row[RUNS] = _runs(n, t.partner_x)

    x_words, y_words = s.words[:words_a], s.words[words_a : words_a + words_b]
    shared = _shared(s.words_of_a, s.words_of_b, known_words)
    lcs = _unit(x_words, y_words, shared, t.masks, t.history, t.vectors, row[WORDS:RUNS])
    align(words_a, words_b, t.history, t.partner_x, t.partner_y)
    row[RUNS + 1] = words_b - words_a

    begins = s.begins
    counts_of_words = (s.words_of_a, s.words_of_b, s.firsts, s.lasts)
    _choice(known, known_words, counts_of_words, s.letters, s.of_a, s.of_b, t.flags, row)
    surface_order.order(x_words, y_words, shared, t.heads, t.chain, t.right, row[ORDER:GAPS])
    surface_order.gaps(words_a, words_b, begins, t.partner_x, t.partner_y, row[GAPS:CLAUSES])
    row[GAPS + 4] = shared - lcs
    partners, chains = (t.partner_x, t.partner_y), (t.heads, t.chain)
    row[GAPS + 5] = surface_order.exchanged(x_words, y_words, partners, chains, t.left, t.right)

    starts_a, ends_a, starts_b, ends_b = t.spans[0], t.spans[1], t.spans[2], t.spans[3]
    marks_a, marks_b = s.marks_a[: len(a) - n], s.marks_b[: len(b) - m]
    count_a = surface_order.letter_spans(a, marks_a, s.before_a, starts_a, ends_a)
    count_b = surface_order.letter_spans(b, marks_b, s.before_b, starts_b, ends_b)
    row[CLAUSES] = count_b - count_a
    spans = (starts_a[:count_a], ends_a, starts_b[:count_b], ends_b)
    surface_order.match_clauses(x, y, spans, t.flags, t.right, row[CLAUSES:STRETCHES])
    row[STRETCHES + 1] = _stretch(x, s.of_b, t.left)
    row[CLAUSES + 3] = surface_order.least_known(starts_a[:count_a], ends_a, t.left)
    row[STRETCHES] = _stretch(y, s.of_a, t.left)
    row[CLAUSES + 4] = surface_order.least_known(starts_b[:count_b], ends_b, t.left)
    _same_ends(x, y, row)

    _letter_marks(m, known, s.kinds, s.of_a, s.of_b, row)
    row[MARKS] = _end(a, marks_a, s.classes) != _end(b, marks_b, s.classes)
    row[MARKS + 1] = _unbalanced(b, marks_b, s.classes, t.brackets)
    row[MARKS + 1] -= _unbalanced(a, marks_a, s.classes, t.brackets)
    row[MARKS + 2] = (len(b) - m) - (len(a) - n)


@inner
def _shared(of_a, of_b, known):
    total = 0
    for k in range(known):
        total += min(of_a[k], of_b[k])
    return total


@inner
def _runs(n, partners):
    """Counts the stretches without a gap in x and in y among the pairs of alignment.align."""
    count, expected = 0, NO_PARTNER
    for i in range(n):
        count += partners[i] != NO_PARTNER and partners[i] != expected
        expected = partners[i] + 1 if partners[i] != NO_PARTNER else NO_PARTNER
    return count


@inner
def _unit(x, y, shared, masks, history, vectors, row):
    """Fills the seven columns of a unit; returns the length of the common subsequence."""
    n, m = len(x), len(y)
    longer = max(n, m)
    lcs, distance, grams = scan(x, y, masks, history, vectors)
    new = 0.0
    for k in range(min(m, ORDERS)):
        new += 1 - grams[k] / (m - k)
    row[0] = ratio(shared, n)
    row[1] = 1 - ratio(shared, m)
    row[2] = ratio(new, min(m, ORDERS))
    row[3] = ratio(lcs, n)
    row[4] = ratio(distance, longer)
    row[5] = ratio(n + m - 2 * lcs - distance, longer)
    row[6] = 1 - ratio(lcs, shared)
    return lcs


@inner
def _choice(known, known_words, words, letters, of_a, of_b, flags, row):
    """Fills words_repeated to whole_new."""
    words_of_a, words_of_b, firsts, lasts = words
    repeated = long_shared = long_a = long_b = lost = new = 0
    for word in range(known_words):
        in_a, in_b = np.int64(words_of_a[word]), np.int64(words_of_b[word])
        repeated += max(0, in_b - max(in_a, 1))
        is_long = lasts[word] > firsts[word]
        long_shared += min(in_a, in_b) * is_long
        long_a += in_a * is_long
        long_b += in_b * is_long
        lost += max(0, in_a - in_b)
        new += max(0, in_b - in_a)
        for k in range(firsts[word], lasts[word] + 1):
            flags[letters[k]] |= np.uint8((in_a > in_b) * _LOST + (in_a < in_b) * _NEW)
    half_lost = half_new = whole_lost = whole_new = 0
    for word in range(known_words):
        more = np.int64(words_of_a[word]) - np.int64(words_of_b[word])
        is_long = lasts[word] > firsts[word]
        gone, come = max(more, 0), max(-more, 0)
        flag, seen_a, seen_b = np.uint8(0), 0, 0
        for k in range(firsts[word], lasts[word] + 1):
            flag |= flags[letters[k]]
            seen_a += of_a[letters[k]]
            seen_b += of_b[letters[k]]
        half_lost += gone * ((flag & _NEW) != 0)
        half_new += come * ((flag & _LOST) != 0)
        whole_lost += gone * (is_long & (seen_b == 0))
        whole_new += come * (is_long & (seen_a == 0))
    flags[:known] = 0
    row[REPEATED] = repeated
    row[LONG] = ratio(long_shared, long_a)
    row[LONG + 1] = 1 - ratio(long_shared, long_b)
    row[LONG + 2] = ratio(half_lost, lost)
    row[LONG + 3] = ratio(half_new, new)
    row[LONG + 4] = whole_lost
    row[LONG + 5] = whole_new


@inner
def _stretch(x, of_other, before):
    """Returns the longest run of letters that the other side lacks. Sets before[k] to the number of
    shared letters before k."""
    longest = run = count = 0
    for k in range(len(x)):
        before[k] = count
        here = of_other[x[k]] > 0
        count += here
        run = 0 if here else run + 1
        longest = max(longest, run)
    before[len(x)] = count
    return longest


@inner
def _same_ends(x, y, row):
    n, m = len(x), len(y)
    shorter = min(n, m)
    head = tail = 0
    while head < shorter and x[head] == y[head]:
        head += 1
    while tail < shorter and x[n - 1 - tail] == y[m - 1 - tail]:
        tail += 1
    row[STRETCHES + 2] = ratio(head, n)
    row[STRETCHES + 3] = ratio(tail, n)


@inner
def _letter_marks(m, known, kinds, of_a, of_b, row):
    latin_a = latin_b = function_b = lost = new = de_a = de_b = markers = 0
    for k in range(known):
        kind = kinds[k]
        if kind == numbering.LETTER:
            continue
        in_a, in_b = np.int64(of_a[k]), np.int64(of_b[k])
        if kind & numbering.LATIN:
            latin_a += in_a
            latin_b += in_b
        if kind & numbering.FUNCTION:
            function_b += in_b
            lost += max(0, in_a - in_b)
            new += max(0, in_b - in_a)
        if kind & numbering.DE:
            de_a += in_a
            de_b += in_b
        if kind & numbering.MARKER:
            markers += max(0, in_b - in_a)
    row[MARKS + 3] = ratio(latin_b, m)
    row[MARKS + 4] = latin_b - latin_a
    row[MARKS + 5] = ratio(function_b, m)
    row[MARKS + 6] = lost
    row[MARKS + 7] = new
    row[MARKS + 8] = ratio(de_b, m)
    row[MARKS + 9] = de_b - de_a
    row[MARKS + 10] = markers


@inner
def _end(text, marks, classes):
    """Returns the kind of a sentence by the marks behind its last letter."""
    for k in range(1, len(marks) + 1):
        position = len(text) - k
        if marks[len(marks) - k] != position:
            break
        kind = np.int64(classes[min(np.int64(text[position]), len(classes) - 1)])
        if (kind >> numbering.END_SHIFT) & numbering.END_MASK:
            return (kind >> numbering.END_SHIFT) & numbering.END_MASK
    return 0


@inner
def _unbalanced(text, marks, classes, brackets):
    quote = KINDS_OF_BRACKETS - 1
    brackets[:] = 0
    for position in marks:
        kind = np.int64(classes[min(np.int64(text[position]), len(classes) - 1)])
        brackets[kind >> numbering.BRACKET_SHIFT] += -1 if kind & numbering.CLOSING else 1
    total = brackets[quote] & 1
    for k in range(1, quote):
        total += abs(brackets[k])
    return total
