"""Explains the judgements of a pair in sentences for people.

Each reason begins with its judgement and quotes the texts as they were written. The sentences are
in reasons.ini, in English and Chinese.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from functools import cache, cached_property
from itertools import accumulate, chain, islice, pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaixie.udfs.meaning import facts, language_model, vectors
from gaixie.udfs.meaning.core_features import COUNTED, Resources, count
from gaixie.udfs.text import numerals
from gaixie.udfs.text.code_points import from_strings, word_ends
from gaixie.udfs.text.normalise import is_han, normalise, written_places
from gaixie.udfs.text.quantities import CLOCK
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter

LOW = {"meaning": 0.6, "fluency": 0.6, "structure": 0.5, "synonyms": 0.5}
"""A judgement below its value here gets reasons, in this order."""
VERY_LOW = 0.4
"""Negations and single words are reasons only if meaning is below: both may be said otherwise."""
MOST, MOST_OF_MEANING = 3, 2
"""The most reasons of a pair, and those for its meaning."""
MUCH = 0.5
"""If this share of the content or more has a counterpart, that is no reason."""
NEGATES = re.compile("[不没无未非缺免除否拒禁勿莫剩]|[之以]内|差点|险些|少于|低于|之前")
"""What may stand for a negation of the other sentence: 没有勇气 is 缺乏勇气, 不到一天 一天之内."""
NAMED = {"number": "number", "negation": "negation"}
NAMED |= dict.fromkeys(("latin", "name", "foreign"), "name")
"""The kinds of facts that reasons name, and as what. Good paraphrases change the others too."""
SHARED = [COUNTED.index(name) for name in ("words_kept", "words_moved")]
CONTENT = [vectors.NAMES.index(name) for name in ("source_kept", "paraphrase_kept")]
AUXILIARY = frozenset("将会了过有没")
"""No reasons by themselves: 没人修 is 无人打理."""
ONE = re.compile(r"第?[一1]\D*")
"""Often no number: 日复一日, and 首座 is 第一座."""
IN_WORDS = {0.5: "半", 2: "双|俩|一对", 3: "仨"}
"""Numbers that no numeral need tell: 两个冠军 are 双冠."""
DOUBLES = re.compile("[翻加成双][番倍]")
GREW = re.compile("[增涨加升提扩多高翻][长加高大升出]?了?$")
"""Before a multiple, what adds it to the whole."""
PLACED = frozenset("上下里外内前后")
"""These are opposites only behind the same word: 情况下 is nearly 总体上."""
CALENDAR = re.compile(
    "(?P<weekday>(?:周|星期|礼拜)[一二三四五六日天1-6])"
    r"|(?P<date>[\d〇零一二三四五六七八九]{4}年|[\d一二三四五六七八九十]{1,3}(?:月|日(?!元|[之以]?内)))"
)
"""Numbers that have a name of their own."""
FEW, REORDERED = 4, 0.25
"""That the order was kept is said of so many shared words or more, if no larger share moved."""

Why = Callable[[str, str, dict[str, Any]], list[str]]
"""Maps (source, paraphrase, row) to the reasons for the pair's low judgements."""


def explainer(signature: str, segmenter: str = "jieba") -> Why:
    """Returns a function that explains the pairs of a run; for a tier that cannot, no reasons."""
    if not re.search(r"\|tier:(core|full)\b", signature):
        return lambda source, paraphrase, row: []
    cut, resources = load_segmenter(segmenter), Resources.load()
    return lambda source, paraphrase, row: explain_pairs(
        [(source, paraphrase)], cut, resources, [row]
    )[0]


def explain_pairs(
    pairs: Sequence[tuple[str, str]],
    segmenter: Segmenter,
    resources: Resources,
    judgements: Sequence[Mapping[str, float] | None],
    language: str = "en",
) -> list[list[str]]:
    """Returns, for each pair, a sentence for each thing that lowers one of its judgements.

    judgements: the four of each pair, in [0, 1]; None means that all four are 0. Only those below
    LOW get reasons, and a meaning of which a number became another; a pair has MOST at most, and
    none for its meaning if no fault can be named.
    language: ``en`` or ``zh``; any other raises ValueError.
    """
    say = _sentences(language)
    read = zip(_read(pairs, segmenter, resources), judgements, strict=True)
    return [_reasons(pair, judged, resources, say) for pair, judged in read]


