"""Analyses a human evaluation of systems: agreement, which system is better, and how surely.

  python research/analyse_human_evaluation.py likert anna.csv bo.csv --output evaluation
  python research/analyse_human_evaluation.py likert all.csv --scale 1 5 --output evaluation
  python research/analyse_human_evaluation.py ranking all.csv --output evaluation
  python research/analyse_human_evaluation.py ranking all.csv --systems mt ours --output evaluation

Sheets are CSV or TSV in UTF-8. likert: columns item, system, annotator, and one for each criterion.
ranking: item, system, annotator, rank (1 is the best, ties allowed), or with --systems a column for
each system that holds its rank. Without a column annotator, the file's name is the annotator. Empty
cells are answers that were not given.

Writes OUTPUT/human_evaluation.md and .json: for each criterion, and for the average of several,
Krippendorff's alpha, weighted kappa of each two annotators, the systems' means and places with 95 %
intervals and standard deviations (MCTS, Table 6), and each two systems by Wilcoxon's signed-rank
test (with Holm's adjustment) and by paired bootstrap. Every path may be on S3. Exit codes: 0 done,
2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.storage import storage

RANKS = (1, 1_000)


def main(argv: list[str] | None = None) -> int:
    """Runs the job and gives its exit code."""
    return run_command("analyse_human_evaluation", partial(analyse_sheets, _arguments(argv)))


def analyse_sheets(args: argparse.Namespace) -> None:
    """Reads, analyses, writes."""
    from gaixie.research.annotation.systems import KEY, analyse, read_sheets, with_average
    from gaixie.udfs.reports import render, write_json
    from gaixie.udfs.storage.local_copy import local_copy

    low, high = args.scale
    if low >= high:
        raise ValueError(f"--scale {low} {high}: expected the lowest rating, then the highest")
    ranking = args.kind == "ranking"
    criteria = ["rank"] if ranking and not args.systems else args.criteria
    table = with_average(read_sheets(args.sheets, (low, high), criteria, args.systems))
    names = table.columns.drop(KEY)
    found = {name: analyse(table, name, ranking, args.samples, args.seed) for name in names}
    text = render(
        Path(__file__).parent / "annotation/human_evaluation.md.j2",
        items=table["item"].nunique(),
        systems=sorted(set(table["system"])),
        annotators=sorted(set(table["annotator"])),
        criteria=found,
    )
    with local_copy(args.output) as (folder,):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "human_evaluation.md").write_text(text, "utf-8")
        write_json(folder / "human_evaluation.json", found)
    print(text)
    print(f"report: {storage.join(args.output, 'human_evaluation.md')}")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("analyse_human_evaluation.py", __doc__)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="likert | ranking")
    likert = kinds.add_parser("likert", help="ratings on a scale")
    ends: dict[str, Any] = {"nargs": 2, "type": int, "metavar": ("LOW", "HIGH"), "default": (0, 5)}
    likert.add_argument("--scale", **ends, help="default 0 5")
    all_of = "by default all"
    likert.add_argument("--criteria", metavar="COLUMN", nargs="+", default=[], help=all_of)
    ranking = kinds.add_parser("ranking", help="ranks, 1 the best")
    ranking.add_argument("--systems", metavar="COLUMN", nargs="+", default=[], help="a column each")
    likert.set_defaults(systems=[])
    ranking.set_defaults(criteria=[], scale=RANKS)
    for kind in (likert, ranking):
        kind.add_argument("sheets", metavar="SHEET", nargs="+", help="CSV or TSV")
        kind.add_argument("--output", metavar="FOLDER", required=True, help="for the report")
        number: dict[str, Any] = {"metavar": "N", "type": positive, "default": 1_000}
        kind.add_argument("--samples", **number, help="of the bootstrap (%(default)s)")
        kind.add_argument("--seed", type=int, default=0, help="of the bootstrap (%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
