"""Trains a paraphraser through the three stages, each until it is fitted, from its best weights on.

  accelerate launch --config_file conf/accelerate/one_gpu.yaml training/curriculum.py \\
      --config conf/curriculum.yaml --set output=runs/first --set batch.pairs=512

Source: Chinese Sentence Paraphrasing, section 5.3 and Figure 3; training/loop/controller.py decides when a
stage ends. conf/curriculum.yaml explains every setting. OUTPUT holds

  model/                 the best weights of the last stage, the tokenizer and a card, for from_pretrained
  checkpoints/           to go on from; the same command started again does (--resume auto)
  history.jsonl          a line for each evaluation: what was found, and what the controller decided
  log.jsonl              a line for each log_steps steps: loss, learning rate, tokens, position
  curriculum.png         loss, accuracy and score over the steps
  tensorboard/, wandb/   the same for a tracker
  settings.yaml          as they were, --set included

SIGTERM: a checkpoint at the next of the log_steps, then the end. Exit codes: 0 done, 2 something to
fix (one line says what), 130 interrupted, 143 stopped. `accelerate launch` makes 1 of all but the first;
one process needs no launcher, python training/curriculum.py … is the same.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys

from gaixie.training.loop.run import INTERRUPTED, OneRankError, Run
from gaixie.training.settings import load_settings
from gaixie.udfs.command_line import make_parser, say


def main(argv: list[str] | None = None) -> int:
    """Runs the script; its exit code."""
    import torch  # behind gaixie.training, which says so if it is not installed
    from transformers.utils.logging import disable_progress_bar

    args = _arguments(argv)
    logging.getLogger("accelerate").setLevel(logging.ERROR)  # warns of tied weights at each save
    disable_progress_bar()
    try:
        settings = load_settings(args.config, args.set)
        run = Run(settings)
        return run.describe() if args.dry_run else run.train(args.resume == "auto")
    except (ValueError, OSError) as error:  # all ranks have it: one says it
        if int(os.environ.get("RANK", 0)) == 0:
            say(f"curriculum: error: {error}")
    except OneRankError as error:
        say(f"curriculum: error: {error}")
    except KeyboardInterrupt:
        if int(os.environ.get("RANK", 0)) == 0:
            say("interrupted: the same command goes on from the last checkpoint")
        return INTERRUPTED
    except torch.OutOfMemoryError:
        say("curriculum: error: out of GPU memory: lower batch.micro_pairs")
    return 2


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("curriculum.py", __doc__)
    add = parser.add_argument
    add("--config", required=True, metavar="YAML", help="a path or a URI")
    add(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="over the file; KEY.SUB too"
    )
    add(
        "--resume",
        choices=("auto", "never"),
        default="auto",
        help="auto: from the newest checkpoint in the output or the mirror, if there is one; "
        "never: refuse an output or a mirror that has one (%(default)s)",
    )
    add("--dry-run", action="store_true", help="check everything, say what would be trained, stop")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
