"""Pairs Chinese with simpler Chinese: translated, simplified and translated back (method simplify).

Three filters decide at the end: the mean HSK level of the words must fall, the perplexity must be
low, and the meaning must be kept. A pair is quarantined under the first filter that rejects it.

Source: Chong et al. 2024, *MCTS: A Multi-Reference Chinese Text Simplification Dataset*, on its
pseudo data: zh -> en -> simpler en -> zh, filtered by HSK level, perplexity and similarity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
from pydantic import Field

from gaixie.jobs.corpus.settings import Uri
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.method import Group, Option
from gaixie.jobs.pairs.models import refused
from gaixie.jobs.pairs.translation import CHINESE, Step, Translating, Translation
from gaixie.jobs.pairs.writing import Written
from gaixie.udfs.metrics.hsk import mean_levels
from gaixie.udfs.text.normalise import normalise

if TYPE_CHECKING:
    from gaixie.jobs.pairs.settings import BuildSettings
    from gaixie.jobs.pairs.translation import TranslationSettings
    from gaixie.udfs.meaning.language_model import LanguageModel

NOT_SIMPLER, UNLIKELY, DISSIMILAR = "not_simpler", "perplexity", "dissimilar"
"""Reasons of the filters, in order."""


class SimplifySettings(Group):
    """simplify in conf/pairs.yaml."""

    simplifier: Annotated[Uri | None, Option()] = None
    """the model that simplifies English sentences"""
    through: str = "en"
    """the language to simplify in"""
    prefix: str = ""
    """the simplifier's instruction before each sentence, such as "simplify: \""""
    min_level_fall: float = 0.1
    """minimum fall of the words' mean HSK level (1 to 7, or 8 if in no list)"""
    max_perplexity: float = Field(default=200, gt=0)
    """maximum perplexity per character, by the language model that ships"""
    similarity: str = "spscore-meaning"
    """the metric of source and paraphrase that measures similarity"""
    min_similarity: float = 0.5
    """minimum similarity of source and paraphrase"""


@dataclass(frozen=True)
class Simplify(Translating):
    """The method simplify, and its writer."""

    origin = "back_translation"
    groups = ("simplify", "translation")
    decides = ("seed", *groups)

    model: str
    seed: int
    own: SimplifySettings
    translation: TranslationSettings

    @classmethod
    def of(cls, settings: BuildSettings) -> Simplify:
        if not settings.model:
            raise JobError("--model is missing: the translator, a folder or a name")
        if not settings.simplify.simplifier:
            raise JobError("--simplifier is missing: a folder or a name")
        return cls(settings.model, settings.seed, settings.simplify, settings.translation)

    @property
    def steps(self) -> list[Step]:
        through, simplifier = self.own.through, self.own.simplifier or ""
        simplifying = self.translation.model_copy(update={"prefix": self.own.prefix})
        return [
            Step(self.model, self.translation, CHINESE, through),
            Step(simplifier, simplifying, through, through),
            Step(self.model, self.translation, through, CHINESE),
        ]

    def check(self, dry_run: bool = False) -> None:
        from gaixie.udfs.metrics.hsk import levels
        from gaixie.udfs.metrics.registry import load_metric

        super().check()
        with refused():
            levels()
            load_metric(self.own.similarity)

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        made = [Translation(text, None) for text in sentences]
        for step in self.steps:
            made = step.go_on(made, self.seed)
        good = [row for row, item in enumerate(made) if item.reason is None]
        simpler = [made[row].text or "" for row in good]
        reasons = self.filter([sentences[row] for row in good], simpler)
        for row, reason in zip(good, reasons, strict=True):
            made[row] = made[row]._replace(reason=reason)
        for sentence, (text, reason) in zip(sentences, made, strict=True):
            is_chinese = any("一" <= character <= "龥" for character in text or "")
            yield Written(reason, sentence, text if is_chinese else None)

    def filter(self, sentences: Sequence[str], simpler: Sequence[str]) -> list[str | None]:
        """Returns the reason of each rejected pair, else None: shape (pairs,)."""
        from gaixie.udfs.metrics.metric import Pairs
        from gaixie.udfs.metrics.registry import load_metric

        own = self.own
        fall = mean_levels(sentences) - mean_levels(simpler)
        pairs = Pairs(pa.array(sentences, pa.string()), pa.array(simpler, pa.string()))
        holds = {  # a comparison with NaN is false, so the filter rejects
            NOT_SIMPLER: ~(fall >= own.min_level_fall),
            UNLIKELY: ~(perplexities(simpler) <= own.max_perplexity),
            DISSIMILAR: ~(load_metric(own.similarity).sentence_scores(pairs) >= own.min_similarity),
        }
        rows = zip(*holds.values(), strict=True)
        return [next(compress(holds, row), None) for row in rows]


def perplexities(texts: Sequence[str]) -> np.ndarray:
    """Returns each text's perplexity per character under the language model that ships: float64."""
    model = _language_model()
    means = [model.log_probabilities(normalise(text)).mean() for text in texts]
    return np.exp(-np.array(means, float))


@cache
def _language_model() -> LanguageModel:
    from gaixie.udfs.meaning.language_model import LanguageModel

    return LanguageModel.load()
