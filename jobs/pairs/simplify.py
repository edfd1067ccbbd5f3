"""simplify: Chinese, translated, simplified there, and translated back, is simpler Chinese.

Three filters hold in the end: the words' mean HSK level falls, the language model is not surprised, and
the meaning stays. What fails one is quarantined under its reason, the first of them.

Source: Chong et al. 2024, *MCTS: A Multi-Reference Chinese Text Simplification Dataset*, on its pseudo
data: zh -> en -> simpler en -> zh, filtered by HSK level, perplexity and similarity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.translation import (
    CHINESE,
    COPIED,
    Translation,
    check_translator,
    directed,
    load_translator,
    version_of,
)
from gaixie.jobs.pairs.writer_settings import SimplifySettings, TranslationSettings
from gaixie.jobs.pairs.writing import Sentences, Writer, Written
from gaixie.udfs.meaning.language_model import LanguageModel
from gaixie.udfs.metrics.hsk import BEYOND, levels
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.registry import load_metric
from gaixie.udfs.metrics.words import words
from gaixie.udfs.text.normalise import normalise

if TYPE_CHECKING:
    from gaixie.jobs.pairs.settings import BuildSettings

NOT_SIMPLER, UNLIKELY, DISSIMILAR = "not_simpler", "perplexity", "dissimilar"
"""Reasons of the filters, in their order."""


@dataclass(frozen=True)
class Simplify(Sentences):
    """The method, and its writer."""

    model: str
    seed: int
    own: SimplifySettings
    translation: TranslationSettings

    @classmethod
    def of(cls, settings: BuildSettings) -> Simplify:
        """Raises JobError where a model is not given."""
        if not settings.model:
            raise JobError("--model is missing: what translates, a folder or a name")
        if not settings.simplify.simplifier:
            raise JobError("--simplifier is missing: what simplifies, a folder or a name")
        return cls(settings.model, settings.seed, settings.simplify, settings.translation)

    @property
    def _steps(self) -> list[tuple[str, TranslationSettings, tuple[str, str]]]:
        """(model, settings, languages) of each step."""
        through = self.own.through
        simplifying = self.translation.model_copy(update={"prefix": self.own.prefix})
        return [
            (self.model, self.translation, (CHINESE, through)),
            (self.own.simplifier or "", simplifying, (through, through)),
            (self.model, self.translation, (through, CHINESE)),
        ]

    def check(self) -> None:
        for model, settings, languages in self._steps:
            check_translator(model, settings, [languages])
        try:
            levels()
            load_metric(self.own.similarity)
        except (ValueError, OSError, ImportError) as error:
            raise JobError(str(error)) from error

    def models(self) -> list[str]:
        return list(dict.fromkeys(directed(model, *pair) for model, _, pair in self._steps))

    def version(self) -> str:
        versions = [version_of(model, [languages]) for model, _, languages in self._steps]
        return " ".join(dict.fromkeys(versions))

    def load(self) -> Writer:
        return self

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        made = [Translation(text, None) for text in sentences]
        for step in self._steps:
            good = [row for row, item in enumerate(made) if item.reason is None]
            texts = [made[row].text or "" for row in good]
            for row, item in zip(good, self._translate(texts, *step), strict=True):
                made[row] = item
        good = [row for row, item in enumerate(made) if item.reason is None]
        simpler = [made[row].text or "" for row in good]
        for row, reason in zip(
            good, self.filter([sentences[row] for row in good], simpler), strict=True
        ):
            made[row] = made[row]._replace(reason=reason)
        for sentence, item in zip(sentences, made, strict=True):
            chinese = item.text if item.text and any("一" <= c <= "龥" for c in item.text) else None
            yield Written(item.reason, sentence, chinese)

    def _translate(
        self,
        texts: Sequence[str],
        model: str,
        settings: TranslationSettings,
        languages: tuple[str, str],
    ) -> list[Translation]:
        source, target = languages
        translator = load_translator(directed(model, source, target), settings)
        made = translator.translate(texts, source, target, self.seed)
        if source != target:
            return made
        # What is simple already stays as it is.
        return [item._replace(reason=None) if item.reason == COPIED else item for item in made]

    def filter(self, sentences: Sequence[str], simpler: Sequence[str]) -> list[str | None]:
        """The reason of each that is not kept: shape (pairs,)."""
        own = self.own
        fall = mean_levels(sentences) - mean_levels(simpler)
        pairs = Pairs(pa.array(sentences, pa.string()), pa.array(simpler, pa.string()))
        holds = {  # a comparison with NaN is false, and then the filter holds back
            NOT_SIMPLER: ~(fall >= own.min_level_fall),
            UNLIKELY: ~(perplexities(simpler) <= own.max_perplexity),
            DISSIMILAR: ~(load_metric(own.similarity).sentence_scores(pairs) >= own.min_similarity),
        }
        return [
            next((name for name, fails in holds.items() if fails[row]), None)
            for row in range(len(simpler))
        ]


def mean_levels(texts: Sequence[str]) -> np.ndarray:
    """Mean HSK level of the words of each text, 1 to 8 (in no list): float64, NaN without a word.

    Punctuation is no word.
    """
    known = levels()
    rows = [
        [known.get(word, BEYOND) for word in row or [] if any(map(str.isalnum, word))]
        for row in words(pa.array(texts, pa.string()))
    ]
    return np.array([np.mean(row) if row else np.nan for row in rows], float)


def perplexities(texts: Sequence[str]) -> np.ndarray:
    """Perplexity of each text, a character, to the language model that ships: float64."""
    model = _language_model()
    means = [model.log_probabilities(normalise(text)).mean() for text in texts]
    return np.exp(-np.array(means, float))


@cache
def _language_model() -> LanguageModel:
    return LanguageModel.load()
