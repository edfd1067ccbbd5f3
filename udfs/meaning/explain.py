"""Explains the judgements of a pair in sentences for people.

Each reason begins with its judgement and quotes the texts as they were written. The sentences are
in reasons.ini, in English and Chinese.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from functools import cache, cached_property, partial
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaixie.udfs.meaning import facts, language_model, vectors
from gaixie.udfs.meaning.extract import COUNTED, Resources, count
from gaixie.udfs.text import numerals
from gaixie.udfs.text.code_points import from_strings, word_ends
from gaixie.udfs.text.normalise import is_han, normalise, written_places
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter

LOW = {"structure": 0.5, "synonyms": 0.5, "meaning": 0.8, "fluency": 0.8}
"""A judgement below its value here gets a reason."""
ODD_SPOTS, WORST = 2, 2
"""The most odd spots to name, and the most words without a counterpart on each side."""
NAMED = {"number": "number", "negation": "negation"} | dict.fromkeys(
    ("latin", "name", "foreign"), "name"
)
"""The kinds of facts that reasons name, and as what. Good paraphrases change the others too."""
SHARED = [COUNTED.index(name) for name in ("words_kept", "words_moved")]
CONTENT = [vectors.NAMES.index(name) for name in ("source_kept", "paraphrase_kept")]

Why = Callable[[str, str, dict[str, Any]], list[str]]
"""Maps (source, paraphrase, row) to the reasons for the pair's low judgements."""


def explainer(signature: str, segmenter: str = "jieba") -> Why:
    """Returns a function that explains the pairs of a run; for a tier that cannot, no reasons."""
    if not re.search(r"\|tier:(core|full)\b", signature):
        return lambda source, paraphrase, row: []
    cut, resources = load_segmenter(segmenter), Resources.load()
    return lambda source, paraphrase, row: explain(source, paraphrase, cut, resources, row)


def explain(
    source: str,
    paraphrase: str,
    segmenter: Segmenter,
    resources: Resources,
    judgements: Mapping[str, float] | None = None,
    language: str = "en",
) -> list[str]:
    """Returns the reasons of one pair; see explain_pairs."""
    return explain_pairs([(source, paraphrase)], segmenter, resources, [judgements], language)[0]


def explain_pairs(
    pairs: Sequence[tuple[str, str]],
    segmenter: Segmenter,
    resources: Resources,
    judgements: Sequence[Mapping[str, float] | None],
    language: str = "en",
) -> list[list[str]]:
    """Returns, for each pair, a sentence for each thing that lowers one of its judgements.

    judgements: the four of each pair, in [0, 1]. Each one below LOW gets at least one reason; None
    means that all four are low. language: ``en`` or ``zh``; any other raises ValueError.
    """
    say = _sentences(language)
    read = zip(_read(pairs, segmenter, resources), judgements, strict=True)
    return [_reasons(pair, judged, resources, say) for pair, judged in read]


class Pair(NamedTuple):
    """A pair and the results of the kernels for it."""

    a: Sentence
    b: Sentence
    counts: np.ndarray
    """its row of extract.count."""
    content: float
    """The share of the content with a counterpart."""
    losses: tuple[np.ndarray, np.ndarray]
    """Losses of each side; see vectors.features."""


class Sentence:
    """A sentence as written, and as the metric reads it."""

    def __init__(self, written: str, words: Sequence[str]):
        """Takes a sentence as written, and the words of its normalised text."""
        self.written, self.text, self.words = written, "".join(words), words
        self.spans = [*pairwise([0, *accumulate(map(len, words))])]
        """The span of each word in the text."""

    @cached_property
    def _places(self) -> list[int] | None:
        """Returns where each character of the text begins in the written form, and its end."""
        places = written_places(self.written)
        return places and [*places, len(self.written)]

    def quote(self, start: int, end: int) -> str:
        """Returns the written form of text[start:end]."""
        places = self._places
        if not places:
            return self.text[start:end]
        # Several characters may come from a single one: ㍿ is 株式会社.
        last = places[bisect_right(places, places[end - 1])]
        return self.written[places[start] : last].strip()

    def whole_words(self, start: int, end: int) -> tuple[int, int]:
        """Returns the span of the words that text[start:end] touches."""
        touched = [span for span in self.spans if span[0] < end and start < span[1]]
        return touched[0][0], touched[-1][1]


