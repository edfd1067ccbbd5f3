"""Compares ways to make pairs on the same sources: what is kept, how it is judged, what it took.

  python research/compare_methods.py out --runs translated rewritten --output methods
  python research/compare_methods.py s3a://bucket/gaixie --runs a b --by group --output methods
  python research/compare_methods.py out --runs a b --by all --output methods

ROOT is the --output of jobs/score_corpus.py; the pairs say by which method and model they were made
(as those of jobs/build_pairs.py do; else each run is a method). Only sources of which every method
has a pair are looked at, or a random sample of --sources of them. Needs no Spark.

Writes OUTPUT/methods.md and methods.json: the share of pairs that reach each stage, the mean
judgements, and the differences of each two methods with 95 % intervals; quarantine by reason; time,
tokens and cost a thousand pairs from the manifests of the folders that the runs read; examples side
by side. Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.storage import storage


def main(argv: list[str] | None = None) -> int:
    """Runs the job; its exit code."""
    return run_command("compare_methods", partial(compare_methods, _arguments(argv)))


def compare_methods(args: argparse.Namespace) -> None:
    from gaixie.research.comparison.methods import compare
    from gaixie.research.comparison.methods_report import figures, sections
    from gaixie.udfs.reports import markdown_of, print_sections, write_json
    from gaixie.udfs.storage.local_copy import local_copy

    given = (args.by, args.sources, args.examples, args.samples, args.seed)
    found = compare(args.root, args.runs, *given)
    parts = sections(found)
    with local_copy(args.output) as (folder,):
        folder.mkdir(parents=True, exist_ok=True)
        text = markdown_of("Methods of making pairs", parts)
        (folder / "methods.md").write_text(text, "utf-8")
        write_json(folder / "methods.json", figures(found))
    print_sections(parts)
    print(f"\nreport: {storage.join(args.output, 'methods.md')}")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("compare_methods.py", __doc__)
    add = parser.add_argument
    add("root", metavar="ROOT", help="a local path or a URI")
    add("--runs", metavar="ID", nargs="+", required=True, help="published runs")
    add("--output", metavar="FOLDER", required=True)
    add(
        "--by", choices=("source", "group", "all"), default="source", help="what methods must share"
    )
    add("--sources", metavar="N", type=positive, default=20_000, help="at most; default 20000")
    add("--examples", metavar="N", type=int, default=5, help="default 5")
    add("--samples", metavar="N", type=positive, default=1_000, help="of the bootstrap")
    add("--seed", type=int, default=1, help="default 1")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
