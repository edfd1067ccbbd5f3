"""Pairs a human and a machine Chinese translation of one foreign sentence (method parallel).

If both translations are given, each row is one pair, from the human to the machine translation;
with both directions, also the reverse. Rows of a group whose two sentences are equal after
normalisation are merged. Without machine translations, a translator translates each foreign
sentence once, however many human translations it has.

Source: *Chinese Sentence Paraphrasing*, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.method import REPEATED, Made, Method
from gaixie.jobs.pairs.translation import CHINESE, Step, Translating
from gaixie.jobs.pairs.writing import Written
from gaixie.udfs.text.normalise import normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gaixie.jobs.pairs.settings import BuildSettings

FILES = ("foreign", "human", "machine")
COLUMNS = ("foreign_column", "human_column", "machine_column")
LANGUAGES = ("source_lang", "target_lang")


@dataclass(frozen=True)
class Parallel(Method):
    """The method parallel when both translations are given."""

    unit = "rows"
    alone = False
    options = (*COLUMNS, *FILES, *LANGUAGES, "translator", "model", "model_version")
    groups = ("translation",)

    both_directions: bool

    @classmethod
    def of(cls, settings: BuildSettings) -> Parallel | Translated:  # type: ignore[override]
        if settings.translator:
            return Translated.of(settings)
        if settings.tmx:
            raise JobError("--translator is missing: a TMX has no machine translations")
        return cls(settings.both)

    def items(self, rows: DataFrame) -> DataFrame:
        """rows: source (human), paraphrase (machine), malformed_line, and foreign if there is one.

        Without a foreign sentence, the human translation defines the group.
        """
        foreign = "foreign" if "foreign" in rows.columns else "source"
        columns = f"CAST({foreign} AS STRING) AS foreign", "source", "paraphrase", "malformed_line"
        return rows.selectExpr(*columns)

    def make(self, members: list[tuple[str, str]]) -> Iterator[Made]:
        known: set[frozenset[str]] = set()
        for source, paraphrase in sorted(members):
            texts = frozenset((normalise(source), normalise(paraphrase)))
            if texts in known:
                yield Made(REPEATED, source, paraphrase)
                continue
            known.add(texts)
            yield Made(None, source, paraphrase)
            if self.both_directions:
                yield Made(None, paraphrase, source)


@dataclass(frozen=True)
class Translated(Translating):
    """The method parallel when a model translates: its items are human sentences."""

    reads = "foreign"
    groups = Parallel.groups
    decides = ("seed", "translation")

    step: Step
    seed: int

    @classmethod
    def of(cls, settings: BuildSettings) -> Translated:
        for name in ("machine", "machine_column"):
            if getattr(settings, name):
                option = f"--{name.replace('_', '-')}"
                raise JobError(f"{option} and --translator: give only one of them")
        if settings.input and not (settings.foreign_column or settings.tmx):
            raise JobError("--foreign-column is missing: the sentences for --translator")
        language = (settings.source_lang or "").replace("_", "-").partition("-")[0]
        step = Step(settings.translator or "", settings.translation, language, CHINESE)
        return cls(step, settings.seed)

    @property
    def steps(self) -> list[Step]:
        return [self.step]

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        made = self.step.translate(sentences, self.seed)
        for sentence, (text, reason) in zip(sentences, made, strict=True):
            yield Written(reason, sentence, text)
