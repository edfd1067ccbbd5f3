"""Pairs a Chinese sentence with its translation into another language and back (back-translation).

Each pivot language gives one candidate for each sentence. A candidate that fails on the way gets a
reason of gaixie.jobs.pairs.translation.

Source: *Chinese Sentence Paraphrasing*, section 3.2: m2m100, through Arabic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from pydantic import Field, model_validator

from gaixie.jobs.corpus.input import Origin, Uri
from gaixie.jobs.pairs.method import Candidate, FromSentences
from gaixie.jobs.pairs.translation import CHINESE, Direction, Translating


class ThereAndBack(FromSentences, Translating):
    """A method that translates Chinese sentences and translates the result back."""

    model: Uri
    """the translator: a folder or a name"""
    model_version: str | None = None
    """its version, to record in the lineage; by default a digest"""
    origin: Origin = "back_translation"
    """parallel | back_translation | llm | human"""

    def lineage(self) -> tuple[str | None, str | None]:
        return self.model, self.model_version or self.digests()


class BackTranslation(ThereAndBack):
    """The method back-translation."""

    pivot: tuple[str, ...] = Field(("ar",), min_length=1)
    """languages to translate through, a candidate for each"""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if CHINESE in self.pivot:
            raise ValueError("pivot zh: expected another language")
        return self

    @property
    def directions_of_models(self) -> list[Direction]:
        return [direction for pivot in self.pivot for direction in self._there_and_back(pivot)]

    def _there_and_back(self, pivot: str) -> tuple[Direction, Direction]:
        return Direction.of(self.model, CHINESE, pivot), Direction.of(self.model, pivot, CHINESE)

    def candidates(self, sentences: Sequence[str]) -> Iterable[Candidate]:
        """Yields a candidate of each sentence for each pivot."""
        for pivot in self.pivot:
            there, back = self._there_and_back(pivot)
            made = self.translate(there, sentences)
            made = [item._replace(text=None) if item.reason else item for item in made]
            made = self.go_on(back, made)
            for sentence, (text, reason) in zip(sentences, made, strict=True):
                yield Candidate(reason, sentence, text, {"pivot": pivot})
