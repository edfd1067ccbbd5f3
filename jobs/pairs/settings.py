"""Loads and checks the settings of jobs/build_pairs.py before Spark starts.

Command-line options override conf/pairs.yaml. This file has the settings that all methods share;
those of one method are in its own file.
"""

from __future__ import annotations

import argparse
import json
import sys
from inspect import getdoc, getmodule
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from gaixie.jobs.corpus.settings import Csv, Input, Origin, Uri
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.back_translation import BackTranslation, BackTranslationSettings
from gaixie.jobs.pairs.cluster.method import Cluster, ClusterSettings
from gaixie.jobs.pairs.llm.method import Llm, LlmSettings
from gaixie.jobs.pairs.method import Group, Method
from gaixie.jobs.pairs.parallel import FILES, Parallel
from gaixie.jobs.pairs.simplify import Simplify, SimplifySettings
from gaixie.jobs.pairs.translation import TranslationSettings
from gaixie.jobs.pairs.versions import Versions
from gaixie.udfs.command_line import Parser, positive
from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS
from gaixie.udfs.storage import settings
from gaixie.udfs.storage.options import add_config, add_options
from gaixie.udfs.storage.settings import Strict

CONFIG = Path(__file__).parents[2] / "conf/pairs.yaml"

METHODS: dict[str, type[Method]] = {
    "versions": Versions,
    "parallel": Parallel,
    "back-translation": BackTranslation,
    "cluster": Cluster,
    "llm": Llm,
    "simplify": Simplify,
}

OWN = {name for method in METHODS.values() for name in method.options} - {"target_lang"}
"""Settings that only some methods have."""

DECIDE_ALL = ("directions", "min_characters", "max_characters")
"""Settings that affect the pairs of every method."""


class PairsInput(Input):
    """A table whose columns become pairs: paraphrase_column may hold lists."""

    foreign_column: str | None = None
    """carried as "foreign" where it is not source_column"""
    may_have_lists: bool = False
    keys: dict[str, str] = Field(default_factory=dict)
    """further columns that are carried, and their names there"""

    @property
    def text_columns(self) -> list[str]:
        return [*super().text_columns, *filter(None, [self.foreign_column])]

    @property
    def carried(self) -> dict[str, str]:
        return ({self.foreign_column: "foreign"} if self.foreign_column else {}) | self.keys

    @property
    def list_column(self) -> str | None:
        return self.paraphrase_column if self.may_have_lists else None


