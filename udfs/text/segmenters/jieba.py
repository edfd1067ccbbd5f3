"""jieba, the default segmenter: a dictionary, and a hidden Markov model for unknown words.

Source: the algorithm of jieba (Sun Junyi, https://github.com/fxsjy/jieba) as implemented by
jieba-rs 0.11, which the package rjieba embeds. Two back-ends make the same cuts:

* ``cut``: rjieba itself, the reference.
* ``word_ends``: numba kernels over code points, several times as fast. A row goes through

  1. blocks: runs of Han characters, ASCII letters and digits, and ``+#&._%-``. Any other character
     is a word of its own (``\\r\\n`` is one word);
  2. the route of greatest probability through each block, over the dictionary words in it;
  3. runs of single characters on that route: Han characters are cut again, by the most probable
     state sequence of the hidden Markov model (Viterbi); letters and digits joined by single
     ``.``, ``_`` or ``-`` make one word.

If two routes differ only by rounding, the last bit decides, so sums follow jieba-rs's order.
"""

import importlib.metadata
from collections.abc import Sequence

import numpy as np
from numba import njit

from gaixie.udfs.text.code_points import CodePoints, Words
from gaixie.udfs.text.compiled import read_only
from gaixie.udfs.text.normalise import is_latin
from gaixie.udfs.text.segmenters import jieba_tables

# Han for the hidden Markov model: fewer characters than for blocks.
FIRST_HAN, LAST_HAN = 0x4E00, 0x9FD5
CARRIAGE_RETURN, LINE_FEED = 0x0D, 0x0A
HYPHEN, FULL_STOP, UNDERSCORE, PERCENT = ord("-"), ord("."), ord("_"), ord("%")


class JiebaSegmenter:
    """A Segmenter that cuts sentences as rjieba does. It has no state: the tables are shared."""

    name = "jieba"

    def __init__(self) -> None:
        self.version = f"rjieba-{importlib.metadata.version('rjieba')}"

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Cuts each text by rjieba. Raises UnicodeEncodeError for lone surrogates."""
        import rjieba  # here: it loads its own dictionary, which ``word_ends`` does not need

        return [rjieba.cut(text) for text in texts]

    def tag(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Returns (word, tag) for each text: the words of :meth:`cut`, the dictionary's tags.

        Words that the dictionary does not have are ``x``, ``m`` (digits) or ``eng``.
        """
        import rjieba

        return [rjieba.tag(text) for text in texts]

    def word_ends(self, text: CodePoints) -> Words:
        """Makes the same cuts in a column of code points. Accepts any uint32 value.

        Raises ModuleNotFoundError if the package ``jieba``, whose dictionary it reads, is missing.
        """
        ends = np.empty(len(text.values), np.int32)
        offsets = np.zeros(len(text.offsets), np.int64)
        texts = read_only(text.values, np.uint32), read_only(text.offsets, np.int64)
        _cut_rows(*texts, jieba_tables.load(), ends, offsets)
        return Words(ends[: offsets[-1]], offsets)


@njit(cache=True, nogil=True)
def _cut_rows(values, offsets, tables, ends, word_offsets):
    """Fills ends and word_offsets (see Words); ends has room for a word per character."""
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    ids = np.empty(longest + 1, np.uint16)
    score = np.empty(longest + 1, np.float64)
    step = np.empty(longest + 1, np.int32)
    states = np.empty(longest + 1, np.uint8)
    count = 0
    for row in range(len(offsets) - 1):
        chars = values[offsets[row] : offsets[row + 1]]
        _route(chars, tables, ids, score, step)
        count = _emit(chars, tables, ids, step, states, ends, count)
        word_offsets[row + 1] = count


@njit(cache=True, nogil=True)
def _route(chars, tables, ids, score, step):
    """Finds the most probable words of each block, from its end to its start.

    Sets for each character of a row: its id; score, the log probability of the best route from it
    to the end of its block; and step, the end of that route's first word, or 0 outside blocks.
    """
    characters, trie, weights = tables.characters, tables.trie, tables.weights
    unknown = weights[len(weights) - 1]
    n = len(chars)
    ids[n] = 0  # no node has a child 0, so every walk through the trie stops here at the latest
    score[n] = 0.0
    for i in range(n - 1, -1, -1):
        char = chars[i]
        row = characters[char] if char < len(characters) else 0
        ids[i] = row & jieba_tables.ID_MASK
        if not row & jieba_tables.IN_BLOCK:
            score[i] = 0.0
            step[i] = 0
            continue
        best, end = -np.inf, 0
        base, j = 0, i
        while True:
            cell = trie[base + ids[j]]
            if cell >> jieba_tables.PARENT_SHIFT != base:
                break
            j += 1
            base = (cell >> jieba_tables.BASE_SHIFT) & jieba_tables.BASE_MASK
            total = weights[cell & jieba_tables.WEIGHT_MASK] + score[j]
            if total >= best:  # of equals, the longest
                best, end = total, j
        if best == -np.inf:
            best, end = unknown + score[i + 1], i + 1
        score[i] = best
        step[i] = end