class Pair(NamedTuple):
    """A pair and the results of the kernels for it."""

    a: Sentence
    b: Sentence
    counts: np.ndarray
    """its row of core_features.count."""
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
        if not (places := self._places):
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
    sentences = [*map(Sentence, written, segmenter.cut([*map(normalise, written)]))]
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
        judged = judgements[name] if judgements else 0.0
        if not judged < least:
            found = [*_changes(pair, say, judged)] if name == "meaning" else []
        elif name == "structure":
            shared = (Counter(pair.a.words) & Counter(pair.b.words)).total()
            stiff = bool(little) or (shared >= FEW and moved <= REORDERED)
            found = [say[little or "order"].format(share=f"{1 - moved:.0%}")] * stiff
        elif name == "synonyms":
            found = [say[little or "kept"].format(share=f"{kept:.0%}")] * (kept >= 0)  # no NaN
        elif name == "meaning":
            surely = judged < VERY_LOW
            found = [*_changes(pair, say, judged)] or [*_words(pair, say)] * surely
            if not found and pair.content < MUCH:
                found = [say["content"].format(share=f"{pair.content:.0%}")]
            found = found or [say["whole"]] * surely
            found = [*dict.fromkeys(found)][:MOST_OF_MEANING]
        else:
            found = [*islice(_odd_spots(pair, resources, say), 1)] or [say["stiff"]]
        reasons += [say["reason"].format(judgement=say[name], reason=reason) for reason in found]
    return reasons[:MOST]


@cache
def _sentences(language: str) -> Mapping[str, str]:
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.read(Path(__file__).with_name("reasons.ini"), "utf-8")
    if language not in parser.sections():
        raise ValueError(f"language {language!r}: expected {' or '.join(parser.sections())}")
    return dict(parser[language])


def _changes(pair: Pair, say: Mapping[str, str], judged: float) -> Iterator[str]:
    """Yields reasons for facts that only one of the sentences has.

    judged: the meaning. If it is high, only what is nearly always a fault counts: a number that
    became another, 上午 that became 晚上. If it is very low, also what often is none: negations.
    """
    surely, high = judged < VERY_LOW, judged >= LOW["meaning"]
    found = [facts.find(side.text, side.words) for side in (pair.a, pair.b)]
    lost, new = facts.missing(*found), facts.missing(*found[::-1])
    negations = [fact for fact in (*lost, *new) if fact.kind == "negation"]
    turned = facts.turned(lost, new)
    sure = [] if negations or high else turned  # 低 is 不高
    for fact, other in [*facts.clashes(*found), *sure]:
        written = pair.a.quote(fact.start, fact.end), pair.b.quote(other.start, other.end)
        behind = pair.a.text[: fact.start][-1:] == pair.b.text[: other.start][-1:]
        if not AUXILIARY & {*written} and (behind or not PLACED & {*written}):
            yield say["opposite"].format(text=written[0], other=written[1])
    digits = [re.sub(r"\D", "", "".join(map(_digits, side.numbers))) for side in found]
    parted = digits[0] == digits[1] and len(found[0].numbers) != len(found[1].numbers)
    kinds = {*NAMED} - {"number"} if parted else {*NAMED}  # 十八元六角 is 18.6元
    if not surely or turned or len(negations) % 2 == 0:  # 非做不可 is 必须做
        kinds.discard("negation")
    named = [
        [fact for fact in side if fact.kind in kinds and not _said(fact, *found[::way])]
        for side, way in ((lost, 1), (new, -1))
    ]
    if high:
        numbers = [[fact for fact in side if fact.kind == "number"] for side in named]
        if len(numbers[0]) == len(numbers[1]):
            for fact, other in zip(*numbers, strict=True):
                text, new_text = _counted(pair.a, fact), _counted(pair.b, other)
                yield say["opposite"].format(text=text, other=new_text)
        return
    missed = [[*_missing(pair.a, pair.b, named[0])], [*_missing(pair.b, pair.a, named[1])]]
    names = [[text for kind, text in side if kind == "name"] for side in missed]
    if [*map(len, names)] == [1, 1] and names[0][0].isascii() != names[1][0].isascii():
        missed = [[one for one in side if one[0] != "name"] for side in missed]  # Perth is 珀斯
    lines = [
        [say[f"{kind}_{verb}"].format(text=text) for kind, text in side]
        for verb, side in zip(("lost", "new"), missed, strict=True)
    ]
    yield from filter(None, chain(*zip_longest(*lines)))