class BuildSettings(Strict):
    """conf/pairs.yaml."""

    method: Literal[tuple(METHODS)] | None = None  # type: ignore[valid-type]
    input: Uri | None = None
    """a table: a file, a folder or a glob"""
    format: Literal["parquet", "jsonl", "csv", "tsv"] | None = None
    """by default from the file's name"""
    csv: Csv = Field(default_factory=Csv)
    foreign_column: str | None = None
    """the column of the foreign sentence; its equal values make a group"""
    text_column: str | None = None
    """the column of the Chinese sentence (for versions, or of a list of them); default text"""
    max_pairs: int | None = Field(None, ge=1)
    """keep at most N pairs of one foreign sentence or cluster, chosen by a hash"""
    human_column: str | None = None
    """the column of the human translation; default human"""
    machine_column: str | None = None
    """the column of the machine translation; default machine"""
    human: Uri | None = None
    """file of human translations, one a line, instead of --input"""
    machine: Uri | None = None
    """file of machine translations, one a line"""
    foreign: Uri | None = None
    """file of the foreign sentences, one a line"""
    source_lang: str | None = None
    """the foreign language of a TMX or of what --translator translates, such as en"""
    target_lang: str = "zh"
    """the Chinese language code in a TMX; default zh, which includes zh-CN and zh-TW"""
    translator: Uri | None = None
    """the model that makes the machine translations: a folder or a name"""
    output: Uri | None = None
    """a folder or URI that holds no pairs yet"""
    origin: Origin | None = None
    """parallel | back_translation | llm | human; by default the method's"""
    model: Uri | None = None
    """the model that writes: a folder or a name; for parallel, the translator to record"""
    model_version: str | None = None
    """the version of the model, to record in the lineage"""
    directions: Literal["one", "both"] = "one"
    """both: also write each pair in the other direction"""
    seed: int = Field(1, ge=0, lt=2**63)
    """seed of the hash that chooses pairs, and of sampling by models"""
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
        self.origin = self.origin or METHODS.get(self.method or "", Method).origin
        return self

    @property
    def folder(self) -> str:
        """Returns the output without a trailing slash."""
        return str(self.output).rstrip("/")

    @property
    def both(self) -> bool:
        return self.directions == "both"

    @property
    def moses(self) -> dict[str, str]:
        """Returns the parallel files of lines, by what they hold; none if a table is read."""
        return {name: path for name in FILES if (path := getattr(self, name))}

    @property
    def tmx(self) -> bool:
        """Returns whether the input is a translation memory."""
        return (self.input or "").lower().endswith((".tmx", ".tmx.gz"))

    @property
    def paths(self) -> list[str]:
        """Returns all paths that are read."""
        read = [self.input] if self.input else [*self.moses.values()]
        return [*read, *filter(None, [self.cluster.clusters])]

    def table(self) -> PairsInput:
        """Returns the input as a table of versions, translations, or sentences."""
        source = paraphrase = self.text_column or "text"
        if self.method == "versions":
            source = self.foreign_column or source
        elif self.method == "parallel":
            source = paraphrase = self.human_column or "human"
            if not self.translator:
                paraphrase = self.machine_column or "machine"
        return PairsInput(
            path=self.input or "",
            origin=self.origin,
            format=self.format,
            csv=self.csv,
            source_column=source,
            paraphrase_column=paraphrase,
            foreign_column=self.foreign_column if self.method == "parallel" else None,
            may_have_lists=self.method == "versions",
            keys=self.cluster.columns if self.method == "cluster" else {},
        )

    def parameters(self, method: Method) -> dict[str, Any]:
        """Returns what decides the pairs besides the input; each pair's lineage has it."""
        values: dict[str, Any] = {}
        for name in (*DECIDE_ALL, *method.decides):
            value = getattr(self, name)
            values |= value.deciding() if isinstance(value, Group) else {name: value}
        return values

    def deciding(self, method: Method) -> dict[str, Any]:
        """Returns everything that must stay the same when a killed building is resumed."""
        groups = {name for name, value in self if isinstance(value, Group)}
        others = self.model_dump(
            mode="json", exclude={"output", "origin", "target_file_mb"} | groups
        )
        return others | self.parameters(method)


def load_settings(
    path: str, overrides: dict[str, Any], options: dict[str, str]
) -> tuple[BuildSettings, Method]:
    """Loads the YAML file under the options, completes it for its method, and makes the method.

    options: the option behind each assignment KEY=VALUE. Raises JobError of one line.
    """
    try:
        given = settings.load_settings(BuildSettings, path, overrides, list(options))
    except (OSError, ValueError) as error:
        assignment = str(error).removeprefix("--set ").partition(": ")[0]
        option = options.get(assignment, f"--set {assignment}")
        raise JobError(str(error).replace(f"--set {assignment}", option, 1)) from error
    if not given.method:
        raise JobError(f"no method: give one of {', '.join(METHODS)}, or method in the config file")
    if not given.output:
        raise JobError("nowhere to write: give --output, or output in the config file")
    _check_own(given, options)
    _check_input(given)
    return given, METHODS[given.method].of(given)


def _check_own(given: BuildSettings, options: dict[str, str]) -> None:
    """Raises JobError for an option that the method does not have."""
    own = {name for name in OWN if getattr(given, name) is not None}
    named = {name: f"--{name.replace('_', '-')}" for name in own}
    named |= {assignment.partition(".")[0]: option for assignment, option in options.items()}
    for name, option in named.items():
        methods = [key for key, kind in METHODS.items() if name in (*kind.options, *kind.groups)]
        if methods and given.method not in methods:
            of = f"method{'s' * (len(methods) > 1)} {', '.join(methods)}"
            raise JobError(f"{option}: an option of the {of}, not of {given.method}")


