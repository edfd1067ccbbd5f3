"""Trains a paraphraser in three stages; each starts from the best weights of the one before.

  accelerate launch --config_file conf/accelerate/one_gpu.yaml training/curriculum.py \\
      --config conf/curriculum.yaml --set output=runs/first --set batch.pairs=512

Source: Chinese Sentence Paraphrasing, section 5.3 and Figure 3; training/loop/controller.py decides
when a stage is fitted and ends. conf/curriculum.yaml explains every setting. OUTPUT holds

  model/                 the best weights of the last stage, the tokenizer and a card
  stage-N/               resume points of a stage, then its best weights; curves for TensorBoard
  history.jsonl          a line for each evaluation: its values and the controller's decision
  log.jsonl              a line for each logging_steps steps: loss and learning rate
  pairs/                 the pairs of each stage; may be deleted at the end
  settings.yaml          the settings used, including --set

The same command continues a run, from the newest checkpoint in OUTPUT or the mirror. After
SIGTERM, it saves a checkpoint at the next multiple of logging_steps and ends. Exit codes: 0 done,
2 something to fix (one line says what), 130 interrupted, 143 stopped. `accelerate launch` turns all
but 0 into 1. A single process needs no launcher: python training/curriculum.py … does the same.
"""

import sys

from gaixie.training.loop.run import Run
from gaixie.training.settings import CURRICULUM, load_settings
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.settings import add_config


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("curriculum.py", __doc__)
    add_config(parser, CURRICULUM, "conf/curriculum.yaml")
    checks = "check everything, print what would be trained, and stop"
    parser.add_argument("--dry-run", action="store_true", help=checks)
    args = parser.parse_args(argv)

    def work() -> int:
        run = Run(load_settings(args.config, args.set))
        return run.describe() if args.dry_run else run.train()

    unfinished = "the same command continues from the last checkpoint"
    return run_command("curriculum", work, unfinished)


if __name__ == "__main__":
    sys.exit(main())
