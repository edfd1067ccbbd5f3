"""Says why a pair is judged as it is, in sentences for people.

Each reason begins with the judgement that it belongs to, and quotes the texts as they were written.
The sentences stand in reasons.ini, in English and Chinese.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from functools import cache, cached_property
from itertools import accumulate, pairwise
from pathlib import Path

from gaixie.udfs.meaning import counted, facts, language_model, vectors
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.meaning.fact_tables import known_words
from gaixie.udfs.text.code_points import from_strings, word_ends
from gaixie.udfs.text.normalise import is_han, normalise
from gaixie.udfs.text.numerals import MEASURES
from gaixie.udfs.text.segmenters import Segmenter

LOW = {"structure": 0.5, "synonyms": 0.5, "meaning": 0.8, "fluency": 0.8}
"""A judgement below its value here gets a reason."""
ODD_SPOTS = 2
"""How many odd spots are named at most."""
NUMERALS = frozenset("0123456789零〇一二两三四五六七八九十百千万亿第")
SOFT = ("quantity", "modality", "link", "question", "pronoun", "time")
"""Kinds of facts that good paraphrases change too: features count them, no reason names them."""


def explain(
    source: str,
    paraphrase: str,
    segmenter: Segmenter,
    resources: Resources,
    judgements: Mapping[str, float] | None = None,
    language: str = "en",
) -> list[str]:
    """Returns a sentence for each thing that pulls a judgement of the pair down.

    judgements: the four, in [0, 1]. Each below LOW has a reason at least; without judgements, all
    four have. language: ``en`` or ``zh``. Raises ValueError for another language.
    """
    say = _sentences(language)
    a, b = Sentence(source, segmenter), Sentence(paraphrase, segmenter)
    for side, sentence in (("source", a), ("paraphrase", b)):
        if not any(is_han(ord(character)) for character in sentence.text):
            return [say[f"no_han_{side}"]]
    texts = from_strings([a.text]), from_strings([b.text])
    row = counted.features(*texts, word_ends([a.words]), word_ends([b.words]))[0]
    kept, moved = (float(row[counted.NAMES.index(name)]) for name in ("words_kept", "words_moved"))
    reasons: list[str] = []
    for name, least in LOW.items():
        if judgements is not None and not judgements[name] < least:
            continue
        if name in ("structure", "synonyms"):
            key, share = ("order", 1 - moved) if name == "structure" else ("kept", kept)
            own = [say["little_shared" if kept < 0.2 else key].format(share=f"{share:.0%}")]
        elif name == "meaning":
            own = [*_changes(a, b, resources, say)] or [_content(a, b, resources, say)]
        else:
            own = [*_odd_spots(b, resources, say)] or [say["stiff"]]
        colon = "：" if language == "zh" else ": "
        reasons += [f"{say[name]}{colon}{reason}" for reason in dict.fromkeys(own)]
    return reasons


def describe(score: float, language: str = "en") -> str:
    """Returns what a score says: ``about 2.3 of 5: a light rewording``.

    The levels are those by which raters judged whole pairs. Raises ValueError for another language.
    """
    say, rating = _sentences(language), 5 * score
    level = bisect_right((0.5, 1.5, 2.5, 3.75), rating)
    return say["score"].format(rating=f"{rating:.1f}", level=say[f"level_{level}"])


def in_chinese(reason: str) -> str:
    """Returns a reason that explain gave in English, in Chinese; any other text as it is."""
    english, chinese = _sentences("en"), _sentences("zh")
    name, colon, said = reason.partition(": ")
    prefix = f"{chinese[name]}：" if colon and name in LOW else ""
    for key, form in english.items():
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(form))
        if match := re.fullmatch(pattern, said if prefix else reason):
            return prefix + chinese[key].format(**match.groupdict())
    return reason


class Sentence:
    """A sentence as it was written, and as the metric reads it."""

    def __init__(self, written: str, segmenter: Segmenter):
        self.written, self.text = written, normalise(written)
        self.words = segmenter.cut([self.text])[0]
        self.spans = [*pairwise([0, *accumulate(map(len, self.words))])]
        """Where the words lie in the text."""

    @cached_property
    def _read(self) -> list[int]:
        """How many characters of the text come from the first k that were written, for each k."""
        ends = range(len(self.written) + 1)
        return list(accumulate((len(normalise(self.written[:end])) for end in ends), max))

    def quote(self, start: int, end: int) -> str:
        """Returns what text[start:end] was written as."""
        first, last = bisect_right(self._read, start) - 1, bisect_left(self._read, end)
        return self.written[first:last].strip() or self.text[start:end]

    def whole_words(self, start: int, end: int) -> tuple[int, int]:
        """Returns the span of the words that text[start:end] touches."""
        touched = [span for span in self.spans if span[0] < end and start < span[1]]
        return touched[0][0], touched[-1][1]

    def with_measure(self, start: int, end: int) -> tuple[int, int]:
        """Returns a number's span with the measure behind it: 3000元."""
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
    return parser[language]


