"""Trains, evaluates and exports the pair encoder of tier full and of gaixie paraphrase.

  python research/make_encoder.py --output models/e5-small
  python research/make_pair_encoder.py DATA --work out/pair-encoder      resumes if it was killed
  python research/make_pair_encoder.py DATA --bert gaixie/udfs/models/pair-encoder-zh --steps 2000
                                                continues from an exported encoder and its heads
  python research/make_pair_encoder.py DATA --draw 1000000 drawn.jsonl.xz
                                                writes examples, for research/train_pair_encoder.py
  python research/make_pair_encoder.py DATA --bert FOLDER --parts FOLDER    exports what it trained
  python research/make_pair_encoder.py DATA --evaluate                   evaluates the shipped one

DATA has the written groups and their counterparts, the rated, judged and translated sets that
research/pair_encoder/sets.py names, and OCNLI, which is used only for the test. Exit codes: 0
done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

from gaixie.research.pair_encoder.evaluation import evaluate
from gaixie.research.pair_encoder.examples import Examples
from gaixie.research.pair_encoder.sets import Sets, load_sets
from gaixie.research.pair_encoder.versions import held_out, read_versions
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.meaning.pair_encoder import (
    DESCRIPTION,
    ENCODER,
    SHIPPED,
    TASKS,
    PairEncoder,
    write_description,
)

VERSIONS = "versions.jsonl"
MANY = 50_000
"""An encoder whose vocabulary has at least this many pieces is multilingual."""
OWN = Path(__file__).with_name("pair_encoder")


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    return run_command("make_pair_encoder", partial(make, _arguments(argv)))


def make(args: argparse.Namespace) -> None:
    """Trains and exports, or draws examples, or only evaluates."""
    if args.draw:
        return _draw(args)
    if args.evaluate:
        sets = load_sets(args.data, [], OWN)
    else:
        sets = load_sets(args.data, _versions(args.data, args.work), OWN)
        summary = _train_and_export(args, sets)
    figures = evaluate(PairEncoder.load(args.output), sets, args.data)
    if not args.evaluate:
        write_description(args.output, TASKS, summary | {"figures": figures})
    rated = (sets.rated["part"] == "test").sum()
    print(f"{len(sets.test_written)} written groups, {rated} rated pairs")
    for name, value in figures.items():
        print(f"{name:50} {value:.3f}")


def _train_and_export(args: argparse.Namespace, sets: Sets) -> dict[str, Any]:
    """Exports the encoder trained here or in --parts. Returns what its description says of it."""
    from gaixie.research.pair_encoder.training import BATCH, PairNetwork, export, train

    start = _start(args.bert, args.data, args.work)
    if args.parts:
        from gaixie.research.pair_encoder.parts import read_parts

        model = PairNetwork(start).eval()
        learned = read_parts(model, args.parts)
    else:
        examples, learned = Examples(sets, Random(args.seed)), args.steps * BATCH
        model = train(examples, start, args.work, args.steps, args.rate, args.freeze, args.seed)
    summary = {"encoder": args.bert.name, "examples": learned}
    if (args.bert / DESCRIPTION).is_file():
        before = json.loads((args.bert / DESCRIPTION).read_text("utf-8"))["summary"]
        summary["encoder"] = before["encoder"]
        summary["examples"] += before["examples"]
    export(model, start, args.output, summary)
    return summary


def _draw(args: argparse.Namespace) -> None:
    from gaixie.research.pair_encoder.drawn import write_drawn

    count, path = args.draw
    sets = load_sets(args.data, _versions(args.data, args.work), OWN)
    for kind, number in write_drawn(sets, int(count), args.seed, Path(path)).most_common():
        print(f"{kind:15} {number:9,}")


def _versions(data: Path, work: Path) -> list[list[str]]:
    """Returns the good versions of every sentence not kept for tests; makes their file once."""
    path = work / VERSIONS
    if not path.is_file():
        work.mkdir(parents=True, exist_ok=True)
        say("looking for the good versions of each sentence: some minutes, once")
        lines = (json.dumps(own, ensure_ascii=False) for own in read_versions(data))
        path.with_suffix(".new").write_text("\n".join(lines), "utf-8")
        path.with_suffix(".new").rename(path)
    rows = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return [texts for key, texts in rows if not held_out(key)]


def _start(bert: Path, data: Path, work: Path) -> str:
    """Returns the folder to start from; a multilingual vocabulary is cut to its Chinese pieces."""
    if (bert / ENCODER).is_file():
        from gaixie.research.pair_encoder.exported import restore

        if not (work / "start/tokenizer_config.json").is_file():  # written last
            restore(bert, work / "start")
        return str(work / "start")
    if json.loads((bert / "config.json").read_text("utf-8"))["vocab_size"] < MANY:
        return str(bert)
    from gaixie.research.pair_encoder.pruning import prune

    start = work / "start"
    if not (start / "model.safetensors").is_file():  # written last
        rows = (json.loads(line) for line in (work / VERSIONS).read_text("utf-8").splitlines())
        texts = [text for _, versions in rows for text in versions]
        prune(bert, texts + pd.read_parquet(data / "zh_text.parquet")["text"].tolist(), start)
    return str(start)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("make_pair_encoder.py", __doc__)
    add = parser.add_argument
    add("data", metavar="DATA", type=Path, help="folder of the sets")
    add("--bert", type=Path, default="models/e5-small", help="start (%(default)s)")
    add("--work", type=Path, default=Path("out/pair-encoder"), help="state (%(default)s)")
    add("--steps", type=positive, default=3_500, help="of 32 examples (%(default)s)")
    add("--rate", type=float, default=1e-4, help="highest learning rate (%(default)s)")
    add("--freeze", type=int, default=0, help="layers from the bottom that stay (%(default)s)")
    add("--seed", type=int, default=5, help="(%(default)s)")
    add("--draw", nargs=2, metavar=("N", "FILE"), help="draw N examples into FILE, train nothing")
    add("--parts", type=Path, metavar="FOLDER", help="train nothing, export these weights")
    add("--evaluate", action="store_true", help="train nothing, judge the encoder of --output")
    add("--output", type=Path, default=SHIPPED, metavar="FOLDER", help="(%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
