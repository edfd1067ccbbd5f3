"""Computes the columns that udfs/meaning/facts.py defines, over code points."""

from typing import NamedTuple

import numpy as np

from gaixie.udfs.meaning import facts
from gaixie.udfs.meaning.bucket import fetch
from gaixie.udfs.text import numerals, quantities
from gaixie.udfs.text.compiled import inlined, inner
from gaixie.udfs.text.words import MULTIPLIER, same_text

# The columns, in the order of facts.NAMES.
NUMBERS_LOST, NUMBERS_NEW, LATIN_LOST, LATIN_NEW, NAMES_LOST, NAMES_NEW = range(6)
FOREIGN_LOST, FOREIGN_NEW, PRONOUNS, QUESTIONS, FACTS_LOST, FACTS_NEW = range(6, 12)
NEGATION_ADDED, NEGATION_ODD, OPPOSITES, CHANGED = range(12, 16)

_PRONOUNS, _PRONOUNS_END = facts.KIND_SPAN["pronoun"]
_QUESTIONS, _QUESTIONS_END = facts.KIND_SPAN["question"]
_ITEMS = len(facts.ITEMS)
_LINES, _VALUES = facts.LINES, facts.VALUES
_NUMBER = numerals.NUMERAL | numerals.HALF
_QUESTION_MARK = ord("?")
_SEED = np.uint64(0xCBF29CE484222325)


class Scratch(NamedTuple):
    """Scratch space for the longest sentence of a batch."""

    edges: np.ndarray  # uint8, by character and one more: 1 where a word begins or ends
    items: np.ndarray  # int16, (2, items)
    numbers: np.ndarray  # float64, (2, numbers, 3): value, dimension and amount
    weak: np.ndarray  # uint8, (2, numbers)
    latin: np.ndarray  # uint64, (2, words)
    seen: np.ndarray  # uint8, by letter id, 0 between calls


def scratch(longest: int) -> Scratch:
    """Allocates scratch space for sentences of up to longest characters."""
    return Scratch(
        np.zeros(longest + 1, np.uint8),
        np.zeros((2, _ITEMS), np.int16),
        np.empty((2, longest + 1, 3)),
        np.empty((2, longest + 1), np.uint8),
        np.empty((2, longest + 1), np.uint64),
        np.zeros(2 * longest + 2, np.uint8),
    )


@inlined
def kernel(a, ends_a, b, ends_b, counts, s, f, t, row):
    """Fills row for the pair that s numbers. counts: the result of numbering.number."""
    n, m, _, words_a, words_b, _ = counts
    letters_a, letters_b = s.letters[:n], s.letters[n : n + m]
    items_a, items_b = f.items[0], f.items[1]
    for k in range(words_a + words_b):  # read below, once they arrive
        fetch(t.names, facts.first_place(s.keys[s.words[k] + 1]))
    numbers_a, latin_a, foreign_a = _read(
        a, ends_a, t, f.edges, items_a, f.numbers[0], f.weak[0], f.latin[0]
    )
    numbers_b, latin_b, foreign_b = _read(
        b, ends_b, t, f.edges, items_b, f.numbers[1], f.weak[1], f.latin[1]
    )
    found_a, found_b = f.numbers[0, :numbers_a], f.numbers[1, :numbers_b]
    row[NUMBERS_LOST] = _missed_numbers(found_a, f.weak[0], found_b, f.edges)
    row[NUMBERS_NEW] = _missed_numbers(found_b, f.weak[1], found_a, f.edges)
    row[LATIN_LOST], row[LATIN_NEW] = _missed_latin(f.latin[0, :latin_a], f.latin[1, :latin_b])
    row[NAMES_LOST] = _missed_names(0, words_a, s, s.words_of_b, letters_b, t)
    row[NAMES_NEW] = _missed_names(words_a, words_a + words_b, s, s.words_of_a, letters_a, t)
    row[FOREIGN_LOST] = row[FOREIGN_NEW] = 0
    if foreign_a >= facts.FOREIGN_RUN:
        row[FOREIGN_LOST] = _missed_foreign(a, t.characters, s.before_a, letters_a, s.of_b, f.seen)
    if foreign_b >= facts.FOREIGN_RUN:
        row[FOREIGN_NEW] = _missed_foreign(b, t.characters, s.before_b, letters_b, s.of_a, f.seen)
    _compare(items_a, items_b, row)
    lines = facts.WORD_LINES if numbers_a == 0 or numbers_b == 0 else len(_LINES) - 1
    if row[NEGATION_ADDED] != 0:
        lines = facts.SURE_LINES
    clashes = _clashes(items_a, items_b, lines)
    row[NUMBERS_LOST] += clashes
    row[NUMBERS_NEW] += clashes
    row[CHANGED] = row[FACTS_LOST] + row[FACTS_NEW] + abs(row[NEGATION_ADDED]) + row[OPPOSITES]
    for column in range(NUMBERS_LOST, NAMES_NEW + 1):
        row[CHANGED] += row[column]


