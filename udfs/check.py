"""Checks that the pairs of a file are good enough, as a gate in CI or before a commit.

  gaixie check pairs.jsonl --min-score 0.4 --min-meaning 0.8
  gaixie check pairs.csv --source 原句 --paraphrase 改写 --min-meaning 0.8 --share 0.95

Prints the pairs that fall short, lowest score first, with the reasons; then the number that pass.
--share is the share that must pass.

Exit codes: 0 enough pairs pass, 1 too few do, 2 a mistake, explained in one line.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.storage.text_tables import READ, read_columns

PASSED, FAILED = 0, 1


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    return run_command("check", lambda: check(_arguments(argv)))


def check(args: argparse.Namespace) -> int:
    """Scores the pairs and prints those that fall short. Raises ValueError for a bad file or
    option.
    """
    floors = {name: own for name in OUTPUTS if (own := getattr(args, name)) is not None}
    if not floors:
        raise ValueError("expected --min-score, --min-meaning or another floor")
    for name, floor in {**floors, "share": args.share}.items():
        if not 0 <= floor <= 1:
            raise ValueError(f"{name}: expected 0 to 1, not {floor:g}")
    rows = list(read_columns(args.pairs, [args.source, args.paraphrase]))
    if not rows:
        raise ValueError(f"{args.pairs}: no pairs")
    metric = SPScore.load(args.tier)
    sources, paraphrases = zip(*rows, strict=True)
    outputs = metric.outputs(sources, paraphrases)
    # A pair without a score fails.
    below = np.array([~(outputs[:, OUTPUTS.index(name)] >= own) for name, own in floors.items()])
    short = np.flatnonzero(below.any(axis=0))
    order = short[np.argsort(outputs[short, -1], kind="stable")]
    for place in order[: args.show]:
        named = [name for name, own in zip(floors, below[:, place], strict=True) if own]
        values = ", ".join(f"{name} {outputs[place, OUTPUTS.index(name)]:.3f}" for name in named)
        values = values.replace("nan", "unknown")
        source, paraphrase = rows[place]
        print(f"{args.pairs}, row {place + 1}: {values}\n  {source}\n  {paraphrase}")
        for reason in metric.explain(source, paraphrase) if source and paraphrase else ():
            print(f"    {reason}")
    if len(order) > args.show:
        print(f"… and {len(order) - args.show:,} more")
    share = 1 - len(short) / len(rows)
    passed = f"{len(rows) - len(short):,} of {len(rows):,} pairs pass ({share:.1%})"
    print(f"{passed}, {args.share:.1%} required; {metric.signature()}")
    return PASSED if share >= args.share else FAILED


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("check", __doc__)
    add = parser.add_argument
    add("pairs", metavar="PAIRS", help=f"a file of {', '.join(READ[1:])}")
    for name in OUTPUTS:
        option = "--min-score" if name == "spscore" else f"--min-{name}"
        what = "the score" if name == "spscore" else name
        add(option, dest=name, type=float, metavar="0-1", help=f"minimum of {what}")
    share = "share that must pass (%(default)s)"
    add("--share", type=float, default=1.0, metavar="0-1", help=share)
    add("--show", type=positive, default=20, metavar="N", help="pairs to show (%(default)s)")
    for side in ("source", "paraphrase"):
        what = f"column of the {side}s (%(default)s)"
        add(f"--{side}", default=side, metavar="COLUMN", help=what)
    add("--tier", default="core", help="paper, core, full, or a model's folder (%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
