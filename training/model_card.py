"""Writes the card of a trained model, and a folder ready to upload to a hub.

  python training/model_card.py runs/first/model --evaluation evaluation --folder upload
  python training/model_card.py runs/first/model --folder upload --license mit
  hf upload NAME/gaixie-small upload                    (not done here)

MODEL is a model of training/curriculum.py, which already has a card without figures. EVALUATION is
the output of training/evaluate.py for it: the card takes its figures, and its sources with the
highest and the lowest scores.

  FOLDER/README.md       the card: head for the hub, use, data, training, figures, limits
  FOLDER/training.json   the facts of the training, with its settings; no paths
  FOLDER/…               weights, configuration and tokenizer; no optimiser state, no logs

Without --folder, the card in MODEL is rewritten. Exit codes: 0 done, 2 something to fix (one line
says what).
"""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import Field

from gaixie.training.cards.card import (
    CARD,
    About,
    card,
    check_private,
    copy_model,
    read_figures,
    write_card,
)
from gaixie.training.cards.facts import read_training
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.model_folder import check_output, publish, scratch_beside
from gaixie.udfs.storage.options import add_command, options_of


class Command(About):
    """A model, and where its card goes."""

    model: Path
    """Folder of the model and its tokenizer."""
    evaluation: Path | None = None
    """Output of training/evaluate.py for it."""
    folder: Path | None = Field(default=None, title="OUT")
    """The folder to upload; without it, the card in MODEL is rewritten."""
    overwrite: bool = False
    """Replace an earlier model in OUT."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("model_card.py", __doc__)
    add_command(parser, Command, positional=("model",))
    args = parser.parse_args(argv)
    return run_command("model_card", lambda: run(options_of(Command, args)))


def run(about: Command) -> None:
    """Runs the command: reads, renders, writes."""
    model = about.model
    if not (model / "config.json").is_file():
        raise FileNotFoundError(f"{model}: not a model folder: it has no config.json")
    training = read_training(model)
    figures = read_figures(about.evaluation, model) if about.evaluation else None
    if about.folder is None:
        write_card(model, training, card(model, training, about, figures))
        print(model / CARD)
        return
    output = check_output(about.folder, CARD, about.overwrite)
    with scratch_beside(output) as scratch:
        built = scratch / "model"
        built.mkdir()
        copy_model(model, built)
        write_card(built, training, card(built, training, about, figures))
        check_private(built, Path.cwd(), model.resolve().parent, output)
        publish(built, output)
    print(output / CARD)


if __name__ == "__main__":
    sys.exit(main())
