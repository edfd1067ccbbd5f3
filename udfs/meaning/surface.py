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

from __future__ import annotations

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
