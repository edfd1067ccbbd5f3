"""Has pairs rated, or systems read blindly: sheets out; agreement, comparisons and ratings back.

  python research/annotate.py draw out/runs/demo --pairs 60 --output sheets
  python research/annotate.py blind sources.txt ours=ours.txt theirs=theirs.txt --output sheets
  python research/annotate.py report sheets anna.tsv bo.tsv --output rated
  python research/fit_spscore.py --input rated/ratings.parquet --output models/mine

draw    samples pairs from a run, a release or a table with source and paraphrase: equally many from
        each origin and each fifth of the score, no two of one group
blind   takes what systems wrote, a file of lines for each; raters do not see which wrote what
report  reads what raters returned (columns id, structure, synonyms, meaning, fluency, overall, each
        0 to 5; --criteria names others), and writes annotation.md, annotation.json, and
        ratings.parquet, one rating for each pair

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from gaixie.research.annotation import report as measures
from gaixie.research.annotation.agreement import krippendorff
from gaixie.research.annotation.sampling import sample
from gaixie.research.annotation.sheets import CRITERIA, read_key, read_ratings, write_sheet
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.metrics.bootstrap import bootstrap_interval
from gaixie.udfs.reports import render, write_json

TEMPLATE = Path(__file__).parent / "annotation/annotation.md.j2"


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    args = _arguments(argv)
    return run_command("annotate", partial(args.work, args))


def draw(args: argparse.Namespace) -> None:
    """Samples pairs and writes the sheet."""
    pairs, strata = sample(args.pairs_of, args.pairs, args.seed)
    pairs = pairs.rename(columns={"method": "kind"}).fillna({"kind": "rated", "origin": "human"})
    print(strata.to_string())
    print(f"{write_sheet(pairs, args.output, args.seed)}: {len(pairs)} pairs")


def blind(args: argparse.Namespace) -> None:
    """Writes the sheet of what systems wrote."""
    sources = args.sources.read_text("utf-8").splitlines()
    parts = []
    for given in args.systems:
        name, equals, file = given.partition("=")
        lines = Path(file).read_text("utf-8").splitlines() if equals and name else []
        if len(lines) != len(sources):
            raise ValueError(f"{given}: expected NAME=FILE with {len(sources)} lines")
        parts.append(pd.DataFrame({"source": sources, "paraphrase": lines, "system": name}))
    rows = pd.concat([part.assign(item=part.index) for part in parts], ignore_index=True)
    rows = rows[rows["paraphrase"].str.strip() != ""]
    print(f"{write_sheet(rows, args.output, args.seed)}: {len(rows)} pairs")


def report(args: argparse.Namespace) -> None:
    """Reads the ratings, compares raters and systems, and writes one rating for each pair."""
    key = read_key(args.sheet)
    ratings = read_ratings(args.ratings, key, args.criteria)
    criteria: dict[str, dict[str, Any]] = {}
    for name in args.criteria:
        table = ratings.pivot(index="id", columns="rater", values=name)
        raters = measures.compare_raters(ratings, name)
        criteria[name] = {"alpha": krippendorff(table.to_numpy(float)), "raters": raters}
        if "system" in key and key["system"].nunique() > 1:
            criteria[name] |= measures.compare_systems(ratings, key, name)
    rated = measures.one_rating(ratings, key, args.criteria)
    figures = {
        "pairs": len(rated),
        "disputed": int(rated["disputed"].sum()),
        "criteria": criteria,
        "spscore": _spscore(rated) if {"spscore", "overall"} <= {*rated} else None,
    }
    args.output.mkdir(parents=True, exist_ok=True)
    rated.to_parquet(args.output / "ratings.parquet", index=False)
    write_json(args.output / "annotation.json", figures)
    text = render(TEMPLATE, **figures)
    (args.output / "annotation.md").write_text(text, "utf-8")
    print(text)


def _spscore(rated: pd.DataFrame) -> dict[str, float] | None:
    both = rated[["spscore", "overall"]].astype(float).dropna()
    if len(both) < 3:
        return None

    def spearman(one, other) -> float:
        return float(pd.Series(one).corr(pd.Series(other), "spearman"))

    columns = (both["spscore"].to_numpy(), both["overall"].to_numpy())
    low, high = bootstrap_interval(spearman, columns, range(len(both)))
    return {"pairs": len(both), "value": spearman(*columns), "low": low, "high": high}


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("annotate.py", __doc__)
    commands = parser.add_subparsers(required=True, metavar="draw | blind | report")
    made = commands.add_parser("draw", help="sample pairs and write a sheet")
    made.set_defaults(work=draw)
    made.add_argument("pairs_of", metavar="PAIRS", help="a run, a release, or a table of pairs")
    made.add_argument("--pairs", metavar="N", type=positive, default=200, help="(%(default)s)")
    blindly = commands.add_parser("blind", help="write a sheet of what systems wrote")
    blindly.set_defaults(work=blind)
    blindly.add_argument("sources", metavar="FILE", type=Path, help="a sentence a line")
    blindly.add_argument("systems", metavar="NAME=FILE", nargs="+", help="their paraphrases")
    for command in (made, blindly):
        command.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    reporting = commands.add_parser("report", help="read ratings, and compare")
    reporting.set_defaults(work=report)
    reporting.add_argument("sheet", metavar="FOLDER", type=Path, help="that draw or blind left")
    reporting.add_argument("ratings", metavar="RATINGS", type=Path, nargs="+", help="by rater")
    reporting.add_argument("--criteria", nargs="+", default=CRITERIA, help="columns of the ratings")
    for command in (made, blindly, reporting):
        command.add_argument("--output", metavar="FOLDER", type=Path, required=True)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
