"""Settings of jobs/build_pairs.py: conf/pairs.yaml under the command line, checked before Spark starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from gaixie.jobs.corpus.settings import Csv, Input, Origin, Uri
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.cluster.settings import ClusterSettings
from gaixie.jobs.pairs.llm.prompts import Prompt
from gaixie.jobs.pairs.llm.record import check_place
from gaixie.jobs.pairs.llm.settings import LlmSettings
from gaixie.jobs.pairs.writer_settings import (
    BackTranslationSettings,
    SimplifySettings,
    TranslationSettings,
)
from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS
from gaixie.udfs.storage import settings
from gaixie.udfs.storage.settings import Strict

CONFIG = Path(__file__).parents[2] / "conf/pairs.yaml"

METHODS = ("versions", "parallel", "back-translation", "cluster", "llm", "simplify")

WRITTEN = ("back-translation", "llm", "simplify")
"""Those whose pairs a model writes, of single sentences."""

GROUPS = {
    "back_translation": ("back-translation",),
    "cluster": ("cluster",),
    "llm": ("llm",),
    "simplify": ("simplify",),
    "translation": ("back-translation", "parallel", "simplify"),
}
"""Groups of settings, and the methods that have them."""

OWN = {
    "text_column": ("versions", "cluster", *WRITTEN),
    "max_pairs": ("versions", "cluster"),
    "human_column": ("parallel",),
    "machine_column": ("parallel",),
    "human": ("parallel",),
    "machine": ("parallel",),
    "foreign": ("parallel",),
    "foreign_column": ("versions", "parallel"),
    "source_lang": ("versions", "parallel"),
    "translator": ("parallel",),
    "model": ("parallel", *WRITTEN),
    "model_version": ("parallel", *WRITTEN),
}
"""Settings that mean something to some methods alone."""

DEFAULT_ORIGINS = {
    "back-translation": "back_translation",
    "cluster": "human",
    "llm": "llm",
    "simplify": "back_translation",
}
"""By method; that of the others is parallel."""

INDIFFERENT = {"output", "origin", "target_file_mb", *GROUPS}
"""What decides no pair; of a group, its FREE does not."""


class PairsInput(Input):
    """A table whose columns become pairs: paraphrase_column may hold lists."""

    foreign_column: str | None = None
    """Carried as "foreign", where it is not source_column."""
    may_have_lists: bool = False
    keys: dict[str, str] = Field(default_factory=dict)
    """Further columns that are carried, and their names there."""

    @property
    def text_columns(self) -> list[str]:
        return [*super().text_columns, *([self.foreign_column] if self.foreign_column else [])]

    @property
    def carried(self) -> dict[str, str]:
        return ({self.foreign_column: "foreign"} if self.foreign_column else {}) | self.keys

    @property
    def list_column(self) -> str | None:
        return self.paraphrase_column if self.may_have_lists else None


class BuildSettings(Strict):
    """conf/pairs.yaml."""

    method: Literal[METHODS] | None = None  # type: ignore[valid-type]
    input: Uri | None = None
    """a table: file, folder or glob; versions and parallel take a .tmx too"""
    format: Literal["parquet", "jsonl", "csv", "tsv"] | None = None
    """by default from the file's name"""
    csv: Csv = Field(default_factory=Csv)
    foreign_column: str | None = None
    """the foreign sentence, whose equal values make a group"""
    text_column: str | None = None
    """the Chinese sentence (versions: or a list of them); by default text"""
    max_pairs: int | None = Field(None, ge=1)
    """at most so many of a group"""
    human_column: str | None = None
    """by default human"""
    machine_column: str | None = None
    """by default machine"""
    human: Uri | None = None
    """a file of sentences, one a line"""
    machine: Uri | None = None
    """a file of translations, line by line"""
    foreign: Uri | None = None
    """a file of what they translate, line by line"""
    source_lang: str | None = None
    """the foreign language, such as en"""
    target_lang: str = "zh"
    """the Chinese of a TMX; by default zh, which zh-CN and zh-TW are too"""
    translator: Uri | None = None
    """the model that makes the machine translations"""
    output: Uri | None = None
    """a folder or URI without pairs"""
    origin: Origin | None = None
    """parallel | back_translation | llm | human; by default the method's"""
    model: Uri | None = None
    """the model that writes: a folder or a name; parallel: what translated, for the lineage"""
    model_version: str | None = None
    """for the lineage"""
    directions: Literal["one", "both"] = "one"
    """both: each pair the other way round too"""
    seed: int = Field(1, ge=0, lt=2**63)
    """of the hash that chooses"""
    min_characters: int = Field(MIN_CHARACTERS, ge=1)
    """shorter sentences go to quarantine"""
    max_characters: int = Field(MAX_CHARACTERS, ge=1, le=20_000)
    """longer sentences go to quarantine"""
    piece_sentences: int = Field(2000, ge=1)
    target_file_mb: float = Field(128, gt=0)
    """size of output files"""
    back_translation: BackTranslationSettings = Field(default_factory=BackTranslationSettings)
    simplify: SimplifySettings = Field(default_factory=SimplifySettings)
    translation: TranslationSettings = Field(default_factory=TranslationSettings)
    cluster: ClusterSettings = Field(default_factory=ClusterSettings)
    llm: LlmSettings = Field(default_factory=LlmSettings)

    @model_validator(mode="after")
    def _consistent(self) -> BuildSettings:
        if self.min_characters > self.max_characters:
            raise ValueError("min_characters is above max_characters")
        self.origin = self.origin or DEFAULT_ORIGINS.get(self.method or "", "parallel")
        return self

    @property
    def moses(self) -> dict[str, str]:
        """Files of lines that belong together, by what they hold; none where a table is read."""
        names = ("foreign", "human", "machine")
        return {name: path for name in names if (path := getattr(self, name))}

    @property
    def tmx(self) -> bool:
        """Whether the input is a translation memory."""
        return (self.input or "").lower().endswith((".tmx", ".tmx.gz"))

    @property
    def paths(self) -> list[str]:
        """All that is read."""
        before = [self.cluster.clusters] if self.cluster.clusters else []
        return [*([self.input] if self.input else self.moses.values()), *before]

    def table(self) -> PairsInput:
        """The input as a table: foreign sentence and version, human and machine translation, or sentences."""
        columns = {
            "versions": (self.foreign_column, self.text_column or "text"),
            "parallel": (human := self.human_column or "human", self.machine_column or "machine"),
        }
        if self.translator:
            columns["parallel"] = human, human
        text = self.text_column or "text"
        source, paraphrase = columns.get(self.method or "", (text, text))
        return PairsInput(
            path=self.input or "",
            origin=self.origin,
            format=self.format,
            csv=self.csv,
            source_column=source or text,
            paraphrase_column=paraphrase,
            foreign_column=self.foreign_column if self.method == "parallel" else None,
            may_have_lists=self.method == "versions",
            keys=self.cluster.columns if self.method == "cluster" else {},
        )

    def parameters(self) -> dict[str, Any]:
        """What decides the pairs, beside the input: the lineage of each pair has it."""
        names = ["directions", "min_characters", "max_characters"]
        if self.method in ("versions", "cluster"):
            names += ["max_pairs"]
        if self.method != "parallel" or self.translator:
            names += ["seed"]
        return {name: getattr(self, name) for name in names} | self._groups()

    def _groups(self) -> dict[str, Any]:
        """What decides the pairs in the groups of the method."""
        groups = [getattr(self, name) for name, methods in GROUPS.items() if self.method in methods]
        if self.method == "parallel" and not self.translator:
            groups = []
        values: dict[str, Any] = {}
        for group in groups:
            values |= group.model_dump(mode="json", exclude=set(group.FREE))
        return values

    def deciding(self) -> dict[str, Any]:
        """All settings that decide the pairs: a building goes on with the same ones alone."""
        return self.model_dump(mode="json", exclude=INDIFFERENT) | self._groups()


