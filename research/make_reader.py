"""Trains the reader that ships with the package, says what it sees, and exports it.

  python research/make_encoder.py --from bge-small-zh --output models/bge-small-zh
  python research/make_reader.py DATA --work out/reader --output udfs/models/reader-zh       goes on where it was
  python research/make_reader.py DATA --evaluate                                       the one that ships

DATA has written_groups.jsonl, written_broken.jsonl, the rated sets, FCGEC, MuCGEC, OCNLI (for the test alone) and
the two sets of translations. A core of a CPU with bfloat16 trains about 23 pairs a second.
Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from random import Random

from gaixie.research.reader.evaluation import evaluate
from gaixie.research.reader.examples import Examples, Sets, load_sets
from gaixie.research.reader.versions import held_out, read_versions
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.paraphrase.reader import FOLDER, Reader

VERSION = 1
VERSIONS = "versions.jsonl"
OWN = Path(__file__).with_name("reader") / "written_groups.jsonl"
"""600 groups of five sentences that say the same, written for this project by a language model: CC0."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script; its exit code."""
    return run_command("make_reader", partial(make, _arguments(argv)))


def make(args: argparse.Namespace) -> None:
    """The command."""
    if not args.evaluate:
        from gaixie.research.reader.training import export, train

        sets = load_sets(args.data, _versions(args.data, args.work), args.written)
        examples = Examples(sets, Random(args.seed))
        export(
            train(examples, args.bert, args.work, args.steps, args.seed),
            args.bert,
            args.output,
            VERSION,
        )
    else:
        sets = load_sets(args.data, [], [])
    _say(evaluate(Reader(args.output), sets, args.data), sets)


def _versions(data: Path, work: Path) -> list[list[str]]:
    """The good versions of every sentence that is not kept for tests; made once."""
    path = work / VERSIONS
    if not path.is_file():
        work.mkdir(parents=True, exist_ok=True)
        say("looking for the good versions of each sentence: some minutes, once")
        lines = (json.dumps(own, ensure_ascii=False) for own in read_versions(data))
        path.with_suffix(".new").write_text("\n".join(lines), "utf-8")
        path.with_suffix(".new").rename(path)
    rows = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return [texts for key, texts in rows if not held_out(key)]


def _say(figures: dict[str, float], sets: Sets) -> None:
    print(
        f"{len(sets.test_written)} written groups and {len(sets.test_rated)} rated pairs, never learned from"
    )
    for name, value in figures.items():
        print(f"{name:48} {value:.3f}")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("make_reader.py", __doc__)
    add = parser.add_argument
    add("data", metavar="DATA", type=Path)
    add(
        "--written", type=Path, nargs="*", default=[], metavar="FILE", help="further written groups"
    )
    add("--bert", default="models/bge-small-zh", metavar="BERT", help="(%(default)s)")
    add("--work", type=Path, default=Path("out/reader"), help="state of the training (%(default)s)")
    add("--steps", type=positive, default=2_000, help="of 48 pairs (%(default)s)")
    add("--seed", type=int, default=5, help="(%(default)s)")
    add("--evaluate", action="store_true", help="train nothing, judge the reader of --output")
    add("--output", type=Path, default=FOLDER, metavar="FOLDER", help="(%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
