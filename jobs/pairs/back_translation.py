"""back-translation: Chinese, translated into another language and back, is a paraphrase.

Each pivot makes a candidate of each sentence, and where translations are drawn, each sample. What goes
wrong on the way is a candidate with the reason of gaixie.jobs.pairs.translation.

Source: *Chinese Sentence Paraphrasing*, section 3.2: m2m100, through Arabic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.translation import (
    CHINESE,
    check_translator,
    directed,
    load_translator,
    version_of,
)
from gaixie.jobs.pairs.writer_settings import BackTranslationSettings, TranslationSettings
from gaixie.jobs.pairs.writing import Sentences, Writer, Written

if TYPE_CHECKING:
    from gaixie.jobs.pairs.settings import BuildSettings


@dataclass(frozen=True)
class BackTranslation(Sentences):
    """The method, and its writer."""

    model: str
    seed: int
    own: BackTranslationSettings
    translation: TranslationSettings

    @classmethod
    def of(cls, settings: BuildSettings) -> BackTranslation:
        """Raises JobError where no model is given, or settings are at odds."""
        own, translation = settings.back_translation, settings.translation
        if not settings.model:
            raise JobError("--model is missing: a folder, or a name in the Hugging Face cache")
        if own.samples > 1 and not translation.sample:
            raise JobError("back_translation.samples is above 1, and translation.sample not set")
        if CHINESE in own.pivots:
            raise JobError("--pivot zh: expected another language")
        return cls(settings.model, settings.seed, own, translation)

    @property
    def directions(self) -> list[tuple[str, str]]:
        """(from, to), of all pivots."""
        return [pair for p in self.own.pivots for pair in ((CHINESE, p), (p, CHINESE))]

    def check(self) -> None:
        check_translator(self.model, self.translation, self.directions)

    def models(self) -> list[str]:
        return list(dict.fromkeys(directed(self.model, *pair) for pair in self.directions))

    def version(self) -> str:
        return version_of(self.model, self.directions)

    def load(self) -> Writer:
        return self

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        for pivot in self.own.pivots:
            for sample in range(self.own.samples):
                yield from self._write(sentences, pivot, sample)

    def _write(self, sentences: Sequence[str], pivot: str, sample: int) -> Iterator[Written]:
        told: dict[str, Any] = {"pivot": pivot}
        if self.translation.sample:
            told["sample"] = sample
        there = self._translate(sentences, CHINESE, pivot, sample)
        good = [row for row, made in enumerate(there) if made.reason is None]
        back = self._translate([there[row].text or "" for row in good], pivot, CHINESE, sample)
        home = dict(zip(good, back, strict=True))
        for row, sentence in enumerate(sentences):
            if row in home:
                yield Written(home[row].reason, sentence, home[row].text, told)
            else:
                yield Written(there[row].reason, sentence, None, told)

    def _translate(self, texts: Sequence[str], source: str, target: str, sample: int) -> list[Any]:
        translator = load_translator(directed(self.model, source, target), self.translation)
        return translator.translate(texts, source, target, self.seed + sample)