def _changes(
    a: Sentence, b: Sentence, resources: Resources, say: Mapping[str, str]
) -> Iterator[str]:
    """Facts and words that one of the sentences has and the other has not."""
    found = facts.find(a.text, a.words), facts.find(b.text, b.words)
    lost, new = facts.missing(*found), facts.missing(*found[::-1])
    of_new = {fact.item: fact for fact in new if fact.kind == "opposite"}
    for fact in lost:
        other = of_new.get(facts.opposite(fact.item)) if fact.kind == "opposite" else None
        if other:
            written = a.quote(fact.start, fact.end), b.quote(other.start, other.end)
            yield say["opposite"].format(text=written[0], other=written[1])
    sides = zip(
        (a, b),
        ("lost", "new"),
        (lost, new),
        vectors.unmatched(a.words, b.words, resources.vectors),
        strict=True,
    )
    for sentence, verb, own, words in sides:
        named: list[tuple[int, int]] = []
        for fact in own:
            if fact.kind in (*SOFT, "opposite"):
                continue
            kind = fact.kind if fact.kind in ("number", "negation") else "name"
            widen = sentence.with_measure if kind == "number" else sentence.whole_words
            span = widen(fact.start, fact.end)
            if not any(start <= span[0] and span[1] <= end for start, end in named):
                named.append(span)
                yield say[f"{kind}_{verb}"].format(text=sentence.quote(*span))
        for place in words:
            start, end = sentence.spans[place]
            # What the segmenter makes of what it does not know is often no word.
            if (word := sentence.words[place]) not in known_words() or _is_number(word):
                continue
            if not any(first < end and start < last for first, last in named):
                yield say[f"word_{verb}"].format(text=sentence.quote(start, end))


def _content(a: Sentence, b: Sentence, resources: Resources, say: Mapping[str, str]) -> str:
    texts = from_strings([a.text]), from_strings([b.text])
    words = word_ends([a.words]), word_ends([b.words])
    row = vectors.features(*texts, *words, resources.vectors)[0]
    places = [vectors.NAMES.index(f"{side}_kept") for side in ("source", "paraphrase")]
    return say["content"].format(share=f"{row[places].min():.0%}")


def _odd_spots(b: Sentence, resources: Resources, say: Mapping[str, str]) -> Iterator[str]:
    for spot in language_model.odd_spots(b.text, resources.language_model, ODD_SPOTS):
        start, end = b.whole_words(spot.start, spot.end)
        letters = [place for place in range(start, end) if b.text[place].isalnum()]
        if letters:
            yield say["odd"].format(text=b.quote(letters[0], letters[-1] + 1))


def _is_number(word: str) -> bool:
    """Whether a word is numerals alone, or several and a classifier: 四百名."""
    return NUMERALS.issuperset(word) or (len(word) > 2 and NUMERALS.issuperset(word[:-1]))
