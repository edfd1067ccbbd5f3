"""Chooses sentences that are worth simplifying, by the HSK levels of their words.

  python research/choose_originals.py --input sentences.txt --output originals.txt
  python research/choose_originals.py --input corpus.parquet --column text --least 4.5 \\
      --output originals.txt

A sentence is kept where the mean level of its words is --least or more: levels 1 to 6, 7 for the
band 7 to 9, 8 for a word in no list; punctuation is no word. Prints how many are kept.

  OUTPUT    the sentences that are kept, one a line, as they are, in their order

Source: Chong et al. 2024, *MCTS: A Multi-Reference Chinese Text Simplification Dataset*, section
3.1: sentences whose words are easy on average are left out, and people choose among the rest. Its
threshold is not given here. Decided here: the default is the mean level that 95 % of MCTS's
development originals have or exceed.

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np

from gaixie.research.simplification.measure import LEAST
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.metrics.hsk import BEYOND, mean_levels
from gaixie.udfs.storage.text_tables import read_columns, read_lines


def main(argv: list[str] | None = None) -> int:
    """Runs the job and gives its exit code."""
    return run_command("choose_originals", partial(choose, _arguments(argv)))


def choose(args: argparse.Namespace) -> None:
    """Reads, chooses, writes."""
    if not 1 <= args.least <= BEYOND:
        raise ValueError(f"--least {args.least:g}: expected a level from 1 to {BEYOND}")
    if args.column:
        texts = [text or "" for (text,) in read_columns(args.input, [args.column])]
    else:
        texts = list(read_lines(args.input, "strict"))
    level = mean_levels(texts, args.segmenter)
    kept = level >= args.least  # a text without a word is not
    lines = (" ".join(text.split()) + "\n" for text, keep in zip(texts, kept, strict=True) if keep)
    args.output.write_text("".join(lines), "utf-8")
    edges = ", ".join(f"{value:.2f}" for value in np.nanquantile(level, (0.05, 0.5, 0.95)))
    print(
        f"{args.input}: {kept.sum():,} of {len(texts):,} sentences of level {args.least:g} or more"
    )
    print(f"mean level of a sentence, 5 %, 50 % and 95 %: {edges}")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("choose_originals.py", __doc__)
    add = parser.add_argument
    add("--input", required=True, metavar="FILE", help="sentences, one a line, or a table")
    add("--column", metavar="NAME", help="of the table; without it FILE has lines")
    add("--least", type=float, default=LEAST, metavar="LEVEL", help="mean level (%(default)s)")
    add("--output", type=Path, required=True, metavar="FILE", help="what is kept")
    add("--segmenter", default="jieba", metavar="NAME", help="jieba or ltp:FOLDER (%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