@njit(cache=True, nogil=True)
def _emit(chars, tables, ids, step, states, ends, count):
    """Appends the ends of one row's words at ends[count:]; returns the new count."""
    n = len(chars)
    i = 0
    while i < n:
        start = i
        if step[i] == 0:
            i += 1
            if chars[start] == CARRIAGE_RETURN and i < n and chars[i] == LINE_FEED:
                i += 1
        elif step[i] > i + 1:
            i = step[i]
        else:
            i += 1
            while i < n and step[i] == i + 1:
                i += 1
            if i > start + 1:
                count = _emit_singles(chars, tables, ids, states, start, i, ends, count)
                continue
        ends[count] = i
        count += 1
    return count


@njit(cache=True, nogil=True)
def _emit_singles(chars, tables, ids, states, start, stop, ends, count):
    """Emits the words of a run of at least two single characters that the route left."""
    if _is_word(tables.trie, ids, start, stop):  # a word less probable than its characters
        for i in range(start, stop):
            ends[count] = i + 1
            count += 1
        return count
    i = start
    while i < stop:
        first = i
        is_han = FIRST_HAN <= chars[i] <= LAST_HAN
        while i < stop and (FIRST_HAN <= chars[i] <= LAST_HAN) == is_han:
            i += 1
        if is_han:
            count = _emit_by_states(tables, ids, states, first, i, ends, count)
        else:
            count = _emit_latin(chars, first, i, ends, count)
    return count


@njit(cache=True, nogil=True)
def _is_word(trie, ids, start, stop):
    base = cell = 0
    for i in range(start, stop):
        cell = trie[base + ids[i]]
        if cell >> jieba_tables.PARENT_SHIFT != base:
            return False
        base = (cell >> jieba_tables.BASE_SHIFT) & jieba_tables.BASE_MASK
    return cell & jieba_tables.WEIGHT_MASK != 0


@njit(cache=True, nogil=True)
def _emit_latin(chars, start, stop, ends, count):
    """Emits words such as FZ-35, 1.2.3 and 50%; whatever lies between two of them is one word."""
    i = start
    while i < stop:
        first = i
        while i < stop and not is_latin(chars[i]):
            i += 1
        if i > first:
            ends[count] = i
            count += 1
            continue
        while i < stop and is_latin(chars[i]):
            i += 1
            if i + 1 < stop and is_latin(chars[i + 1]):
                char = chars[i]
                if char == HYPHEN or char == FULL_STOP or char == UNDERSCORE:
                    i += 1
        if i < stop and chars[i] == PERCENT:
            i += 1
        ends[count] = i
        count += 1
    return count


@njit(cache=True, nogil=True)
def _emit_by_states(tables, ids, states, start, stop, ends, count):
    """Cuts a run of Han characters into words by the Viterbi algorithm.

    A word is begin, middle…, end or a single character, so each state has two possible
    predecessors. If both are equally probable, jieba-rs takes the later in the order begin, end,
    middle, single, called ``late`` below.
    """
    emissions, start_of, to = tables.emissions, tables.start, tables.transitions
    char = ids[start]
    begin = start_of[0] + emissions[char, 0]
    end = start_of[1] + emissions[char, 1]
    middle = start_of[2] + emissions[char, 2]
    single = start_of[3] + emissions[char, 3]
    for i in range(start + 1, stop):
        char = ids[i]
        begin_early = end + to[1, 0] + emissions[char, 0]
        begin_late = single + to[3, 0] + emissions[char, 0]
        end_early = begin + to[0, 1] + emissions[char, 1]
        end_late = middle + to[2, 1] + emissions[char, 1]
        middle_early = begin + to[0, 2] + emissions[char, 2]
        middle_late = middle + to[2, 2] + emissions[char, 2]
        single_early = end + to[1, 3] + emissions[char, 3]
        single_late = single + to[3, 3] + emissions[char, 3]
        # A bit for each state of character i: whether its best predecessor is the late one.
        states[i] = (
            (begin_late >= begin_early)
            | (end_late >= end_early) << 1
            | (middle_late >= middle_early) << 2
            | (single_late >= single_early) << 3
        )
        begin = max(begin_early, begin_late)
        end = max(end_early, end_late)
        middle = max(middle_early, middle_late)
        single = max(single_early, single_late)

    # Backwards: states[i] becomes 1 if a word ends at character i, else 0. Arithmetic replaces
    # branches, which the processor would mispredict: end and single have odd numbers, and so have
    # the states before begin (0) and single (3).
    state = 3 if single >= end else 1
    for i in range(stop - 1, start, -1):
        late = states[i] >> state & 1
        states[i] = state & 1
        state = ((state == 0) | (state == 3)) + 2 * late
    states[start] = state & 1
    for i in range(start, stop):
        ends[count] = i + 1
        count += states[i]
    return count
