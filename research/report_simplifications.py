"""Reports simplifications with several references as MCTS does: features, HSK levels, systems.

  python research/report_simplifications.py --data mcts --output report/
  python research/report_simplifications.py --data mcts --system ours=ours.txt --output report/

--data is a folder with NAME.PART.orig, one original per line, and NAME.PART.simp.0, .1, …, whose
lines are its references. A system's file has the simplification of each line. Prints and writes

  OUTPUT/simplifications.md     features (Table 2), HSK levels (Table 3), systems (Table 5)
  OUTPUT/simplifications.json   the same figures

The report always has the rows "source", the unchanged originals, and "a person", each reference
against the others. As in the paper, SARI and BLEU count words, and SARI's deletions count by F1.
docs/papers.md has the paper's figures beside ours. To compare models, or systems of a table, use
training/evaluate.py --reference.

Source: Chong et al. 2024, *MCTS: A Multi-Reference Chinese Text Simplification Dataset*.

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from gaixie.research.simplification.measure import measure, read_column, read_set
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.metrics.sari import DELETIONS
from gaixie.udfs.reports import render, write_json

TEMPLATE = Path(__file__).parent / "simplification/simplifications.md.j2"


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    return run_command("report_simplifications", partial(report, _arguments(argv)))


def report(args: argparse.Namespace) -> None:
    """Reads the set and the systems, measures them, and writes the report."""
    data = read_set(args.data, args.part)
    systems = {}
    for text in args.system:
        name, equals, file = text.partition("=")
        if not equals or not name or name in systems or name in ("source", "a person"):
            raise ValueError(f"--system {text}: expected NAME=FILE with a name of its own")
        systems[name] = read_column(file, len(data.source))
    result = measure(data, systems, args.segmenter, args.deletion, args.samples, args.seed)
    args.output.mkdir(parents=True, exist_ok=True)
    write_json(args.output / "simplifications.json", result)
    text = render(TEMPLATE, **result)
    (args.output / "simplifications.md").write_text(text, "utf-8")
    print(text)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("report_simplifications.py", __doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="FOLDER", help="of the files of lines")
    add("--part", default="dev", metavar="NAME", help="of the files' names (%(default)s)")
    system = "the file of a system's simplifications; may be given several times"
    add("--system", action="append", default=[], metavar="NAME=FILE", help=system)
    add("--output", type=Path, required=True, metavar="FOLDER", help="for the report")
    add("--segmenter", default="jieba", metavar="NAME", help="jieba or ltp:FOLDER (%(default)s)")
    add("--deletion", default="f1", choices=DELETIONS, help="how SARI counts it (%(default)s)")
    add("--samples", type=positive, default=1000, metavar="N", help="resamples (%(default)s)")
    add("--seed", type=int, default=0, metavar="N", help="of the resamples (%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
