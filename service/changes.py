"""Shows people what changed between a sentence and its paraphrase: moved, replaced, added, lost.

A longest common subsequence of words is ``same``. Other words that both sentences have were
``moved``. Of the rest, words with nearly the same meaning by their vectors, or one number written
in two ways, were ``replaced``, matched nearest first; so were as many words, few, between the same
neighbours. All others are ``lost`` or ``added``.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Literal

import numpy as np
from rapidfuzz.distance import LCSseq
from typing_extensions import TypedDict

from gaixie.udfs.meaning.core_features import Resources
from gaixie.udfs.meaning.vectors import cosines
from gaixie.udfs.text import numerals
from gaixie.udfs.text.normalise import normalise, written_places
from gaixie.udfs.text.numerals import Number
from gaixie.udfs.text.segmenters import Segmenter

Kind = Literal["same", "moved", "replaced", "added", "lost"]

NEAR = 0.6
"""Cosine above which one word counts as replacing another, as in the metric's features."""
FEW, ALIKE = 3, 0.15
"""At most so many words count as replaced by as many in the same place, if they are a little alike:
the least cosine of each."""
LIGHT = frozenset("的了着过地得之在是和与及或而且并也都就还又把被将对为以于从向到等这那其")
"""Function words, which move with everything, so they never count as moved or replaced."""


class Segment(TypedDict):
    """A piece of a sentence."""

    text: str
    kind: Kind
    partner: int | None
    """Number of the segment on the other side that it was or became; null where there is none."""


class Changes(TypedDict):
    """Both sentences, as they were written, in segments."""

    source: list[Segment]
    paraphrase: list[Segment]


def changes(source: str, paraphrase: str, segmenter: Segmenter) -> Changes:
    """Returns what changed. The texts of each side, joined, are the sentence as it was written."""
    a, b = segmenter.cut([normalise(source), normalise(paraphrase)])
    (a, values_a), (b, values_b) = _with_numbers(_cut_like(a, b)), _with_numbers(_cut_like(b, a))
    kinds, partners = _matched(a, b, values_a, values_b)
    back = {j: i for i, j in partners.items()}
    kinds_back: dict[int, Kind] = {j: kinds[i] for j, i in back.items()}
    segments_a, numbers_a = _segments(a, kinds, partners, "lost")
    segments_b, numbers_b = _segments(b, kinds_back, back, "added")
    for segments, numbers in ((segments_a, numbers_b), (segments_b, numbers_a)):
        for segment in segments:
            if segment["partner"] is not None:
                segment["partner"] = numbers[segment["partner"]]
    _as_written(segments_a, source)
    _as_written(segments_b, paraphrase)
    return {"source": segments_a, "paraphrase": segments_b}


