"""Trains the pair encoder from a file of drawn examples, on a GPU if there is one.

  python research/make_pair_encoder.py DATA --draw 1000000 drawn.jsonl.xz        first
  python research/train_pair_encoder.py drawn.jsonl.xz --seconds 150 --output out/parts
  python research/make_pair_encoder.py DATA --bert FOLDER --parts out/parts      exports it

It needs only that file and the folder to start from, not the data sets. Exit codes: 0 done, 2
something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.meaning.pair_encoder import ENCODER, SHIPPED


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    return run_command("train_pair_encoder", partial(train, _arguments(argv)))


def train(args: argparse.Namespace) -> None:
    """Reads the examples, trains, and writes the weights in parts."""
    from gaixie.research.pair_encoder.tables import read_table

    table = read_table(args.drawn, str(args.bert))  # forks, so before PyTorch is imported
    say(f"{len(table.better):,} examples, {len(table.ids):,} tokens")

    import torch

    from gaixie.research.pair_encoder.exported import restore
    from gaixie.research.pair_encoder.parts import write_parts
    from gaixie.research.pair_encoder.table_training import Run, train_from
    from gaixie.research.pair_encoder.training import PairNetwork

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    say(f"on {torch.cuda.get_device_name() if device.type == 'cuda' else 'the CPU'}")
    with tempfile.TemporaryDirectory() as folder:
        start = args.bert
        if (args.bert / ENCODER).is_file():
            start = Path(folder)
            restore(args.bert, start)
        model = PairNetwork(str(start), "sdpa", args.dropout)
    run = Run(args.rate, args.batch, args.steps, args.seconds, args.seed, args.compile, args.thin)
    trained, examples = train_from(table, model, device, run)
    write_parts(trained, examples, args.output)


def _kind_and_share(text: str) -> tuple[str, float]:
    kind, _, share = text.rpartition("=")
    if not kind or not 0 <= float(share) <= 1:
        raise argparse.ArgumentTypeError(f"{text}: expected KIND=SHARE, a share from 0 to 1")
    return kind, float(share)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("train_pair_encoder.py", __doc__)
    add = parser.add_argument
    add("drawn", metavar="FILE", type=Path, help="drawn examples")
    add("--bert", type=Path, default=SHIPPED, help="start: exported or not (%(default)s)")
    add("--seconds", type=float, default=0.0, help="train so long, whatever --steps says")
    add("--steps", type=positive, default=3_500, help="of --batch examples (%(default)s)")
    add("--batch", type=positive, default=128, help="examples of a step (%(default)s)")
    add("--rate", type=float, default=8e-5, help="highest learning rate (%(default)s)")
    add("--dropout", type=float, default=0.1, help="of hidden states (%(default)s)")
    thin: dict[str, Any] = {
        "metavar": "KIND=SHARE",
        "type": _kind_and_share,
        "default": [],
        "nargs": "*",
    }
    add("--thin", **thin, help="each pass learns from this share of a kind's examples alone")
    add("--compile", action="store_true", help="compile the layers where that is faster")
    add("--seed", type=int, default=5, help="(%(default)s)")
    add("--output", type=Path, required=True, metavar="FOLDER", help="for the parts")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
