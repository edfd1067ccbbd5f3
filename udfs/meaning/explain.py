"""Explains the judgements of a pair in sentences for people.

Each reason begins with its judgement and quotes the texts as they were written. The sentences are
in reasons.ini, in English and Chinese.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from functools import cache, cached_property
from itertools import accumulate, combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaixie.udfs.meaning import counted, facts, language_model, vectors
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.meaning.fact_tables import known_words
from gaixie.udfs.text import numerals
from gaixie.udfs.text.code_points import from_strings, word_ends
from gaixie.udfs.text.normalise import is_han, normalise, written_places
from gaixie.udfs.text.numerals import MEASURES
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter

LOW = {"structure": 0.5, "synonyms": 0.5, "meaning": 0.8, "fluency": 0.8}
"""A judgement below its value here gets a reason."""
ODD_SPOTS = 2
"""The most odd spots to name."""
MOVERS = frozenset("把被将由让")
"""Words that move others and keep the meaning: 甲打乙 is 乙被甲打."""
WORST = 2
"""The most words without a counterpart to name on each side."""
SAME_CONTENT = 0.8
"""With this share of the content or more, what is wrong is the order of words."""
SOFT = ("quantity", "modality", "link", "question", "pronoun", "time")
"""Kinds of facts that good paraphrases change too: features count them, no reason names them."""
SHARED = [counted.NAMES.index(name) for name in ("words_kept", "words_moved")]
NAMED = [
    counted.NAMES.index(name)
    for name in (
        *("numbers_lost", "numbers_new", "latin_lost", "latin_new", "names_lost", "names_new"),
        *("foreign_lost", "foreign_new", "negation_added", "opposites"),
    )
]
"""Columns of counted.py that count the facts that reasons name."""
CONTENT = [vectors.NAMES.index(name) for name in ("source_kept", "paraphrase_kept")]


class Pair(NamedTuple):
    """A pair and the results of the kernels for it."""

    a: Sentence
    b: Sentence
    counts: np.ndarray
    """Its row of counted.features."""
    content: float
    """The share of the content with a counterpart."""
    losses: tuple[np.ndarray, np.ndarray]
    """Losses of each side; see vectors.losses."""


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
    _sentences(language)  # raises before any work
    read = zip(_read(pairs, segmenter, resources), judgements, strict=True)
    return [_reasons(pair, judged, resources, language) for pair, judged in read]


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
    counts = counted.features(*columns)
    rows, losses = vectors.losses(*columns, resources.vectors)
    content = rows[:, CONTENT].min(axis=1)
    by_pair = [np.split(losses[k], text.offsets[1:-1]) for k, text in enumerate((a, b))]
    return map(Pair, *sides, counts, content, zip(*by_pair, strict=True))


def _reasons(
    pair: Pair,
    judgements: Mapping[str, float] | None,
    resources: Resources,
    language: str,
) -> list[str]:
    say, colon = _sentences(language), "：" if language == "zh" else ": "
    for side, sentence in (("source", pair.a), ("paraphrase", pair.b)):
        if not any(is_han(ord(character)) for character in sentence.text):
            return [say[f"no_han_{side}"]]
    kept, moved = (float(pair.counts[place]) for place in SHARED)
    reasons: list[str] = []
    for name, least in LOW.items():
        if judgements is not None and not judgements[name] < least:
            continue
        if name in ("structure", "synonyms"):
            key, share = ("order", 1 - moved) if name == "structure" else ("kept", kept)
            found = [say["little_shared" if kept < 0.2 else key].format(share=f"{share:.0%}")]
        elif name == "meaning":
            content = say["content"].format(share=f"{pair.content:.0%}")
            found = [*_changes(pair, say)] or [content]
        else:
            found = [*_odd_spots(pair, resources, say)][:ODD_SPOTS] or [say["stiff"]]
        reasons += [f"{say[name]}{colon}{reason}" for reason in dict.fromkeys(found)]
    return reasons


def describe(score: float, language: str = "en") -> str:
    """Describes a score in words: ``about 2.3 of 5: a light rewording``.

    The levels are those by which raters judged pairs overall. Raises ValueError for another
    language.
    """
    say, rating = _sentences(language), 5 * score
    level = bisect_right((0.5, 1.5, 2.5, 3.75), rating)
    return say["score"].format(rating=f"{rating:.1f}", level=say[f"level_{level}"])


CLAUSE_END = re.compile("[,。;:!?…]")
BEFORE_NUMBERS = re.compile("(?:第|周|星期|礼拜)?$")


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

    def with_measure(self, start: int, end: int) -> tuple[int, int]:
        """Extends a number's span by its ordinal prefix and the measure behind: 第二天, 3000元."""
        start -= len(BEFORE_NUMBERS.findall(self.text[:start])[0])
        for first, last in self.spans:
            if first >= end and set(self.text[first:last]) <= set(MEASURES):
                return start, last
            if last > end:
                rest = self.text[max(first, end) : last]
                return start, last if set(rest) <= set(MEASURES) else end
        return start, end