def _cut_like(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """Cuts a word in two where the other sentence has one half as a word: 出席会议 beside 会议."""
    parts = {other for other in others if len(other) > 1}
    found: list[str] = []
    for word in words:
        ends = range(2, 2 if word in parts else len(word) - 1)
        cut = next((k for k in ends if word[:k] in parts or word[k:] in parts), len(word))
        found += filter(None, [word[:cut], word[cut:]])
    return found


def _as_written(segments: list[Segment], written: str) -> None:
    """Replaces normalised characters by the written ones, if they correspond one to one."""
    places = written_places(written)
    ends = [*accumulate(len(segment["text"]) for segment in segments)]
    if not segments or places is None or ends[-1] != len(places):
        return
    bounds = [0, *(places[end] for end in ends[:-1]), len(written)]
    for segment, (start, end) in zip(segments, pairwise(bounds), strict=True):
        segment["text"] = written[start:end]


def _with_numbers(words: Sequence[str]) -> tuple[list[str], dict[int, Number | None]]:
    """Returns (words, with each number joined to one word; the numbers by index)."""
    text, starts = "".join(words), [0, *accumulate(map(len, words))]
    found = numerals.find(text, words)
    inside = {k for number in found for k in range(number.start + 1, number.end)}
    edges = [edge for edge in starts if edge not in inside]
    cut = [text[start:end] for start, end in pairwise(edges)]
    values: dict[int, Number | None] = {}
    for number in found:
        k = bisect_right(edges, number.start) - 1
        values[k] = None if k in values else number  # two in one word: none
    return cut, values


def _matched(
    a: Sequence[str],
    b: Sequence[str],
    values_a: Mapping[int, Number | None],
    values_b: Mapping[int, Number | None],
) -> tuple[dict[int, Kind], dict[int, int]]:
    """Returns the kind and the paraphrase's word for each word of the source that has one."""
    kinds: dict[int, Kind] = {}
    partners: dict[int, int] = {}

    def match(kind: Kind, i: int, j: int) -> None:
        kinds[i], partners[i] = kind, j

    for block in LCSseq.opcodes(list(a), list(b)):
        if block.tag == "equal":
            for k in range(block.src_end - block.src_start):
                match("same", block.src_start + k, block.dest_start + k)
    _drop_strays(a, kinds, partners)
    places = defaultdict(list)
    for j in _left(b, partners.values()):
        places[b[j]].append(j)
    for i in _left(a, partners):
        if places[a[i]]:
            match("moved", i, places[a[i]].pop(0))
    left_a, left_b = _left(a, partners), _left(b, partners.values())
    if left_a and left_b:
        near = cosines([a[i] for i in left_a], [b[j] for j in left_b], Resources.load().vectors)
        for row, i in enumerate(left_a):
            for column, j in enumerate(left_b):
                if i in values_a and j in values_b:  # numbers are equal or not, never near
                    mine, theirs = values_a[i], values_b[j]
                    near[row, column] = float(bool(mine and theirs and mine.same(theirs)))
        for row, column in sorted(np.argwhere(near > NEAR).tolist(), key=lambda at: -near[*at]):
            i, j = left_a[row], left_b[column]
            if i not in partners and j not in partners.values():
                match("replaced", i, j)
    anchors = [(i, j) for i, j in sorted(partners.items()) if kinds[i] == "same"]
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *anchors, (len(a), len(b))]):
        gap_a = [k for k in _left(a, partners) if i < k < next_i]
        gap_b = [k for k in _left(b, partners.values()) if j < k < next_j]
        numbers = {*gap_a} & {*values_a} or {*gap_b} & {*values_b}
        if 0 < len(gap_a) == len(gap_b) <= FEW and not numbers:
            near = cosines([a[k] for k in gap_a], [b[k] for k in gap_b], Resources.load().vectors)
            if near.diagonal().min() > ALIKE:
                for one, other in zip(gap_a, gap_b, strict=True):
                    match("replaced", one, other)
    return kinds, partners


def _drop_strays(a: Sequence[str], kinds: dict[int, Kind], partners: dict[int, int]) -> None:
    """Unmatches runs of matched words that hold function words only."""
    places = enumerate(sorted(partners.items()))
    for _, run in groupby(places, lambda at: (at[1][0] - at[0], at[1][1] - at[0])):
        words = [i for _, (i, _) in run]
        if all(a[i] in LIGHT for i in words):
            for i in words:
                del kinds[i], partners[i]


def _left(words: Sequence[str], taken: Iterable[int]) -> list[int]:
    """Returns the indices of content words that have no partner yet."""
    known = {*taken}
    return [
        k
        for k, word in enumerate(words)
        if k not in known and word not in LIGHT and any(character.isalnum() for character in word)
    ]


def _segments(
    words: Sequence[str], kinds: Mapping[int, Kind], partners: Mapping[int, int], other: Kind
) -> tuple[list[Segment], dict[int, int]]:
    """Joins the words of one kind whose partners are consecutive, too.

    other: the kind of a word without any. Returns the segments, whose partner is still the partner
    of the first word; and the number of the segment that begins with each word.
    """
    segments: list[Segment] = []
    numbers: dict[int, int] = {}

    def run_of(k: int) -> tuple[Kind, int | None]:
        return kinds.get(k, other), partners[k] - k if k in partners else None

    for (kind, _), run in groupby(range(len(words)), run_of):
        places = [*run]
        numbers[places[0]] = len(segments)
        text, partner = "".join(words[k] for k in places), partners.get(places[0])
        segments.append({"text": text, "kind": kind, "partner": partner})
    return segments, numbers
