"""Computes the eight features by definition, one pair at a time, to test the kernels against."""

from difflib import SequenceMatcher

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from gaixie.udfs.features.tiles import MINIMUM_TILE

ALWAYS_CUTS = ";!?。"
CUTS_UNLESS_INSIDE_A_TOKEN = ",.:"


def split_clauses(text: str) -> list[tuple[int, str]]:
    """Returns (start, clause) of each clause of a normalised sentence, in order, by definition.

    Clauses exclude the punctuation and the spaces around them; empty clauses are ignored.
    """
    clauses = []
    start = 0
    for end in range(len(text) + 1):
        if end < len(text) and not _cuts(text, end):
            continue
        piece = text[start:end]
        if piece.strip(" "):
            clauses.append((start + len(piece) - len(piece.lstrip(" ")), piece.strip(" ")))
        start = end + 1
    return clauses


def _cuts(text: str, position: int) -> bool:
    character = text[position]
    if character in ALWAYS_CUTS:
        return True
    if character not in CUTS_UNLESS_INSIDE_A_TOKEN:
        return False
    neighbours = text[max(position - 1, 0) : position] + text[position + 1 : position + 2]
    return not (len(neighbours) == 2 and neighbours.isascii() and neighbours.isalnum())


def tiles(source: str, paraphrase: str) -> list[tuple[int, int, int]]:
    """Returns tiles (start in source, start in paraphrase, length), in the order of the source.

    Runs Wise's rounds over a table of match lengths. Each round takes every longest match of
    unmarked characters, by source and then paraphrase, unless a tile of the round covers it.
    """
    a, b = (np.array([ord(c) for c in text], np.int64) for text in (source, paraphrase))
    a, b = np.append(a, -1), np.append(b, -2)  # ends that match nothing
    found = []
    while True:
        table = np.zeros((len(a), len(b)), np.int32)
        for i in range(len(a) - 2, -1, -1):
            table[i, :-1] = (table[i + 1, 1:] + 1) * (b[:-1] == a[i])
        longest = int(table.max())
        if longest < MINIMUM_TILE:
            return sorted(found)
        for i, j in np.argwhere(table == longest).tolist():
            if (a[i : i + longest] >= 0).all() and (b[j : j + longest] >= 0).all():
                found.append((i, j, longest))
                a[i : i + longest], b[j : j + longest] = -1, -2


def shared_starts(a: list[tuple[int, str]], b: list[tuple[int, str]]) -> list[tuple[int, int]]:
    """Returns the starts in A and B of shared items (start, text), k-th matched to k-th."""
    left, shared = list(b), []
    for start, text in a:
        partner = next((other for other in left if other[1] == text), None)
        if partner:
            left.remove(partner)
            shared.append((start, partner[0]))
    return shared


def positional_alignment(starts: list[tuple[int, int]], n: int, m: int) -> float:
    """Returns Equation (1) for items with starts (in A, in B), in the order of A."""
    size = len(starts)
    if size == 0:
        return float("nan")
    total = 0.0
    for i in range(size):
        for _ in range(i, size):
            total += abs(starts[i][0] / n - starts[i][1] / m)
    return total / size**2


def spa(source: str, paraphrase: str) -> float:
    """Returns SPA of two normalised sentences."""
    starts = [(i, j) for i, j, _ in tiles(source, paraphrase)]
    return positional_alignment(starts, len(source), len(paraphrase))


def acs(source: str, paraphrase: str) -> float:
    """Returns ACS of two normalised sentences."""
    longer = max(len(source), len(paraphrase))
    if longer == 0:
        return float("nan")
    return sum(a == b for a, b in zip(source, paraphrase, strict=False)) / longer


def pmd(source: str, paraphrase: str) -> float:
    """Returns PMD of two normalised sentences."""
    clauses_a, clauses_b = split_clauses(source), split_clauses(paraphrase)
    shared = shared_starts(clauses_a, clauses_b)
    if not shared:
        return float("nan")
    mixing_a, mixing_b = (
        sum(abs(x - y) for i, x in enumerate(starts) for y in starts[i:]) / len(clauses)
        for starts, clauses in zip(zip(*shared, strict=True), (clauses_a, clauses_b), strict=True)
    )
    return abs(mixing_a - mixing_b) / len(shared)


def wpa(words_a: list[str], words_b: list[str]) -> float:
    """Returns WPA of two normalised sentences, given as all their words in order."""
    shared = shared_starts(_starts(words_a), _starts(words_b))
    return positional_alignment(shared, sum(map(len, words_a)), sum(map(len, words_b)))


def _starts(words: list[str]) -> list[tuple[int, str]]:
    starts, position = [], 0
    for word in words:
        if any(character.isalnum() for character in word):
            starts.append((position, word))
        position += len(word)
    return starts


def lis(source: str, paraphrase: str) -> float:
    """Returns LIS of two normalised sentences."""
    if not source:
        return float("nan")
    matcher = SequenceMatcher(None, source, paraphrase, autojunk=False)
    return matcher.find_longest_match().size / len(source)


ALL_ORDERS = BLEU(tokenize="char", max_ngram_order=7, effective_order=True, force=True)


def sbleu(source: str, paraphrase: str) -> float:
    """Returns SBLEU of two normalised sentences, from sacrebleu's statistics of orders 4 to 7."""
    found = ALL_ORDERS.sentence_score(paraphrase, [source])
    if not found.totals[3]:
        return float("nan")  # sacrebleu gives 0 if there is no n-gram at all
    statistics = found.counts[3:7], found.totals[3:7], found.sys_len, found.ref_len
    smoothing = {"smooth_method": "exp", "effective_order": True, "max_ngram_order": 4}
    return BLEU.compute_bleu(*statistics, **smoothing).score / 100


def reference(a: str, b: str, words_a: list[str], words_b: list[str]) -> dict[str, float]:
    """Returns the features of a normalised pair, given with its words."""
    return {
        "acs": acs(a, b),
        "spa": spa(a, b),
        "pmd": pmd(a, b),
        "wpa": wpa(words_a, words_b),
        "lis": lis(a, b),
        "sbleu": sbleu(a, b),
        "sl": float(len(a)),
        "lr": len(b) / len(a) if a else float("nan"),
    }