@inner
def _read(text, ends, t, edges, items, found, weak, latin):
    """Finds numbers, Latin words and items; returns how many of the first two, and the longest run
    of foreign characters."""
    n = len(text)
    edges[: n + 1] = 0
    edges[0] = 1
    for k in range(len(ends)):
        edges[ends[k]] = 1
    items[:] = 0
    numbers = words = run = longest = 0
    busy = matched = 0  # behind the last number or Latin word; behind the last item
    for i in range(n):
        cell = numerals.cell_at(text, i, t.characters)
        run = run + 1 if cell & facts.FOREIGN else 0
        longest = max(longest, run)
        if i >= busy:
            if cell & facts.LATIN:
                key, busy = _SEED, i
                while numerals.cell_at(text, busy, t.characters) & (facts.LATIN | numerals.ARABIC):
                    code = np.uint64(text[busy])
                    code |= np.uint64(0x20) * np.uint64(code > 0x40)  # lower case
                    key = (key ^ code) * MULTIPLIER
                    key ^= key >> np.uint64(29)
                    busy += 1
                latin[words] = key
                words += 1
            elif cell & _NUMBER:
                number = numerals.kernel(text, i, t.characters, edges)
                weak[numbers], busy = number[1], number[2]
                found[numbers, 0], found[numbers, 1] = number[0], number[3]
                found[numbers, 2] = number[4]
                numbers += busy > i
        node = (cell >> facts.ROOT_SHIFT) & facts.ROOT_MASK
        if i < matched or node == 0:
            continue
        alone = (edges[i] or (i == matched)) and edges[i + 1]
        word, end = -1, i + 1
        if alone or cell & facts.ANYWHERE:
            word = np.int64(t.word_at[node])
        position = i + 1
        while position < n:
            node = facts.step(node, text[position], t.edges, t.children)
            if node == 0:
                break
            position += 1
            if t.word_at[node] >= 0:
                word, end = np.int64(t.word_at[node]), position
        if word < 0:
            continue
        matched = end
        first, last = t.first_hit[word], t.first_hit[word + 1]
        if first < last and t.hits[first] == facts.NEGATION and end - i <= 2:
            asks = end == n or text[end] == _QUESTION_MARK
            if asks or (end == i + 1 and i > 0 and text[end] == text[i - 1]):
                items[facts.YES_NO] += 1
                continue
        for hit in t.hits[first:last]:
            items[hit] += 1
    return numbers, words, longest


@inner
def _missed_numbers(numbers, weak, others, taken):
    """Counts the numbers without an equal on the other side, one for one, except weak ones."""
    missed = 0
    for k in range(len(others)):
        taken[k] = 0
    for k in range(len(numbers)):
        position = 0
        while position < len(others) and (
            taken[position] or not quantities.same_kernel(numbers[k], others[position])
        ):
            position += 1
        if position < len(others):
            taken[position] = 1
        else:
            missed += not weak[k]
    return missed