@cache
def _sentences(language: str) -> Mapping[str, str]:
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.read(Path(__file__).with_name("reasons.ini"), "utf-8")
    if language not in parser.sections():
        raise ValueError(f"language {language!r}: expected {' or '.join(parser.sections())}")
    return dict(parser[language])


def _changes(pair: Pair, say: Mapping[str, str]) -> Iterator[str]:
    """Yields reasons for facts and words that only one of the sentences has."""
    lost, new, became = _missing_facts(pair)
    of_new = {fact.item: fact for fact in new if fact.kind == "opposite"}
    for fact in lost:
        other = of_new.get(facts.opposite(fact.item)) if fact.kind == "opposite" else None
        if other:
            became.append((fact, other))
    for fact, other in became:
        written = pair.a.quote(fact.start, fact.end), pair.b.quote(other.start, other.end)
        yield say["opposite"].format(text=written[0], other=written[1])
    is_named = bool(became)
    sides = zip((pair.a, pair.b), ("lost", "new"), (lost, new), strict=True)
    for sentence, verb, missing in sides:
        named: list[tuple[int, int]] = []
        for fact in missing:
            if fact.kind in (*SOFT, "opposite", "exclusive"):
                continue
            kind = fact.kind if fact.kind in ("number", "negation") else "name"
            widen = sentence.with_measure if kind == "number" else sentence.whole_words
            span = widen(fact.start, fact.end)
            if not any(start <= span[0] and span[1] <= end for start, end in named):
                named.append(span)
                yield say[f"{kind}_{verb}"].format(text=sentence.quote(*span))
        is_named |= bool(named)
    exchanged = _exchanged(pair.a, pair.b) if pair.content >= SAME_CONTENT else None
    if exchanged and not is_named:
        yield say["exchanged"].format(text=exchanged[0], other=exchanged[1])
    elif not is_named:
        yield from _words(pair, say)


def _missing_facts(
    pair: Pair,
) -> tuple[list[facts.Fact], list[facts.Fact], list[tuple[facts.Fact, facts.Fact]]]:
    """Returns the facts that the paraphrase lacks, those that the source lacks, and the clashes.

    All are empty if the kernel counted no fact that reasons name.
    """
    if not pair.counts[NAMED].any():
        return [], [], []
    found = [facts.find(side.text, side.words) for side in (pair.a, pair.b)]
    return facts.missing(*found), facts.missing(*found[::-1]), facts.clashes(*found)


def _words(pair: Pair, say: Mapping[str, str]) -> Iterator[str]:
    """Yields reasons for the worst words without a counterpart."""
    sides = zip((pair.a, pair.b), ("lost", "new"), pair.losses, strict=True)
    for sentence, verb, losses in sides:
        numbers = numerals.find(sentence.text, sentence.words)  # 礼拜三 is 周三
        for place in np.argsort(-losses, kind="stable")[:WORST]:
            start, end = sentence.whole_words(place, place + 1)
            # The segmenter often cuts unknown text into pieces that are not words.
            if sentence.text[start:end] not in known_words():
                continue
            if any(number.start < end and start < number.end for number in numbers):
                continue
            if losses[place] > 0:
                yield say[f"word_{verb}"].format(text=sentence.quote(start, end))


def _exchanged(a: Sentence, b: Sentence) -> tuple[str, str] | None:
    """Returns the words farthest apart of those that changed places within a clause of both."""
    if MOVERS & ({*a.words} ^ {*b.words}):
        return None
    here, there = (
        {
            word: span
            for word, span in zip(side.words, side.spans, strict=True)
            if len(word) > 1 and side.words.count(word) == 1 and is_han(ord(word[0]))
        }
        for side in (a, b)
    )
    shared = [word for word in here if word in there]
    found = [
        (here[second][0] - here[first][0], first, second)
        for first, second in combinations(shared, 2)
        if there[second] < there[first]
        and not CLAUSE_END.search(a.text[here[first][0] : here[second][0]])
        and not CLAUSE_END.search(b.text[there[second][0] : there[first][0]])
    ]
    return max(found)[1:] if found else None


def _odd_spots(pair: Pair, resources: Resources, say: Mapping[str, str]) -> Iterator[str]:
    """Yields reasons for odd spots of the paraphrase; what the source says too is not its fault."""
    b = pair.b
    for spot in language_model.odd_spots(b.text, resources.language_model, len(b.text)):
        start, end = b.whole_words(spot.start, spot.end)
        letters = [place for place in range(start, end) if b.text[place].isalnum()]
        if letters and b.text[letters[0] : letters[-1] + 1] not in pair.a.text:
            yield say["odd"].format(text=b.quote(letters[0], letters[-1] + 1))
