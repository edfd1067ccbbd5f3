"""Makes sentence pairs for jobs/score_corpus.py from translations or plain Chinese sentences.

  python jobs/build_pairs.py versions --input wmt.parquet --foreign-column source_en \\
      --text-column translations_zh --output s3a://bucket/pairs/wmt
  python jobs/build_pairs.py parallel --human a.zh --machine a.mt.zh --foreign a.en --output out
  python jobs/build_pairs.py back-translation --input zh.tsv --model m2m100 --pivot ar --output out
  python jobs/build_pairs.py llm --input text.parquet --model qwen \\
      --base-url http://127.0.0.1:8000/v1 --output out
  python jobs/score_corpus.py --input out --output scored

  versions          pairs any two Chinese versions of one foreign sentence
  parallel          pairs a human with a machine translation; --translator makes the machine one
  back-translation  translates Chinese sentences into another language and back
  cluster           pairs Chinese sentences that say the same about the same thing
  llm               asks a language model to paraphrase Chinese sentences
  simplify          translates Chinese sentences into English, simplifies them, translates them back

  python jobs/build_pairs.py METHOD --help lists the options of a method.

Writes

  OUTPUT/pairs/*.parquet                 source, paraphrase, origin, group, and the lineage:
                                         method, model, version, parameters
  OUTPUT/quarantine/reason=…/*.parquet   what no pair uses, and why
  OUTPUT/clusters                        cluster only: input of the next month
  OUTPUT/manifest.json                   counts and settings; written last

The job fails unless sentences (parallel: rows) read = in pairs + in quarantine. A killed job starts
over under the same --output, or continues with --resume. Nothing published is overwritten. Exit
codes: 0 done, 2 user error (one line says what), 1 anything else. """

from __future__ import annotations

import argparse
import sys
from inspect import getdoc, getmodule
from pathlib import Path
from typing import Any

from gaixie.jobs.corpus.input import Csv
from gaixie.jobs.pairs.back_translation import BackTranslation
from gaixie.jobs.pairs.build import build_pairs
from gaixie.jobs.pairs.clusters.method import Clusters
from gaixie.jobs.pairs.llm import Llm
from gaixie.jobs.pairs.method import Method
from gaixie.jobs.pairs.parallel import Parallel
from gaixie.jobs.pairs.simplify import Simplify
from gaixie.jobs.pairs.versions import Versions
from gaixie.udfs.command_line import UserError, make_parser, positive, run_command
from gaixie.udfs.storage.settings import add_config, add_options, load_settings

CONFIG = Path(__file__).parents[1] / "conf/pairs.yaml"

METHODS: dict[str, type[Method]] = {
    "versions": Versions,
    "parallel": Parallel,
    "back-translation": BackTranslation,
    "cluster": Clusters,
    "llm": Llm,
    "simplify": Simplify,
}


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    how = args.limit, args.resume, args.take_over, args.dry_run
    return build_pairs(args.method, _settings(args), *how)


def _parser() -> argparse.ArgumentParser:
    """Returns the parser: a subcommand for each method, an option for each of its settings."""
    parser = make_parser("build_pairs.py", __doc__)
    methods = parser.add_subparsers(dest="method", metavar=" | ".join(METHODS), required=True)
    for name, method in METHODS.items():
        text, kind = getdoc(getmodule(method)), argparse.RawDescriptionHelpFormatter
        one = methods.add_parser(name, description=text, formatter_class=kind, allow_abbrev=False)
        special = [field for field in method.model_fields if field not in Method.model_fields]
        add_options(one.add_argument_group("options of this method"), method, *special)
        common = one.add_argument_group("options of all methods")
        shared = [field for field in Method.model_fields if field != "csv"]
        add_options(common, method, *shared)
        add_options(common, Csv, *Csv.model_fields, within="csv.")
        common.add_argument("--limit", metavar="N", type=positive, help="only the first N rows")
        goes_on = "continue from what a killed job finished"
        common.add_argument("--resume", action="store_true", help=goes_on)
        other = "take over the output from a process on another host, which must have ended"
        common.add_argument("--take-over", action="store_true", help=other)
        tries = "only read the first rows, and say what they would give the method"
        common.add_argument("--dry-run", action="store_true", help=tries)
        add_config(common, CONFIG, "conf/pairs.yaml")
    return parser


def _settings(args: argparse.Namespace) -> Method:
    """Returns the method's settings: the command line over its section of conf/pairs.yaml, which is
    over the section `all`. Raises UserError in one line."""
    method, values = METHODS[args.method], vars(args)
    given: dict[str, Any] = {name: values.get(name) for name in method.model_fields}
    csv = {name: values[f"csv.{name}"] for name in Csv.model_fields}
    given["csv"] = {name: value for name, value in csv.items() if value is not None} or None
    try:
        return load_settings(method, args.config, given, args.set, ("all", args.method))
    except (OSError, ValueError) as error:
        place, _, fault = str(error).rpartition(": ")
        option = f"--{place.rpartition(': ')[2].replace('_', '-')}"
        said = f"{option} is missing" if fault == "Field required" else str(error)
        raise UserError(said) from error


if __name__ == "__main__":
    resumable = "the building can be resumed with --resume"
    sys.exit(run_command("build_pairs", main, resumable, mistakes=()))