def _check_input(given: BuildSettings) -> None:
    """Raises JobError if the options do not say what to read, or in which language."""
    lines, has_foreign = given.moses, given.method in ("versions", "parallel")
    if given.input and lines:
        raise JobError(f"--input and --{min(lines)}: give a table or files of lines, not both")
    needed = {"human", "foreign" if given.translator else "machine"}
    if not given.input and not needed <= lines.keys():
        names = " and ".join(f"--{name}" for name in sorted(needed))
        more = f", or {names}, files of lines" if given.method == "parallel" else ""
        raise JobError(f"nothing to read: give --input{more}")
    if lines and given.foreign_column:
        raise JobError("--foreign-column is for a table; for files of lines, give --foreign")
    if given.tmx and not has_foreign:
        raise JobError(f"{given.input}: only the methods versions and parallel read a TMX")
    wants = (given.tmx and "a TMX") or (given.translator and "--translator")
    if wants and has_foreign and not given.source_lang:
        raise JobError(f"--source-lang is missing: {wants} needs the foreign language")


# The command line: options are fields of the settings

READ = ("input", "format")
MAKE = ("output", "origin", "directions", "seed", "min_characters", "max_characters")
SWITCHES = {
    "resume": "continue from what a killed job finished",
    "take-over": "take over the output from a process on another host, which must have ended",
    "dry-run": "try the first rows, write nothing",
}


def parse(argv: list[str] | None, description: str | None) -> argparse.Namespace:
    """Parses the command line. Help shows the options of the method that comes first, if one does.

    Fields of groups have dots in their names, such as llm.prompt. Raises JobError of one line.
    """
    words = sys.argv[1:] if argv is None else argv
    parser = make_parser(words[0] if words else "", description)
    names = {action.dest: action.option_strings[-1] for action in parser._actions[2:]}
    return parser.parse_args(words, argparse.Namespace(options=names))


def make_parser(method: str, description: str | None) -> argparse.ArgumentParser:
    """Returns a parser whose help shows one method's options, or all of them."""
    shown = METHODS.get(method)
    if shown:
        description = getdoc(getmodule(shown))
    kind = argparse.RawDescriptionHelpFormatter
    usage = f"build_pairs.py {method if shown else 'METHOD'} [--OPTION VALUE ...]"
    parser = Parser("build_pairs.py", usage, description, formatter_class=kind, allow_abbrev=False)
    names = " | ".join(METHODS)
    parser.add_argument("method", nargs="?", choices=[*METHODS], metavar="METHOD", help=names)
    read = parser.add_argument_group("what to read")
    add_options(read, BuildSettings, *READ)
    add_options(read, Csv, "columns", "encoding", within="csv.")
    read.add_argument("--limit", metavar="N", type=positive, help="only the first N rows")
    _add_own(parser, shown)
    make = parser.add_argument_group("what to make")
    add_options(make, BuildSettings, *MAKE, "target_file_mb")
    for name, text in SWITCHES.items():
        make.add_argument(f"--{name}", action="store_true", help=text)
    add_config(make, CONFIG, "conf/pairs.yaml")
    return parser


def _add_own(parser: argparse.ArgumentParser, shown: type[Method] | None) -> None:
    """Adds the options that only some methods have; help hides those that the shown one lacks."""
    own = parser.add_argument_group(f"options of {'this method' if shown else 'some methods'}")
    for name, field in BuildSettings.model_fields.items():
        before = len(own._group_actions)
        if name in OWN | {"target_lang"}:
            add_options(own, BuildSettings, name)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, Group):
            group = field.annotation
            add_options(own, group, within=f"{name}.", **group.options())
        if shown and name not in (*shown.options, *shown.groups):
            for action in own._group_actions[before:]:
                action.help = argparse.SUPPRESS


def assignments(args: argparse.Namespace) -> dict[str, str]:
    """Returns the values set below the top level, as KEY=VALUE, with the option as given."""
    given: dict[str, str] = {}
    for name, value in vars(args).items():
        if "." in name and value is not None:
            words = value if isinstance(value, list) else [] if value is True else [value]
            given[f"{name}={json.dumps(value)}"] = " ".join([args.options[name], *words])
    return given | {assignment: f"--set {assignment}" for assignment in args.set}
