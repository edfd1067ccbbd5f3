"""Trains, evaluates and exports the pair encoder of tier full.

  python research/make_encoder.py --output models/e5-small
  python research/make_pair_encoder.py start DATA models/e5-small --output out/encoder/start
  python research/make_pair_encoder.py draw DATA 1000000 --output out/encoder/drawn.jsonl.xz
  python research/make_pair_encoder.py train out/encoder/drawn.jsonl.xz --start out/encoder/start \\
      --output out/encoder/trained
  python research/make_pair_encoder.py export out/encoder/trained
  python research/make_pair_encoder.py evaluate DATA

start     cuts a multilingual encoder to its Chinese pieces, or takes one that was exported
draw      draws examples from the sets of DATA that research/pair_encoder/sets.py names
train     needs the examples and the start alone, not the sets; uses a GPU if there is one; saves
          its state in its output, and goes on from it
export    writes the folder that the package reads
evaluate  prints figures on groups, ratings and sets that were not learned from, among them OCNLI,
          and writes them into the encoder's description

Exit codes: 0 done, 2 something to fix (one line says what).
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from gaixie.research.fitting.data import CONFIG, Config
from gaixie.research.pair_encoder import evaluation, examples, sets
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.meaning import pair_encoder as exports
from gaixie.udfs.meaning.pair_encoder import DESCRIPTION, SHIPPED, TASKS, PairEncoder
from gaixie.udfs.storage.settings import load_settings


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    args = _arguments(argv)
    return run_command("make_pair_encoder", partial(args.work, args))


def start(args: argparse.Namespace) -> None:
    """Writes the folder that a training starts from."""
    from gaixie.research.pair_encoder.network import prune, restore

    if (args.encoder / DESCRIPTION).is_file():
        restore(args.encoder, args.output)
        return
    texts = [text for _, versions in sets.read_versions(args.data) for text in versions]
    texts += pd.read_parquet(args.data / "zh_text.parquet")["text"].tolist()
    prune(args.encoder, texts, args.output)


def draw(args: argparse.Namespace) -> None:
    """Draws examples into a file."""
    say("looking for the good versions of each sentence: some minutes")
    read = sets.read_versions(args.data)
    found = _sets(args.data, [texts for key, texts in read if not sets.foreign_test(key)])
    drawn = examples.write_drawn(found, args.count, args.seed, args.output)
    for kind, number in drawn.most_common():
        print(f"{kind:15} {number:9,}")


def train(args: argparse.Namespace) -> None:
    """Trains, and writes a folder to export."""
    import torch

    from gaixie.research.pair_encoder import training
    from gaixie.research.pair_encoder.network import PairNetwork, save

    table = training.read_table(args.drawn, str(args.start))
    say(f"{len(table.better):,} examples, {len(table.ids):,} tokens")
    gpu = torch.cuda.is_available()
    say(f"on {torch.cuda.get_device_name() if gpu else 'the CPU'}")
    torch.manual_seed(args.seed)  # of new heads
    model = PairNetwork(args.start, "sdpa" if gpu else "eager", args.dropout)
    device = torch.device("cuda" if gpu else "cpu")
    args.output.mkdir(parents=True, exist_ok=True)
    settings = (args.rate, args.batch, args.steps, args.seed, args.output / "state.pt")
    trained, examples = training.train(table, model, device, *settings)
    save(trained, args.start, args.output, examples)


def export(args: argparse.Namespace) -> None:
    """Writes the folder that the package reads."""
    from gaixie.research.pair_encoder.network import export as write

    print(f"{args.output}: {write(args.trained, args.output)}")


def evaluate(args: argparse.Namespace) -> None:
    """Prints the figures of an exported encoder, and writes them into its description."""
    encoder = PairEncoder.load(args.output)
    figures = evaluation.evaluate(encoder, _sets(args.data, []), args.data)
    summary = json.loads((args.output / DESCRIPTION).read_text("utf-8"))["summary"]
    exports.write_description(args.output, TASKS, summary | {"figures": figures})
    for name, value in figures.items():
        print(f"{name:50} {value:.3f}")


def _sets(data: Path, versions: list[list[str]]) -> sets.Sets:
    return sets.load_sets(data, versions, load_settings(Config, CONFIG).rated)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("make_pair_encoder.py", __doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(work, help_text: str, *places: tuple[str, Callable[[str], Any]]):
        made = commands.add_parser(work.__name__, help=help_text)
        made.set_defaults(work=work)
        for name, kind in places:
            made.add_argument(name, type=kind, metavar=name.upper())
        return made.add_argument

    add = command(start, "cut an encoder to its Chinese pieces", ("data", Path), ("encoder", Path))
    add("--output", type=Path, required=True, metavar="FOLDER")
    add = command(draw, "draw examples", ("data", Path), ("count", positive))
    add("--seed", type=int, default=5, help="(%(default)s)")
    add("--output", type=Path, required=True, metavar="FILE", help="JSON lines under xz")
    add = command(train, "train from drawn examples", ("drawn", Path))
    add("--start", type=Path, required=True, metavar="FOLDER", help="what start or train wrote")
    add("--steps", type=positive, default=3_500, help="of --batch examples (%(default)s)")
    add("--batch", type=positive, default=128, help="examples of a step (%(default)s)")
    add("--rate", type=float, default=8e-5, help="highest learning rate (%(default)s)")
    add("--dropout", type=float, default=0.1, help="of hidden states (%(default)s)")
    add("--seed", type=int, default=5, help="(%(default)s)")
    add("--output", type=Path, required=True, metavar="FOLDER")
    add = command(export, "write what the package reads", ("trained", Path))
    add("--output", type=Path, default=SHIPPED, metavar="FOLDER", help="(%(default)s)")
    add = command(evaluate, "print figures of an exported encoder", ("data", Path))
    add("--output", type=Path, default=SHIPPED, metavar="FOLDER", help="(%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