@inner
def _missed_latin(words, others):
    """Counts the words of each side without an equal on the other, one for one."""
    shared = 0
    for k in range(len(words)):
        for position in range(len(others)):
            if others[position] == words[k]:
                others[position] = 0
                shared += 1
                break
    return len(words) - shared, len(others) - shared


@inner
def _missed_names(start, stop, s, words_of_other, others, t):
    """Counts the words from start to stop that are names, and neither words nor among the letters
    of the other side."""
    missed = 0
    for k in range(start, stop):
        begin, end = s.begins[k], s.begins[k + 1]
        key = s.keys[s.words[k] + 1]
        if words_of_other[s.words[k]] or end - begin < 2:
            continue
        if t.names[facts.place_of_name(key, t.names)] == key:
            code = min(np.int64(s.codes[s.letters[end - 1]]), len(t.characters) - 1)
            if end - begin > 2 and t.characters[code] & facts.IS_PLACE:
                end -= 1
            missed += not _contains(others, s.letters[begin:end])
    return missed


@inner
def _contains(text, word):
    size = len(word)
    for k in range(len(text) - size + 1):
        if same_text(word, 0, text, k, size):
            return True
    return False


@inner
def _missed_foreign(text, characters, before, letters, of_other, seen):
    """Counts distinct letters in runs of foreign characters that the other side lacks."""
    missed = run = 0
    for k in range(len(text)):
        cell = characters[min(np.int64(text[k]), len(characters) - 1)]
        run = run + 1 if cell & facts.FOREIGN else 0
        if run >= facts.FOREIGN_RUN:
            for p in range(k - facts.FOREIGN_RUN + 1 if run == facts.FOREIGN_RUN else k, k + 1):
                if before[p] < before[p + 1]:  # the dot is not a letter
                    letter = letters[before[p]]
                    missed += of_other[letter] == 0 and seen[letter] == 0
                    seen[letter] = 1
    for k in range(len(letters)):
        seen[letters[k]] = 0
    return missed


@inner
def _compare(items_a, items_b, row):
    pronouns = questions = lost = new = opposites = 0
    for k in range(facts.OPPOSITES_FROM):
        difference = np.int64(items_b[k]) - np.int64(items_a[k])
        lost += max(0, -difference)
        new += max(0, difference)
    for k in range(_PRONOUNS, _PRONOUNS_END):
        pronouns += abs(np.int64(items_b[k]) - np.int64(items_a[k]))
    for k in range(_QUESTIONS, _QUESTIONS_END):
        questions += abs(np.int64(items_b[k]) - np.int64(items_a[k]))
    for k in range(facts.OPPOSITES_FROM, facts.EXCLUSIVE_FROM, 2):
        change, next_change = items_b[k] - items_a[k], items_b[k + 1] - items_a[k + 1]
        opposites += (change < 0 and next_change > 0) or (change > 0 and next_change < 0)
    negation = np.int64(items_b[facts.NEGATION]) - np.int64(items_a[facts.NEGATION])
    row[PRONOUNS] = pronouns
    row[QUESTIONS] = questions
    row[FACTS_LOST] = lost - max(0, -negation)
    row[FACTS_NEW] = new - max(0, negation)
    row[NEGATION_ADDED] = negation
    row[NEGATION_ODD] = negation & 1
    row[OPPOSITES] = opposites


@inner
def _clashes(items_a, items_b, lines):
    """Counts those of the first lines of [exclusive] that lost a value and gained only others."""
    clashes = 0
    for line in range(lines):
        lost = new = 0
        for k in range(_LINES[line], _LINES[line + 1]):
            if items_a[k] > items_b[k]:
                lost |= _VALUES[k]
            elif items_a[k] < items_b[k]:
                new |= _VALUES[k]
        clashes += lost != 0 and new != 0 and lost & new == 0
    return clashes