def load_settings(path: str, overrides: dict[str, Any], assignments: list[str]) -> BuildSettings:
    """The YAML file under the options, complete for its method; JobError says what is not."""
    try:
        given = settings.load_settings(BuildSettings, path, overrides, assignments)
    except (OSError, ValueError) as error:
        raise JobError(str(error)) from error
    if not given.method:
        raise JobError(f"no method: give one of {', '.join(METHODS)}, or method in the config file")
    if not given.output:
        raise JobError("nowhere to write: give --output, or output in the config file")
    _check_own(given, assignments)
    if given.input and given.moses:
        raise JobError(
            f"--input and --{min(given.moses)}: give a table or files of lines, not both"
        )
    needed = {"human", "foreign" if given.translator else "machine"}
    if not given.input and not needed <= given.moses.keys():
        lines = f", or {' and '.join(f'--{name}' for name in sorted(needed))}, files of lines"
        raise JobError(
            f"nothing to read: give --input{lines if given.method == 'parallel' else ''}"
        )
    _check_translation(given)
    if given.method == "versions" and not (given.foreign_column or given.tmx):
        raise JobError(
            "--foreign-column is missing: the column whose equal values make versions of one sentence"
        )
    if given.moses and given.foreign_column:
        raise JobError(
            "--foreign-column: of a table; the foreign side of files of lines is --foreign"
        )
    if given.method == "llm":
        if not given.model:
            raise JobError(
                "--model is missing: the endpoint's name of it, or with --local a folder"
            )
        Prompt(given.llm)  # raises where a template is no good
        if not given.llm.local:
            check_place(given.llm.cache or given.output)
    return given


def _check_own(given: BuildSettings, assignments: list[str]) -> None:
    """Raises JobError for what another method alone has."""
    named = {
        f"--{name.replace('_', '-')}": methods
        for name, methods in OWN.items()
        if getattr(given, name) is not None
    }
    named |= {
        f"--set {assignment}": GROUPS[group]
        for assignment in assignments
        if (group := assignment.partition(".")[0]) in GROUPS
    }
    for option, methods in named.items():
        if given.method not in methods:
            names = ", ".join(methods)
            what = "the method" if len(methods) == 1 else "the methods"
            raise JobError(f"{option}: an option of {what} {names}, not of {given.method}")


def _check_translation(given: BuildSettings) -> None:
    """Raises JobError where it is open what is translated from which language."""
    wants = (given.tmx and "a TMX") or (given.translator and "--translator")
    if wants and given.method in ("versions", "parallel") and not given.source_lang:
        raise JobError(f"--source-lang is missing: the foreign language, for {wants}")
    if given.tmx and given.method not in ("versions", "parallel"):
        raise JobError(f"{given.input}: a TMX is for the methods versions and parallel")
    if given.tmx and given.method == "parallel" and not given.translator:
        raise JobError("--translator is missing: a TMX has no machine translations")
    if not given.translator:
        return
    if given.machine or given.machine_column:
        name = "machine" if given.machine else "machine-column"
        raise JobError(f"--{name} and --translator: the translations are there, or to be made")
    if given.input and not (given.foreign_column or given.tmx):
        raise JobError("--foreign-column is missing: what --translator is to translate")
