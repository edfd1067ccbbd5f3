"""Numbers the characters and words of a pair, so that counting them is an array access.

Equal letters have equal ids, and so have equal words. Ids start from 0, in the order in which they
first occur, source before paraphrase. A *letter* is a letter, digit or Han character; a word has at
least one (as in udfs/features/wpa.py). Spaces, punctuation and symbols have no ids.
"""

from collections import namedtuple
from functools import cache

import numpy as np

from gaixie.udfs.text.code_points import CodePoints
from gaixie.udfs.text.compiled import inlined, inner
from gaixie.udfs.text.words import MULTIPLIER, alphanumeric, word_key

LONGEST = 4096
"""Characters of the longest sentence that this package describes; a longer text is not one."""

FUNCTION_CHARACTERS = "的了在是着过和与及就也都而之其于以为从对到把被将由给让所地得很还又再"
MARKERS = "把被将由给让"
ATTRIBUTIVE = "的之"
BRACKETS = "()[]{}《》〈〉「」『』【】〔〕“”‘’"
QUOTE = '"'
QUESTION, EXCLAMATION, STATEMENT = "?", "!", "。."

# Bits of a cell of the table of classes.
LETTER, LATIN, FUNCTION, MARKER, DE = 1, 2, 4, 8, 16
END_SHIFT, END_MASK = 5, 3  # 1 statement, 2 question, 3 exclamation
CLOSING = 1 << 7
BRACKET_SHIFT = 8  # 0 no bracket; else its kind, from 1

_HIGH = np.uint64(47)  # the well mixed bits of a product, enough for LONGEST


class Numbers(
    namedtuple(
        "Numbers",
        "classes ids letters before_a before_b marks_a marks_b words begins kinds codes of_a "
        "of_b words_of_a words_of_b firsts lasts keys slots cells",
    )
):
    """Scratch of :func:`number`: room for the longest sentence of a batch, twice.

    classes: uint16, by code point; a code point behind the end has the last cell's class, 0.
    ids: uint16, by code point: its letter's id + 1 while a pair is being numbered, else 0.
    letters: the letters' ids, those of the source and then those of the paraphrase.
    before_a, before_b: how many letters precede each character, and the end.
    marks_a, marks_b: the places of the characters that are not letters.
    words, begins: the words' ids in the same order, and where each begins among the letters; behind
    the last, the number of all letters.
    kinds, codes: class and code point by letter id. of_a, of_b: how often the source and the
    paraphrase have the letter; words_of_a, words_of_b: the word, by word id.
    firsts, lasts: the places of a word's letters, by word id. keys, slots, cells: the hash table.
    """


@cache
def classes() -> np.ndarray:
    """Returns the bits above by code point, uint16, up to one past the last that has any."""
    table = alphanumeric().astype(np.uint16)
    for code in range(0x2E80):
        if chr(code).isalpha():
            table[code] |= LATIN
    for bit, characters in ((FUNCTION, FUNCTION_CHARACTERS), (MARKER, MARKERS), (DE, ATTRIBUTIVE)):
        for character in characters:
            table[ord(character)] |= bit
    for kind, characters in enumerate((STATEMENT, QUESTION, EXCLAMATION), 1):
        for character in characters:
            table[ord(character)] |= kind << END_SHIFT
    for index, character in enumerate(BRACKETS):
        table[ord(character)] |= (index // 2 + 1) << BRACKET_SHIFT | CLOSING * (index % 2)
    table[ord(QUOTE)] |= (len(BRACKETS) // 2 + 1) << BRACKET_SHIFT
    return table[: np.flatnonzero(table)[-1] + 2].copy()


def longest(a: CodePoints, b: CodePoints) -> int:
    """Returns the length in characters of the longest sentence to describe."""
    sizes = (np.diff(text.offsets).max(initial=0) for text in (a, b))
    return min(int(max(sizes)), LONGEST)


def scratch(longest: int) -> Numbers:
    """Allocates scratch space for sentences of up to longest characters."""
    pair = 2 * longest + 2
    cells = 1 << (4 * longest + 16).bit_length()
    arrays: list[np.ndarray] = [
        classes(),
        np.zeros(len(classes()), np.uint16),  # untouched memory costs nothing
        np.empty(pair, np.int32),
        *np.empty((4, longest + 1), np.int32),
        *np.empty((2, pair), np.int32),
        np.empty(pair, np.uint16),
        *np.empty((7, pair), np.int32),
        np.empty(pair, np.uint64),
        np.empty(pair, np.int32),
        np.zeros(cells, np.int32),
    ]
    return Numbers(*arrays)


@inlined
def number(a, ends_a, b, ends_b, s):
    """Fills s for one pair of code points. ends_a, ends_b: as in udfs.text.code_points.Words.

    Returns the numbers of letters in a and b and of distinct letters, and the same for words.
    """
    s.of_a[: len(a) + len(b)] = 0
    s.of_b[: len(a) + len(b)] = 0
    n, known = _letters(a, s, s.before_a, s.marks_a, 0, 0, s.of_a)
    end, known = _letters(b, s, s.before_b, s.marks_b, n, known, s.of_b)
    for k in range(known):
        s.ids[s.codes[k]] = 0

    s.words_of_a[: len(ends_a) + len(ends_b)] = 0
    s.words_of_b[: len(ends_a) + len(ends_b)] = 0
    count_a, known_words = _words(a, ends_a, s, s.before_a, 0, 0, 0, s.words_of_a)
    count, known_words = _words(b, ends_b, s, s.before_b, n, count_a, known_words, s.words_of_b)
    s.begins[count] = end
    for k in range(known_words):
        s.cells[s.slots[k]] = 0
    return n, end - n, known, count_a, count - count_a, known_words


# The processor cannot predict whether a letter or a word is new, so the code below avoids the
# branch and stores the same either way.


@inner
def _letters(text, s, before, marks, count, known, here):
    """Appends a text's letters at letters[count:]; returns the new count and the ids given."""
    first = count
    for k in range(len(text)):
        before[k] = count - first
        code = min(np.int64(text[k]), len(s.classes) - 1)
        kind = s.classes[code]
        if kind & LETTER:
            letter = np.int64(s.ids[code])
            fresh = letter == 0
            letter = known if fresh else letter - 1
            known += fresh
            s.ids[code] = letter + 1
            s.codes[letter] = code
            s.kinds[letter] = kind
            here[letter] += 1
            s.letters[count] = letter
            count += 1
        else:
            marks[k - (count - first)] = k
    before[len(text)] = count - first
    return count, known


@inner
def _words(text, ends, s, before, first_letter, count, known, here):
    """Appends a text's words at words[count:]; returns the new count and the ids given."""
    mask = len(s.cells) - 1
    begin = np.int64(0)
    for k in range(len(ends)):
        end = np.int64(ends[k])
        if before[begin] < before[end]:
            key = word_key(text, begin, end)
            slot = np.int64((key * MULTIPLIER) >> _HIGH) & mask
            word = np.int64(s.cells[slot])
            while (word != 0) & (s.keys[word] != key):
                slot = (slot + 1) & mask
                word = np.int64(s.cells[slot])
            fresh = word == 0
            word = known if fresh else word - 1
            known += fresh
            s.cells[slot] = word + 1
            s.keys[word + 1] = key
            s.slots[word] = slot
            s.begins[count] = first_letter + before[begin]
            s.firsts[word] = s.begins[count]  # any occurrence will do
            s.lasts[word] = first_letter + before[end] - 1
            here[word] += 1
            s.words[count] = word
            count += 1
        begin = end
    return count, known
