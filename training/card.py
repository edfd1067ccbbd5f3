"""Writes the card of a trained model, README.md as a hub reads it.

  python training/card.py runs/first/model --evaluation evaluation --license mit
  hf upload NAME/gaixie-small runs/first/model          (not done here)

MODEL is a model of training/curriculum.py, which already has a card without figures. EVALUATION is
the output of training/evaluate.py for it, whose figures the card takes. What else a hub may ask,
such as data sets and a base model, belongs in the head of README.md. Exit codes: 0 done, 2
something to fix (one line says what).
"""

import sys

from gaixie.training.loop.model_card import CARD, About, write_card
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.settings import add_options, options_of


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("card.py", __doc__)
    add_options(parser, About, positional=("model",))
    args = parser.parse_args(argv)
    return run_command("card", lambda: run(options_of(About, args)))


def run(about: About) -> None:
    """Runs the command: writes the card, and prints its path."""
    write_card(about)
    print(about.model / CARD)


if __name__ == "__main__":
    sys.exit(main())
