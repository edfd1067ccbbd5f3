"""Pairs a human and a machine Chinese translation of one foreign sentence (method parallel).

If both translations are given, each row is one pair, from the human to the machine translation.
Without machine translations, a translator translates each foreign sentence once, however many human
translations it has.

Source: *Chinese Sentence Paraphrasing*, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import model_validator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.corpus.input import Uri
from gaixie.jobs.pairs.method import MADE, Candidate, PairsInput
from gaixie.jobs.pairs.translation import CHINESE, Direction, Translating

if TYPE_CHECKING:
    from gaixie.jobs.pairs.build import PairsBuild


class Parallel(Translating):
    """The method parallel. Its items are rows, or human sentences if a model translates."""

    human_column: str = "human"
    """the column of the human translation"""
    machine_column: str = "machine"
    """the column of the machine translation"""
    foreign_column: str | None = None
    """the column of the foreign sentence; without one, equal human translations make a group"""
    human: Uri | None = None
    """file of human translations, one a line, instead of --input"""
    machine: Uri | None = None
    """file of machine translations, one a line"""
    foreign: Uri | None = None
    """file of the foreign sentences, one a line"""
    translator: Uri | None = None
    """the model that makes the machine translations: a folder or a name"""
    source_lang: str | None = None
    """the foreign language that the translator reads, such as en"""
    model: str | None = None
    """name of the system that made the machine translations, to record in the lineage"""
    model_version: str | None = None
    """its version, to record in the lineage"""

    reads: ClassVar[str] = "foreign"

    @model_validator(mode="after")
    def _one_input(self) -> Self:
        needed = {"source", "foreign" if self.translator else "paraphrase"}
        if bool(self.input) == bool(self.lines):
            raise ValueError("give either input or files of lines: human, machine, foreign")
        if self.lines and not needed <= self.lines.keys():
            raise ValueError("files of lines: human, and machine or (with translator) foreign")
        if self.translator and not (self.source_lang and (self.foreign_column or self.foreign)):
            raise ValueError("translator needs source_lang, and foreign_column or foreign")
        if self.translator and self.machine:
            raise ValueError("give only one of translator and machine")
        return self

    @property
    def alone(self) -> bool:
        return bool(self.translator)

    @property
    def lines(self) -> dict[str, str]:
        given = {"source": self.human, "paraphrase": self.machine, "foreign": self.foreign}
        return {column: path for column, path in given.items() if path}

    @property
    def directions_of_models(self) -> list[Direction]:
        if not self.translator:
            return []
        language = (self.source_lang or "").replace("_", "-").partition("-")[0]
        return [Direction.of(self.translator, language, CHINESE)]

    def lineage(self) -> tuple[str | None, str | None]:
        if not self.translator:
            return self.model, self.model_version
        return self.model or self.translator, self.model_version or self.digests()

    def table(self) -> PairsInput:
        machine = self.human_column if self.translator else self.machine_column
        return self.columns(self.human_column, machine, foreign_column=self.foreign_column)

    def items(self, rows: DataFrame) -> DataFrame:
        foreign = "foreign" if "foreign" in rows.columns else "source AS foreign"
        second = "source AS paraphrase" if self.translator else "paraphrase"
        return rows.selectExpr(foreign, "source", second, "malformed_line")

    def make(self, build: PairsBuild, fit: DataFrame) -> DataFrame:
        if self.translator:
            return super().make(build, fit)
        left = build.spark.createDataFrame([], MADE)
        return left.unionByName(fit.withColumn("dropped", F.lit(False)), allowMissingColumns=True)

    def used(self, build: PairsBuild, pairs: DataFrame) -> int:
        return super().used(build, pairs) if self.translator else pairs.count()

    def candidates(self, sentences: Sequence[str]) -> Iterable[Candidate]:
        """Yields the translation of each foreign sentence."""
        [direction] = self.directions_of_models
        made = self.translate(direction, sentences)
        for sentence, (text, reason) in zip(sentences, made, strict=True):
            yield Candidate(reason, sentence, text)
