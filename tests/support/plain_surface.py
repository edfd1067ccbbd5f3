"""Computes the columns and alignment of udfs/meaning/surface.py by definition, pair by pair."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from Levenshtein import distance
from plain_features import split_clauses

from gaixie.udfs.meaning import numbering
from gaixie.udfs.meaning.alignment import ORDERS
from gaixie.udfs.meaning.surface import NAMES
from gaixie.udfs.meaning.surface_order import MATCHED_CLAUSE


class Scan(NamedTuple):
    """The values that :func:`scan` returns."""

    lcs: int
    """Length of the longest common subsequence."""
    distance: int
    """Insertions, deletions and substitutions that turn x into y."""
    grams: tuple[int, ...]
    """Number of places in y with an n-gram that x has too, for n from 1 to ORDERS."""


def align(x: Sequence[object], y: Sequence[object]) -> tuple[Scan, list[tuple[int, int]]]:
    """Returns the scan by definition, and a longest common subsequence as (index in x, in y).

    If there are several, it is the one found by walking back from both ends, over x first.
    """
    n, m = len(x), len(y)
    table = [[0] * (n + 1) for _ in range(m + 1)]  # LCS of the first i of x and the first j of y
    for j in range(1, m + 1):
        for i in range(1, n + 1):
            longer = max(table[j - 1][i], table[j][i - 1])
            table[j][i] = table[j - 1][i - 1] + 1 if x[i - 1] == y[j - 1] else longer
    i, j, pairs = n, m, []
    while i and j:
        if table[j][i] == table[j][i - 1]:
            i -= 1
        elif table[j - 1][i] > table[j - 1][i - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    grams = []
    for k in range(1, ORDERS + 1):
        of_x = {tuple(x[i : i + k]) for i in range(n - k + 1)}
        grams.append(sum(tuple(y[j : j + k]) in of_x for j in range(m - k + 1)))
    return Scan(table[m][n], distance(x, y), tuple(grams)), pairs[::-1]


def reference(a: str, b: str, words_a: list[str], words_b: list[str]) -> dict[str, float]:
    """Returns the columns of a normalised pair, given with its words, by definition."""
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
    """Returns the columns of _UNIT, and the common subsequence."""
    n, m, longer = len(x), len(y), max(len(x), len(y))
    shared = (Counter(x) & Counter(y)).total()
    scan, pairs = align(x, y)
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
    """Returns the columns from words_repeated to whole_new."""
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
    """Says whether a character of the word is in the others."""
    return not set(_letters(word)).isdisjoint("".join(others))


def _partners(x: list[str], y: list[str]) -> list[tuple[int, int]]:
    """Returns places of equal words in x and y, k-th matched to k-th, in the order of x."""
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
        worst = min(best, worst)  # gives best if worst is NaN
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
    """Returns the kind of the sentence, by its final punctuation."""
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
