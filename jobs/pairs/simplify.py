"""Pairs Chinese with simpler Chinese: translated, simplified and translated back (method simplify).

Three filters decide at the end: the mean HSK level of the words must fall, the perplexity must be
low, and the meaning must be kept. A pair is quarantined under the first filter that rejects it.

Source: Chong et al. 2024, *MCTS: A Multi-Reference Chinese Text Simplification Dataset*, on its
pseudo data: zh -> en -> simpler en -> zh, filtered by HSK level, perplexity and similarity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import compress

import numpy as np
import pyarrow as pa
from pydantic import Field

from gaixie.jobs.corpus.input import Uri
from gaixie.jobs.pairs.back_translation import ThereAndBack
from gaixie.jobs.pairs.method import Candidate
from gaixie.jobs.pairs.translation import CHINESE, Direction, Translation
from gaixie.udfs.command_line import as_user_error
from gaixie.udfs.meaning.language_model import LanguageModel
from gaixie.udfs.metrics.hsk import levels, mean_levels
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.registry import load_metric
from gaixie.udfs.text.normalise import normalise

NOT_SIMPLER, UNLIKELY, DISSIMILAR = "not_simpler", "perplexity", "dissimilar"
"""Reasons of the filters, in order."""


class Simplify(ThereAndBack):
    """The method simplify."""

    simplifier: Uri
    """the model that simplifies English sentences"""
    through: str = "en"
    """the language to simplify in"""
    prefix: str = ""
    """the simplifier's instruction before each sentence, such as "simplify: \""""
    min_level_fall: float = 0.1
    """minimum fall of the words' mean HSK level (1 to 7, or 8 if in no list)"""
    max_perplexity: float = Field(200, gt=0)
    """maximum perplexity per character, by the language model that ships"""
    similarity: str = "spscore-meaning"
    """the metric of source and paraphrase that measures similarity"""
    min_similarity: float = 0.5
    """minimum similarity of source and paraphrase"""

    @property
    def directions_of_models(self) -> list[Direction]:
        return [
            Direction.of(self.model, CHINESE, self.through),
            Direction.of(self.simplifier, self.through, self.through, self.prefix),
            Direction.of(self.model, self.through, CHINESE),
        ]

    def check(self) -> None:
        super().check()
        with as_user_error():
            levels()
            load_metric(self.similarity)

    def candidates(self, sentences: Sequence[str]) -> Iterable[Candidate]:
        """Yields a candidate of each sentence."""
        made = [Translation(text, None) for text in sentences]
        for direction in self.directions_of_models:
            made = self.go_on(direction, made)
        good = [row for row, item in enumerate(made) if item.reason is None]
        simpler = [made[row].text or "" for row in good]
        reasons = self.filter([sentences[row] for row in good], simpler)
        for row, reason in zip(good, reasons, strict=True):
            made[row] = made[row]._replace(reason=reason)
        for sentence, (text, reason) in zip(sentences, made, strict=True):
            is_chinese = any("一" <= character <= "龥" for character in text or "")
            yield Candidate(reason, sentence, text if is_chinese else None)

    def filter(self, sentences: Sequence[str], simpler: Sequence[str]) -> list[str | None]:
        """Returns the reason of each rejected pair, else None: shape (pairs,)."""
        fall = mean_levels(sentences) - mean_levels(simpler)
        pairs = Pairs(pa.array(sentences, pa.string()), pa.array(simpler, pa.string()))
        similar = load_metric(self.similarity).sentence_scores(pairs)
        holds = {  # a comparison with NaN is false, so the filter rejects
            NOT_SIMPLER: ~(fall >= self.min_level_fall),
            UNLIKELY: ~(perplexities(simpler) <= self.max_perplexity),
            DISSIMILAR: ~(similar >= self.min_similarity),
        }
        return [next(compress(holds, row), None) for row in zip(*holds.values(), strict=True)]


def perplexities(texts: Sequence[str]) -> np.ndarray:
    """Returns each text's perplexity per character under the language model that ships: float64."""
    model = _language_model()
    means = [model.log_probabilities(normalise(text)).mean() for text in texts]
    return np.exp(-np.array(means, float))


_language_model = cache(LanguageModel.load)
