"""What a paraphrase keeps, adds, loses, replaces and moves: columns that the eight features miss.

Characters are letters, digits and Han characters; words have at least one of them. Counts are of
occurrences, not of kinds (k occurrences against l share min(k, l)). A is the source, B the
paraphrase; n and m are their characters or words. NaN where a share has nothing to be a share of.

| column | chars_… of characters, words_… of words |
|---|---|
| kept, new | share of A's that B has; share of B's that A has not |
| pinc | share of B's n-grams, as they occur, that A has not: mean over the orders 1 to 4 that B is long enough for (after Chen and Dolan 2011) |
| lcs | longest common subsequence / n |
| edit | Levenshtein distance / max(n, m) |
| replaced | (n + m - 2 LCS - distance) / max(n, m): substitutions, which spare an insertion |
| moved | 1 - LCS / shared: out of order |

| column | meaning |
|---|---|
| char_runs | runs of characters that the common subsequence takes from A and B without a gap |
| words_added | words of B less words of A |
| words_repeated | occurrences in B beyond both the first and A's |
| long_kept, long_new | words_kept, words_new of words of two characters or more |
| half_lost | of the lost words, the share with a character of a new word: 帮助 for 帮忙 |
| half_new | of the new words, the share with a character of a lost word |
| whole_lost, whole_new | lost (new) words of two characters or more of which the other side has no character |
| words_inverted | pairs of shared words in the opposite order / all pairs (Kendall); k-th with k-th occurrence |
| first_at, last_at | where in B the first and the last shared word of A begin and end, by words / m |
| first_lost, last_lost | words of A before its first and behind its last shared word / n |
| gaps, gaps_replaced | stretches between the words of the common subsequence: all; those with words on both sides |
| gap_a, gap_b | characters of A (of B) in the longest of them |
| moved | shared words outside of the common subsequence |
| exchanged | pairs of those that took each other's gap: 甲打乙, 乙打甲 |
| clauses_added | clauses of B less clauses of A (udfs/text/clauses.py) |
| clauses_inverted | clauses of A, matched to the most similar one of B (over 0.3): pairs in the opposite order / all |
| clause_worst | similarity of the clause of A that is least like any of B |
| clause_lost, clause_new | lowest share of characters of a clause of A (of B) that the other side has |
| stretch_new, stretch_lost | longest run of characters of B (of A) that the other side has not |
| head_kept, tail_kept | characters that A and B begin (end) with / n |
| end_changed | 1 where one ends as statement, question, exclamation or none and the other otherwise |
| unbalanced | brackets and quotation marks without their other half in B, less those in A |
| marks_added | characters that are no letters, B less A |
| latin_b, latin_added | letters of alphabets: share of B; B less A |
| function_b | share of 的, 了, 在 and the like in B |
| function_lost, function_new | how many of them went and came |
| de_b, de_added | 的 and 之: share of B; B less A |
| markers_new | 把, 被, 将, 由, 给 and 让 that came |

Similarity of two clauses: the characters of the one of B that the one of A has / the longer's length.
A pair with a sentence of over numbering.LONGEST characters is NaN throughout.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

from gaixie.udfs.meaning import alignment, numbering
from gaixie.udfs.meaning.surface_order import MATCHED_CLAUSE
from gaixie.udfs.text.clauses import split_clauses

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


def reference(a: str, b: str, words_a: list[str], words_b: list[str]) -> dict[str, float]:
    """The columns of a normalised pair, given with its words: the definition."""
    if max(len(a), len(b)) > numbering.LONGEST:
        return dict.fromkeys(NAMES, float("nan"))
    words_a, words_b = list(filter(_letters, words_a)), list(filter(_letters, words_b))
    x, y = _letters(a), _letters(b)
    of_chars, char_pairs = _unit(x, y)
    of_words, word_pairs = _unit(words_a, words_b)
    runs = sum(q != (p[0] + 1, p[1] + 1) for p, q in pairwise([(-2, -2), *char_pairs]))
    values = [
        *of_chars,
        *of_words,
        runs,
        len(words_b) - len(words_a),
        *_choice(words_a, words_b),
        *_order(words_a, words_b),
        *_gaps(words_a, words_b, word_pairs),
        *_clauses(a, b),
        _stretch(y, x),
        _stretch(x, y),
        _ratio(_common(x, y), len(x)),
        _ratio(_common(x[::-1], y[::-1]), len(x)),
        *_marks(a, b),
    ]
    return dict(zip(NAMES, map(float, values), strict=True))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _unit(x: Sequence[str], y: Sequence[str]) -> tuple[list[float], list[tuple[int, int]]]:
    """The columns of _UNIT, and the common subsequence."""
    n, m, longer = len(x), len(y), max(len(x), len(y))
    shared = (Counter(x) & Counter(y)).total()
    scan, pairs = alignment.reference(x, y)
    new = [1 - count / (m - k) for k, count in enumerate(scan.grams) if m > k]
    return [
        _ratio(shared, n),
        1 - _ratio(shared, m),
        _ratio(sum(new), len(new)),
        _ratio(scan.lcs, n),
        _ratio(scan.distance, longer),
        _ratio(n + m - 2 * scan.lcs - scan.distance, longer),
        1 - _ratio(scan.lcs, shared),
    ], pairs


def _choice(x: list[str], y: list[str]) -> list[float]:
    """words_repeated to whole_new."""
    of_x, of_y = Counter(x), Counter(y)
    lost, new = list((of_x - of_y).elements()), list((of_y - of_x).elements())
    long_shared = sum(k for word, k in (of_x & of_y).items() if _is_long(word))
    return [
        sum(max(0, k - max(of_x[word], 1)) for word, k in of_y.items()),
        _ratio(long_shared, sum(map(_is_long, x))),
        1 - _ratio(long_shared, sum(map(_is_long, y))),
        _ratio(sum(_touches(word, new) for word in lost), len(lost)),
        _ratio(sum(_touches(word, lost) for word in new), len(new)),
        sum(_is_long(word) and not _touches(word, y) for word in lost),
        sum(_is_long(word) and not _touches(word, x) for word in new),
    ]


def _is_long(word: str) -> bool:
    return len(_letters(word)) > 1


def _touches(word: str, others: Iterable[str]) -> bool:
    """Whether a letter of the word is in the others."""
    return not set(_letters(word)).isdisjoint("".join(others))


def _partners(x: list[str], y: list[str]) -> list[tuple[int, int]]:
    """Places of x and y, k-th occurrence with k-th occurrence, in the order of x."""
    left, pairs = list(range(len(y))), []
    for i, item in enumerate(x):
        j = next((j for j in left if y[j] == item), None)
        if j is not None:
            left.remove(j)
            pairs.append((i, j))
    return pairs


def _inverted(places: list[int]) -> float:
    pairs = list(combinations(places, 2))
    return _ratio(sum(p > q for p, q in pairs), len(pairs))


def _order(x: list[str], y: list[str]) -> list[float]:
    pairs = _partners(x, y)
    if not pairs:
        return [float("nan")] * 5
    (first, first_at), (last, last_at) = pairs[0], pairs[-1]
    ends = [first_at / len(y), (last_at + 1) / len(y), first / len(x), 1 - (last + 1) / len(x)]
    return [_inverted([j for _, j in pairs]), *ends]


def _gaps(x: list[str], y: list[str], pairs: list[tuple[int, int]]) -> list[float]:
    gap_of_x: dict[int, int] = {}
    gap_of_y: dict[int, int] = {}
    sizes = [(0, 0)]
    for gap, ((i, j), (k, m)) in enumerate(pairwise([(-1, -1), *pairs, (len(x), len(y))])):
        gap_of_x |= dict.fromkeys(range(i + 1, k), gap)
        gap_of_y |= dict.fromkeys(range(j + 1, m), gap)
        words = "".join(x[i + 1 : k]), "".join(y[j + 1 : m])
        sizes.append((len(_letters(words[0])), len(_letters(words[1]))))
    out_x, out_y = list(gap_of_x), list(gap_of_y)
    moved = [
        (gap_of_x[out_x[i]], gap_of_y[out_y[j]])
        for i, j in _partners([x[i] for i in out_x], [y[j] for j in out_y])
    ]
    return [
        sum(p + q > 0 for p, q in sizes),
        sum(p > 0 and q > 0 for p, q in sizes),
        max(p for p, _ in sizes),
        max(q for _, q in sizes),
        len(moved),
        sum(p == (s, r) and r != s for p, (r, s) in combinations(moved, 2)),
    ]


def _clauses(a: str, b: str) -> list[float]:
    x = [text for _, clause in split_clauses(a) if (text := _letters(clause))]
    y = [text for _, clause in split_clauses(b) if (text := _letters(clause))]
    matches, worst = [], float("nan")
    for p in x:
        shares = [sum(c in p for c in q) / max(len(p), len(q)) for q in y]
        best = max(shares, default=0.0)
        worst = min(best, worst)  # the first where worst is NaN
        if best > MATCHED_CLAUSE:
            matches.append(shares.index(best))
    lost = min((sum(c in b for c in p) / len(p) for p in x), default=float("nan"))
    new = min((sum(c in a for c in q) / len(q) for q in y), default=float("nan"))
    return [len(y) - len(x), _inverted(matches), worst, lost, new]


def _stretch(text: str, other: str) -> int:
    longest = run = 0
    for character in text:
        run = 0 if character in other else run + 1
        longest = max(longest, run)
    return longest


def _common(x: str, y: str) -> int:
    pairs = zip(x, y, strict=False)
    return next((k for k, (p, q) in enumerate(pairs) if p != q), min(len(x), len(y)))


def _end(text: str) -> str:
    """The kind of the sentence by its final marks."""
    kinds = (numbering.STATEMENT, numbering.QUESTION, numbering.EXCLAMATION)
    for character in reversed(text):
        if character.isalnum():
            break
        for kind in kinds:
            if character in kind:
                return kind
    return ""


def _unbalanced(text: str) -> int:
    marks = numbering.BRACKETS
    halves = zip(marks[::2], marks[1::2], strict=True)
    return sum(abs(text.count(p) - text.count(q)) for p, q in halves) + text.count('"') % 2


def _latin(text: str) -> int:
    return sum(ord(c) < 0x2E80 and unicodedata.category(c).startswith("L") for c in text)


def _marks(a: str, b: str) -> list[float]:
    of_a, of_b = Counter(a), Counter(b)
    function_a, function_b, de_a, de_b = (
        Counter({c: k for c, k in of.items() if c in chosen})
        for chosen in (numbering.FUNCTION_CHARACTERS, numbering.ATTRIBUTIVE)
        for of in (of_a, of_b)
    )
    m = len(_letters(b))
    return [
        _end(a) != _end(b),
        _unbalanced(b) - _unbalanced(a),
        (len(b) - m) - (len(a) - len(_letters(a))),
        _ratio(_latin(b), m),
        _latin(b) - _latin(a),
        _ratio(function_b.total(), m),
        (function_a - function_b).total(),
        (function_b - function_a).total(),
        _ratio(de_b.total(), m),
        de_b.total() - de_a.total(),
        sum(max(0, of_b[c] - of_a[c]) for c in numbering.MARKERS),
    ]
