"""Measures what a simplification did to the source's sentences, characters and words.

Each feature is one number for a pair; none says how good the simplification is.

    sentence-splits       sentences of P − sentences of S
    compression           characters of P / characters of S
    replaced              characters replaced between S and P / characters of the shorter side
    deleted               words of S that P does not have / words of S
    added                 words of P that S does not have / words of P
    reordered             (words of both − their longest common subsequence) / words of S
    lexical-complexity    C(P) / C(S),  C = mean of level² over the words, level of HSK

Source: Alva-Manchego et al. 2020, *ASSET*, section 4; Chong et al. 2024, *MCTS*, adapt them to
Chinese (section 4.1): a word's difficulty is its HSK level, not the logarithm of its rank as in
ASSET. Martin et al. 2018 (tseval) and EASSE implement them. Decided here:

* Texts are normalised. Words are the segmenter's, in lower case, including punctuation; each
  occurrence counts. Characters include punctuation, not spaces.
* A sentence ends at 。 ! ? or a full stop that no letter or digit follows, and has a letter or a
  digit. ASSET and MCTS take the difference of the two counts, as here; EASSE takes their ratio.
* Replaced: the replacements among the edit operations that the Levenshtein package finds, as in
  tseval; other shortest edit paths may replace less.
* Levels are those of :mod:`gaixie.udfs.metrics.hsk`: 1 to 6, 7 for the band 7–9, 8 for an unlisted
  word. Here tokens without a letter or a digit are not words.
* The depth of dependency trees is left out, because it needs a parser.

A feature is NaN if its denominator is 0. Unit: sentences, ratio or share.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics import hsk
from gaixie.udfs.metrics.grams import is_word, segmenter_version, words
from gaixie.udfs.metrics.metric import Metric, signature
from gaixie.udfs.text.normalise import normalise

_SENTENCE_END = re.compile(r"[。!?]|\.(?!\w)")


class Sentence(NamedTuple):
    """One side of a pair."""

    characters: str
    """Without spaces."""
    sentences: int
    words: list[str]
    """In lower case."""
    written: Sequence[str] = ()
    """The words as they are written."""


def sentence_splits(source: Sentence, paraphrase: Sentence) -> float:
    """Returns the sentences of the paraphrase minus those of the source."""
    return float(paraphrase.sentences - source.sentences)


def compression(source: Sentence, paraphrase: Sentence) -> float:
    """Returns the characters of the paraphrase over those of the source."""
    return _ratio(len(paraphrase.characters), len(source.characters))


def replaced(source: Sentence, paraphrase: Sentence) -> float:
    """Returns the replaced characters over the characters of the shorter side."""
    from Levenshtein import editops

    edits = editops(source.characters, paraphrase.characters)
    shorter = min(len(source.characters), len(paraphrase.characters))
    return _ratio(sum(operation == "replace" for operation, _, _ in edits), shorter)


def deleted(source: Sentence, paraphrase: Sentence) -> float:
    """Returns the share of the source's words that the paraphrase does not have."""
    return _ratio((Counter(source.words) - Counter(paraphrase.words)).total(), len(source.words))


def added(source: Sentence, paraphrase: Sentence) -> float:
    """Returns the share of the paraphrase's words that the source does not have."""
    return deleted(paraphrase, source)


def reordered(source: Sentence, paraphrase: Sentence) -> float:
    """Returns the shared words that are not in the same order, over the words of the source."""
    from rapidfuzz.distance import LCSseq

    kept = (Counter(source.words) & Counter(paraphrase.words)).total()
    return _ratio(kept - LCSseq.similarity(source.words, paraphrase.words), len(source.words))


def lexical_complexity(source: Sentence, paraphrase: Sentence) -> float:
    """Returns the paraphrase's mean squared level of a word over that of the source."""
    levels = hsk.levels()

    def complexity(side: Sentence) -> float:
        squares = [levels.get(word, hsk.BEYOND) ** 2 for word in side.written if is_word(word)]
        return _ratio(sum(squares), len(squares))

    return _ratio(complexity(paraphrase), complexity(source))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


class Kind(NamedTuple):
    """Describes a feature, and how to compute it."""

    summary: str
    range: tuple[float, float]
    higher_is_simpler: bool
    of: Callable[[Sentence, Sentence], float]


INF = float("inf")
FEATURES = {
    "sentence-splits": Kind("Sentences, minus the source's.", (-INF, INF), True, sentence_splits),
    "compression": Kind("Characters, divided by the source's.", (0, INF), False, compression),
    "replaced": Kind("Share of characters that were replaced.", (0, 1), True, replaced),
    "deleted": Kind("Share of the source's words that were deleted.", (0, 1), True, deleted),
    "added": Kind("Share of the paraphrase's words that are new.", (0, 1), True, added),
    "reordered": Kind("Share of the source's words that have moved.", (0, 1), True, reordered),
    "lexical-complexity": Kind(
        "Mean squared HSK level, over the source's.", (0, INF), False, lexical_complexity
    ),
}


@dataclass(frozen=True)
class Feature(Metric):
    """One feature of the table above."""

    feature: str = "compression"
    segmenter: str = "jieba"

    def __post_init__(self) -> None:
        kind, title = FEATURES[self.feature], self.feature.replace("-", " ").capitalize()
        self.describe(name=self.feature, title=title, summary=kind.summary)
        self.describe(range=kind.range, higher_is_better=kind.higher_is_simpler)

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        of = FEATURES[self.feature].of
        return np.array([*map(of, self._sentences(texts), self._sentences(paraphrases))], float)

    def signature(self) -> str:
        return signature(self.feature, *self.settings())

    def settings(self) -> Sequence[tuple[str, object]]:
        settings = [("seg", segmenter_version(self.segmenter))]
        if self.feature == "lexical-complexity":
            settings.append(("list", hsk.list_version()))
        return settings

    def _sentences(self, texts: Sequence[str]) -> Iterator[Sentence]:
        for text, written in zip(map(normalise, texts), words(texts, self.segmenter), strict=True):
            count, lower = sum(map(is_word, _SENTENCE_END.split(text))), map(str.lower, written)
            yield Sentence(text.replace(" ", ""), count, [*lower], written)
