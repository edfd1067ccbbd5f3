"""Makes the command line of jobs/build_pairs.py, and loads the settings of a method.

Each method is a subcommand; its options are the fields of its class. The command line overrides the
method's section of conf/pairs.yaml, which overrides the section `all`.
"""

from __future__ import annotations

import argparse
from inspect import getdoc, getmodule
from pathlib import Path
from typing import Any

from gaixie.jobs.corpus.input import Csv
from gaixie.jobs.pairs.back_translation import BackTranslation
from gaixie.jobs.pairs.clusters.method import Clusters
from gaixie.jobs.pairs.llm import Llm
from gaixie.jobs.pairs.method import Method
from gaixie.jobs.pairs.parallel import Parallel
from gaixie.jobs.pairs.simplify import Simplify
from gaixie.jobs.pairs.versions import Versions
from gaixie.udfs.command_line import Parser, UserError, positive
from gaixie.udfs.storage.options import add_config, add_options
from gaixie.udfs.storage.settings import load_settings

CONFIG = Path(__file__).parents[2] / "conf/pairs.yaml"

METHODS: dict[str, type[Method]] = {
    "versions": Versions,
    "parallel": Parallel,
    "back-translation": BackTranslation,
    "cluster": Clusters,
    "llm": Llm,
    "simplify": Simplify,
}

SWITCHES = {
    "resume": "continue from what a killed job finished",
    "take-over": "take over the output from a process on another host, which must have ended",
    "dry-run": "build from the first rows, show some pairs, delete everything; llm: send nothing",
}


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns the parser of all methods."""
    kind = argparse.RawDescriptionHelpFormatter
    parser = Parser("build_pairs.py", description=description, formatter_class=kind)
    names = " | ".join(METHODS)
    methods = parser.add_subparsers(dest="method", metavar=names, required=True)
    for name, method in METHODS.items():
        text = getdoc(getmodule(method))
        one = methods.add_parser(name, description=text, formatter_class=kind, allow_abbrev=False)
        special = [field for field in method.model_fields if field not in Method.model_fields]
        add_options(one.add_argument_group("options of this method"), method, *special)
        common = one.add_argument_group("options of all methods")
        shared = [field for field in Method.model_fields if field != "csv"]
        add_options(common, method, *shared)
        add_options(common, Csv, *Csv.model_fields, within="csv.")
        common.add_argument("--limit", metavar="N", type=positive, help="only the first N rows")
        for switch, text in SWITCHES.items():
            common.add_argument(f"--{switch}", action="store_true", help=text)
        add_config(common, CONFIG, "conf/pairs.yaml")
    return parser


def load_method(args: argparse.Namespace) -> Method:
    """Returns the method and its settings. Raises UserError in one line."""
    given: dict[str, Any] = {}
    for name, value in vars(args).items():
        if name.startswith("csv.") and value is not None:
            given.setdefault("csv", {})[name.removeprefix("csv.")] = value
        elif name in METHODS[args.method].model_fields:
            given[name] = value
    try:
        sections = "all", args.method
        return load_settings(METHODS[args.method], args.config, given, args.set, sections)
    except (OSError, ValueError) as error:
        place, _, fault = str(error).rpartition(": ")
        option = f"--{place.rpartition(': ')[2].replace('_', '-')}"
        said = f"{option} is missing" if fault == "Field required" else str(error)
        raise UserError(said) from error
