"""Pairs a Chinese sentence with its translation into another language and back (back-translation).

Each pivot language gives one candidate for each sentence, or several if translations are sampled. A
candidate that fails on the way gets a reason of gaixie.jobs.pairs.translation.

Source: *Chinese Sentence Paraphrasing*, section 3.2: m2m100, through Arabic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.method import Group, Option
from gaixie.jobs.pairs.translation import CHINESE, Step, Translating, TranslationSettings
from gaixie.jobs.pairs.writing import Written

if TYPE_CHECKING:
    from gaixie.jobs.pairs.settings import BuildSettings


class BackTranslationSettings(Group):
    """back_translation in conf/pairs.yaml."""

    pivots: Annotated[tuple[str, ...], Option("pivot")] = Field(default=("ar",), min_length=1)
    """languages to translate through, a candidate for each; default ar"""
    samples: int = Field(default=1, ge=1)
    """candidates for each pivot; more than 1 needs translation.sample"""


@dataclass(frozen=True)
class BackTranslation(Translating):
    """The method back-translation, and its writer."""

    origin = "back_translation"
    groups = ("back_translation", "translation")
    decides = ("seed", *groups)

    model: str
    seed: int
    own: BackTranslationSettings
    translation: TranslationSettings

    @classmethod
    def of(cls, settings: BuildSettings) -> BackTranslation:
        own, translation = settings.back_translation, settings.translation
        if not settings.model:
            raise JobError("--model is missing: a folder, or a name in the Hugging Face cache")
        if own.samples > 1 and not translation.sample:
            raise JobError("back_translation.samples above 1 needs translation.sample")
        if CHINESE in own.pivots:
            raise JobError("--pivot zh: expected another language")
        return cls(settings.model, settings.seed, own, translation)

    @property
    def steps(self) -> list[Step]:
        return [step for pivot in self.own.pivots for step in self._way(pivot)]

    def _way(self, pivot: str) -> tuple[Step, Step]:
        ways = (CHINESE, pivot), (pivot, CHINESE)
        there, back = (Step(self.model, self.translation, *way) for way in ways)
        return there, back

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        for pivot, sample in product(self.own.pivots, range(self.own.samples)):
            there, back = self._way(pivot)
            made = there.translate(sentences, self.seed + sample)
            made = [item._replace(text=None) if item.reason else item for item in made]
            made = back.go_on(made, self.seed + sample)
            told = {"pivot": pivot} | ({"sample": sample} if self.translation.sample else {})
            for sentence, (text, reason) in zip(sentences, made, strict=True):
                yield Written(reason, sentence, text, told)
