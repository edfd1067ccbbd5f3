"""parallel: human Chinese and machine Chinese of one foreign sentence.

Where a translation is at hand, a row is one pair, from the human to the machine translation, and the other way round too with both
directions. Rows whose two sentences are, normalised, those of another row of the group are merged.
Where there is none, a translator makes it of the foreign sentence, once however many human ones that has.

Source: *Chinese Sentence Paraphrasing*, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.corpus.inputs import MALFORMED_LINE
from gaixie.jobs.pairs.method import REPEATED, Made
from gaixie.jobs.pairs.translation import (
    CHINESE,
    check_translator,
    directed,
    load_translator,
    version_of,
)
from gaixie.jobs.pairs.writer_settings import TranslationSettings
from gaixie.jobs.pairs.writing import Sentences, Writer, Written
from gaixie.udfs.text.normalise import normalise

if TYPE_CHECKING:
    from gaixie.jobs.pairs.settings import BuildSettings


@dataclass(frozen=True)
class Parallel:
    """The method."""

    both_directions: bool

    unit = "rows"
    alone = False

    def items(self, rows: DataFrame) -> DataFrame:
        """Columns of rows: source (human), paraphrase (machine), malformed_line, and foreign if there is one.

        Without a foreign sentence the human one makes the group.
        """
        foreign = F.col("foreign" if "foreign" in rows.columns else "source").cast("string")
        return rows.select(foreign.alias("foreign"), "source", "paraphrase", MALFORMED_LINE)

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
class Translated(Sentences):
    """The method where a model translates: its items are human sentences."""

    model: str
    language: str
    seed: int
    translation: TranslationSettings

    reads = "foreign"

    @classmethod
    def of(cls, settings: BuildSettings) -> Translated:
        language = (settings.source_lang or "").replace("_", "-").partition("-")[0]
        return cls(settings.translator or "", language, settings.seed, settings.translation)

    def check(self) -> None:
        check_translator(self.model, self.translation, [(self.language, CHINESE)])

    def models(self) -> list[str]:
        return [directed(self.model, self.language, CHINESE)]

    def version(self) -> str:
        return version_of(self.model, [(self.language, CHINESE)])

    def load(self) -> Writer:
        return self

    def write(self, sentences: Sequence[str]) -> Iterator[Written]:
        model = directed(self.model, self.language, CHINESE)
        translator = load_translator(model, self.translation)
        made = translator.translate(sentences, self.language, CHINESE, self.seed)
        for sentence, (text, reason) in zip(sentences, made, strict=True):
            yield Written(reason, sentence, text)
