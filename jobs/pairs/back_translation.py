"""back-translation: Chinese, translated into another language and back, is a paraphrase.

Source: *Chinese Sentence Paraphrasing*, section 3.2: m2m100, through Arabic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gaixie.jobs.pairs.writing import Sentences, Writer, WriterSettings

if TYPE_CHECKING:
    from gaixie.jobs.pairs.settings import BuildSettings


class BackTranslationSettings(WriterSettings):
    """back_translation in conf/pairs.yaml."""

    pivots: tuple[str, ...] = ("ar",)


@dataclass(frozen=True)
class BackTranslation(Sentences):
    """The method."""

    model: str
    own: BackTranslationSettings

    @classmethod
    def of(cls, settings: BuildSettings) -> BackTranslation:
        return cls(settings.model or "", settings.back_translation)

    def load(self) -> Writer:
        raise NotImplementedError