def _counted(sentence: Sentence, number: facts.Fact) -> str:
    """Returns a number as written, with its minus and what it counts."""
    start, end = sentence.whole_words(number.start, number.end)
    start -= sentence.text[:start].endswith("-")
    unit = next((sentence.text[a:b] for a, b in sentence.spans if a == end), "")
    return sentence.quote(start, end + len(unit) * (not {*unit} - {*numerals.MEASURES}))


def _digits(number: numerals.Number) -> str:
    # The value of a time is its hour alone.
    return f"{number.amount if number.dimension == CLOCK else number.value:g}"


def _said(fact: facts.Fact, here: facts.Found, there: facts.Found) -> bool:
    """Tells whether a fact is a number that the other sentence has in words or as a multiple."""
    times = _times(here).get(fact.start)
    return times in _times(there).values() or any(
        number.start == fact.start and re.search(IN_WORDS.get(number.value, "$^"), there.text)
        for number in here.numbers
    )


def _times(found: facts.Found) -> dict[int, float]:
    """Returns by place how many times as much something is: 翻两番 is 四倍, 增加一倍 两倍."""
    times = {doubled.start(): 2.0 for doubled in DOUBLES.finditer(found.text)}
    for number in found.numbers:
        before, unit = found.text[: number.start], found.text[number.end : number.end + 1]
        if unit == "番":
            times[number.start] = 2.0 ** min(number.value, 20)
        elif unit == "倍":
            times[number.start] = number.value + bool(GREW.search(before))
    return times


def _missing(
    here: Sentence, there: Sentence, missing: Sequence[facts.Fact]
) -> Iterator[tuple[str, str]]:
    """Yields (kind, as written) of facts that the other sentence lacks; splinters of a name are
    one."""
    spans: list[tuple[str, int, int]] = []
    for fact in sorted(missing, key=lambda fact: fact.start):
        if fact.kind == "number" and ONE.fullmatch(here.text[fact.start : fact.end]):
            continue
        kind = NAMED[fact.kind]
        start, end = here.whole_words(fact.start, fact.end)
        if spans and spans[-1][0] == kind == "name":
            if not here.text[spans[-1][2] : start].strip("·"):
                spans[-1] = kind, spans[-1][1], max(end, spans[-1][2])
                continue
        spans.append((kind, start, end))
    for kind, start, end in spans:
        text, other = (t.replace(" ", "").lower() for t in (here.text[start:end], there.text))
        if (
            text in other
            or text == "x"  # 3 x 4
            or (kind == "name" and here.text[start] in there.text)  # 诺贝尔奖 is 诺奖
            or (kind == "negation" and NEGATES.search(there.text))
        ):
            continue
        for day in CALENDAR.finditer(here.text) if kind == "number" else ():
            if day.start() < end and start < day.end():
                kind, start, end = str(day.lastgroup), min(start, day.start()), max(end, day.end())
        yield kind, here.quote(start, end)


def _words(pair: Pair, say: Mapping[str, str]) -> Iterator[str]:
    """Yields reasons for the worst word without a counterpart on each side."""
    texts = (pair.a, pair.b), (pair.b, pair.a)
    for (sentence, other), verb, losses in zip(texts, ("lost", "new"), pair.losses, strict=True):
        place = int(np.argmax(losses))
        start, end = sentence.whole_words(place, place + 1)
        word, numbers = sentence.text[start:end], numerals.find(sentence.text, sentence.words)
        # The segmenter often cuts unknown text into pieces that are not words.
        known = word in facts.known_words() and word not in facts.names()
        said = NEGATES.search(word) and NEGATES.search(other.text)
        counts = any(number.start < end and start < number.end for number in numbers)  # 礼拜三
        if losses[place] > 0 and known and not said and not counts:
            yield say[f"word_{verb}"].format(text=sentence.quote(start, end))


def _odd_spots(pair: Pair, resources: Resources, say: Mapping[str, str]) -> Iterator[str]:
    """Yields reasons for odd spots of the paraphrase; what the source says too is not its fault."""
    b = pair.b
    for spot in language_model.odd_spots(b.text, resources.language_model, len(b.text)):
        start, end = b.whole_words(spot.start, spot.end)
        letters = [place for place in range(start, end) if b.text[place].isalnum()]
        if letters and b.text[letters[0] : letters[-1] + 1] not in pair.a.text:
            yield say["odd"].format(text=b.quote(letters[0], letters[-1] + 1))
