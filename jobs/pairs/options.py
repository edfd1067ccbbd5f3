"""The command line of jobs/build_pairs.py: options are fields of the settings."""

from __future__ import annotations

import argparse
import json
import sys
from inspect import getdoc, getmodule
from typing import NoReturn

from gaixie.jobs.corpus.settings import Csv
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.method import Group, Method
from gaixie.jobs.pairs.settings import CONFIG, METHODS, OWN, BuildSettings
from gaixie.udfs.command_line import positive
from gaixie.udfs.storage.options import add_config, add_options

READ = ("input", "format")
MAKE = ("output", "origin", "directions", "seed", "min_characters", "max_characters")
SWITCHES = {
    "resume": "go on with what a killed building finished",
    "take-over": "take the output from a process on another host, which must be gone",
    "dry-run": "look at the first rows, write nothing",
}


class _Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        raise JobError(f"{message}; --help lists the options")


def parse(argv: list[str] | None, description: str | None) -> argparse.Namespace:
    """Parses the command line. Help shows the options of the method that comes first, if one does.

    Fields of groups have dots in their names, such as llm.prompt. Raises JobError of one line.
    """
    words = sys.argv[1:] if argv is None else argv
    parser = make_parser(words[0] if words else "", description)
    names = {action.dest: action.option_strings[-1] for action in parser._actions[2:]}
    return parser.parse_args(words, argparse.Namespace(options=names))


def make_parser(method: str, description: str | None) -> argparse.ArgumentParser:
    """Returns a parser whose help shows the options of a method; of all where it is none."""
    shown = METHODS.get(method)
    if shown:
        description = getdoc(getmodule(shown))
    kind = argparse.RawDescriptionHelpFormatter
    usage = f"build_pairs.py {method if shown else 'METHOD'} [--OPTION VALUE ...]"
    parser = _Parser("build_pairs.py", usage, description, formatter_class=kind, allow_abbrev=False)
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
    """Adds what only some methods have; help hides what the shown one has not."""
    own = parser.add_argument_group("of this method" if shown else "of some methods")
    for name, field in BuildSettings.model_fields.items():
        before = len(own._group_actions)
        if name in OWN | {"target_lang"}:
            add_options(own, BuildSettings, name)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, Group):
            add_options(own, field.annotation, within=f"{name}.", **field.annotation.OPTIONS)
        if shown and name not in (*shown.options, *shown.groups):
            for action in own._group_actions[before:]:
                action.help = argparse.SUPPRESS


def assignments(args: argparse.Namespace) -> dict[str, str]:
    """Returns what is set below the top level, as KEY=VALUE, and the option as it was given."""
    given: dict[str, str] = {}
    for name, value in vars(args).items():
        if "." in name and value is not None:
            words = value if isinstance(value, list) else [] if value is True else [value]
            given[f"{name}={json.dumps(value)}"] = " ".join([args.options[name], *words])
    return given | {assignment: f"--set {assignment}" for assignment in args.set}