def _read(
    pairs: Sequence[tuple[str, str]], segmenter: Segmenter, resources: Resources
) -> Iterator[Pair]:
    """Reads all pairs at once, because calling a kernel costs more than a pair."""
    written = [text for pair in pairs for text in pair]
    words = segmenter.cut([normalise(text) for text in written])
    sentences = [*map(Sentence, written, words)]
    sides = sentences[::2], sentences[1::2]
    a, b = (from_strings([sentence.text for sentence in side]) for side in sides)
    words_a, words_b = (word_ends([sentence.words for sentence in side]) for side in sides)
    columns = a, b, words_a, words_b
    losses = np.zeros(len(a.values), np.float32), np.zeros(len(b.values), np.float32)
    rows = vectors.features(*columns, resources.vectors, losses)
    by_pair = [np.split(losses[k], text.offsets[1:-1]) for k, text in enumerate((a, b))]
    content = rows[:, CONTENT].min(axis=1)
    return map(Pair, *sides, count(*columns), content, zip(*by_pair, strict=True))


def _reasons(
    pair: Pair,
    judgements: Mapping[str, float] | None,
    resources: Resources,
    say: Mapping[str, str],
) -> list[str]:
    for side, sentence in (("source", pair.a), ("paraphrase", pair.b)):
        if not any(is_han(ord(character)) for character in sentence.text):
            return [say[f"no_han_{side}"]]
    kept, moved = (float(pair.counts[place]) for place in SHARED)
    little = "little_shared" if kept < 0.2 else ""
    reasons: list[str] = []
    for name, least in LOW.items():
        if judgements is not None and not judgements[name] < least:
            continue
        if name == "structure":
            found = [say[little or "order"].format(share=f"{1 - moved:.0%}")]
        elif name == "synonyms":
            found = [say[little or "kept"].format(share=f"{kept:.0%}")]
        elif name == "meaning":
            found = [*_changes(pair, say)] or [*_words(pair, say)]
            found = found or [say["content"].format(share=f"{pair.content:.0%}")]
        else:
            found = [*islice(_odd_spots(pair, resources, say), ODD_SPOTS)] or [say["stiff"]]
        line = partial(say["reason"].format, judgement=say[name])
        reasons += [line(reason=reason) for reason in dict.fromkeys(found)]
    return reasons


@cache
def _sentences(language: str) -> Mapping[str, str]:
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.read(Path(__file__).with_name("reasons.ini"), "utf-8")
    if language not in parser.sections():
        raise ValueError(f"language {language!r}: expected {' or '.join(parser.sections())}")
    return dict(parser[language])


def _changes(pair: Pair, say: Mapping[str, str]) -> Iterator[str]:
    """Yields reasons for facts that only one of the sentences has."""
    found = [facts.find(side.text, side.words) for side in (pair.a, pair.b)]
    lost, new = facts.missing(*found), facts.missing(*found[::-1])
    for fact, other in [*facts.clashes(*found), *facts.turned(lost, new)]:
        written = pair.a.quote(fact.start, fact.end), pair.b.quote(other.start, other.end)
        yield say["opposite"].format(text=written[0], other=written[1])
    for sentence, verb, missing in ((pair.a, "lost", lost), (pair.b, "new", new)):
        for fact in missing:
            if kind := NAMED.get(fact.kind):
                span = sentence.whole_words(fact.start, fact.end)
                yield say[f"{kind}_{verb}"].format(text=sentence.quote(*span))


def _words(pair: Pair, say: Mapping[str, str]) -> Iterator[str]:
    """Yields reasons for the worst words without a counterpart."""
    sides = zip((pair.a, pair.b), ("lost", "new"), pair.losses, strict=True)
    for sentence, verb, losses in sides:
        numbers = numerals.find(sentence.text, sentence.words)  # 礼拜三 is 周三
        for place in np.argsort(-losses, kind="stable")[:WORST]:
            start, end = sentence.whole_words(place, place + 1)
            # The segmenter often cuts unknown text into pieces that are not words.
            if sentence.text[start:end] not in facts.known_words():
                continue
            if any(number.start < end and start < number.end for number in numbers):
                continue
            if losses[place] > 0:
                yield say[f"word_{verb}"].format(text=sentence.quote(start, end))


def _odd_spots(pair: Pair, resources: Resources, say: Mapping[str, str]) -> Iterator[str]:
    """Yields reasons for odd spots of the paraphrase; what the source says too is not its fault."""
    b = pair.b
    for spot in language_model.odd_spots(b.text, resources.language_model, len(b.text)):
        start, end = b.whole_words(spot.start, spot.end)
        letters = [place for place in range(start, end) if b.text[place].isalnum()]
        if letters and b.text[letters[0] : letters[-1] + 1] not in pair.a.text:
            yield say["odd"].format(text=b.quote(letters[0], letters[-1] + 1))
