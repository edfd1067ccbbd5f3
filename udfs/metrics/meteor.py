"""METEOR: words of the paraphrase that a reference has, and how well they keep together.

    METEOR = Fmean · (1 − γ · (chunks / matches)^β),   Fmean = P · R / (α · P + (1 − α) · R)

P = matches / words of the paraphrase, R = matches / words of the reference. A chunk is a run of
matches that stand side by side, in the same order, in both. α = 0.9, β = 3, γ = 0.5.

Source: Banerjee & Lavie 2005, whose values these are; the form with parameters is Lavie & Agarwal's
(2007). NLTK's ``meteor_score`` has both. Decided here:

* Chinese: words of the segmenter, normalised and in lower case, punctuation among them. Two stages:
  equal words, then synonyms of the forest (``gaixie.udfs.metrics.cilin``). There are no stems.
* English: NLTK itself, with its stages of equal words, stems and WordNet (where it looks stems up,
  so that automobile, stem automobil, finds no synonym), on sacrebleu's 13a words.
* The alignment is NLTK's, which is greedy: in each stage the words of the paraphrase, from the last
  to the first, each take the last free word of the reference that matches. So the first stage has
  the most matches there can be; chunks are not minimised, as the papers ask, nor are the matches of
  the second stage always the most. Where no synonym matches, the score equals NLTK's.
* No match is 0, and so is a side without words. Several references: the best.

Unit: share. A paraphrase of k words that equals the reference has 1 − γ / k^β: below 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics.cilin import are_synonyms, meanings
from gaixie.udfs.metrics.grams import tokenizer
from gaixie.udfs.metrics.metric import Pairs, ReferenceMetric, signature
from gaixie.udfs.metrics.words import lower_words, segmenter_version

LANGUAGES = ("zh", "en")


@dataclass(frozen=True)
class METEOR(ReferenceMetric):
    """synonyms: whether the second stage runs; segmenter: of Chinese, see text.segmenters."""

    language: str = "zh"
    synonyms: bool = True
    segmenter: str = "jieba"
    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5

    name = "meteor"
    title = "METEOR"
    summary = "Words shared with a reference, synonyms too, less a penalty for other word order."
    range = (0.0, 1.0)
    higher_is_better = True

    def __post_init__(self) -> None:
        self.check_setting("language", LANGUAGES)
        if self.language == "en" and not self.synonyms:
            raise ValueError("synonyms cannot be left out where language is 'en'")
        if not 0 < self.alpha < 1 or not 0 <= self.gamma <= 1 or self.beta < 0:
            raise ValueError("expected alpha between 0 and 1, gamma 0 to 1, beta 0 or more")

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        """Scores, shape (rows,). Raises ValueError without references, or without WordNet (en)."""
        self.check(pairs)
        cut, score = self._parts()
        paraphrases = cut(pairs.paraphrase)
        scores = np.full(len(pairs), np.nan)
        for column in pairs.references:
            for row, reference in enumerate(cut(column)):
                paraphrase = paraphrases[row]
                if paraphrase is not None and reference is not None:
                    scores[row] = np.fmax(scores[row], score(paraphrase, reference))
        return scores

    def signature(self) -> str:
        settings = [("lang", self.language), ("a", self.alpha), ("b", self.beta), ("g", self.gamma)]
        if self.language == "en":
            return signature("METEOR", *settings, ("tok", "13a"), ("nltk", version("nltk")))
        cut = segmenter_version(self.segmenter)
        lexicon = f"cilin-{version('cilin')}" if self.synonyms else "none"
        return signature("METEOR", *settings, ("seg", cut), ("syn", lexicon))

    def _parts(self) -> tuple[Callable[..., Any], Callable[[list[str], list[str]], float]]:
        """What cuts a column into words, and what scores the words of two sentences."""
        parameters = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma}
        if self.language == "en":
            single = _nltk_meteor()
            return _english_words, lambda p, r: single(r, p, **parameters)
        codes = meanings() if self.synonyms else {}

        def score(paraphrase: list[str], reference: list[str]) -> float:
            matches = align(paraphrase, reference, codes)
            return score_of(matches, len(paraphrase), len(reference), **parameters)

        return self._chinese_words, score

    def _chinese_words(self, column: pa.Array) -> list[list[str] | None]:
        return lower_words(column, self.segmenter)


def reference(
    paraphrase: Sequence[str],
    reference: Sequence[str],
    stages: Sequence[Callable[[str, str], bool]] = (str.__eq__, are_synonyms),
    **parameters: float,
) -> float:
    """METEOR of two sentences as words, by the definition."""
    left, free = list(enumerate(paraphrase)), list(enumerate(reference))
    matches = []
    for match in stages:
        for i, word in reversed(list(left)):
            partners = [j for j, other in free if match(word, other)]
            if partners:
                matches.append((i, partners[-1]))
                left.remove((i, word))
                free.remove((partners[-1], reference[partners[-1]]))
    return score_of(sorted(matches), len(paraphrase), len(reference), **parameters)


def align(
    paraphrase: Sequence[str],
    reference: Sequence[str],
    codes: Mapping[str, frozenset[str]],
) -> list[tuple[int, int]]:
    """(place in the paraphrase, place in the reference) of each match, in order of the first.

    codes: the meanings of words; two words that share one are synonyms.
    """
    places = defaultdict(list)  # by word, ascending
    for j, word in enumerate(reference):
        places[word].append(j)
    matches, left = [], []
    for i in range(len(paraphrase) - 1, -1, -1):
        if places.get(paraphrase[i]):
            matches.append((i, places[paraphrase[i]].pop()))
        elif paraphrase[i] in codes:
            left.append(i)
    if left:
        # By meaning, ascending; a place that is taken stays in other lists.
        free = defaultdict(list)
        for j in sorted(j for rest in places.values() for j in rest):
            for code in codes.get(reference[j], ()):
                free[code].append(j)
        taken = set()
        for i in left:
            best = -1
            for code in codes[paraphrase[i]]:
                of_code = free.get(code, [])
                while of_code and of_code[-1] in taken:
                    of_code.pop()
                best = max(best, of_code[-1] if of_code else -1)
            if best >= 0:
                taken.add(best)
                matches.append((i, best))
    return sorted(matches)


def score_of(
    matches: Sequence[tuple[int, int]],
    paraphrase: int,
    reference: int,
    alpha: float = 0.9,
    beta: float = 3.0,
    gamma: float = 0.5,
) -> float:
    """METEOR of matches in order, and of how many words each side has."""
    if not matches:
        return 0.0
    precision, recall = len(matches) / paraphrase, len(matches) / reference
    mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
    chunks = 1 + sum((i + 1, j + 1) != following for (i, j), following in pairwise(matches))
    return mean * (1 - gamma * (chunks / len(matches)) ** beta)


def _english_words(column: pa.Array) -> list[list[str] | None]:
    cut = tokenizer("13a")
    return [None if text is None else cut(text) for text in column.to_pylist()]


@cache
def _nltk_meteor() -> Callable[..., float]:
    """NLTK's METEOR. Raises ValueError where NLTK or its WordNet is missing."""
    try:
        from nltk.corpus import wordnet
        from nltk.translate.meteor_score import single_meteor_score

        wordnet.ensure_loaded()
    except ImportError:
        raise ValueError("meteor with language 'en' needs NLTK: pip install nltk") from None
    except LookupError:
        raise ValueError(
            "meteor with language 'en' needs NLTK's WordNet: python -m nltk.downloader wordnet"
        ) from None
    return single_meteor_score
