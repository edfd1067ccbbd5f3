"""Writes the card of a trained model, and the folder that a hub takes as it is.

  python training/model_card.py runs/first/model --evaluation evaluation --folder upload
  python training/model_card.py runs/first/model --folder upload --title "Gaixie small" --license mit
  hf upload NAME/gaixie-small upload                    (not done here)

MODEL is what training/curriculum.py left, which has a card without figures already. EVALUATION is what
training/evaluate.py left of it: its figures, and the sources with the highest and the lowest scores.

  FOLDER/README.md       the card: head for the hub, use, size, data, training, figures, examples, limits
  FOLDER/training.json   what is known of the training, with its settings; no paths
  FOLDER/…               weights, configuration and tokenizer; no state of the optimiser, no logs

Without --folder the card in MODEL is written anew.
Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from gaixie.training.cards.card import CARD, TITLE, About, card, read_figures
from gaixie.training.cards.facts import read_training
from gaixie.training.cards.folder import check_private, copy_model, write_card
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.model_folder import check_output, publish, scratch_beside


def main(argv: list[str] | None = None) -> int:
    """Runs the script; its exit code."""
    return run_command("model_card", partial(run, _arguments(argv)))


def run(args: argparse.Namespace) -> None:
    """The command: reads, renders, writes."""
    model = args.model
    if not (model / "config.json").is_file():
        raise FileNotFoundError(f"{model}: is no model folder, for it has no config.json")
    training = read_training(model)
    figures = read_figures(args.evaluation, model) if args.evaluation else None
    about = About(args.title, args.license, args.base_model, args.dataset)
    if args.folder is None:
        write_card(model, training, card(model, training, about, figures))
        print(model / CARD)
        return
    output = check_output(args.folder, CARD, args.overwrite)
    with scratch_beside(output) as scratch:
        built = scratch / "model"
        built.mkdir()
        copy_model(model, built)
        write_card(built, training, card(built, training, about, figures))
        check_private(built, Path.cwd(), model.resolve().parent, output)
        publish(built, output)
    print(output / CARD)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("model_card.py", __doc__)
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="folder of the model and its tokenizer")
    add("--evaluation", type=Path, metavar="FOLDER", help="what training/evaluate.py left of it")
    add("--folder", type=Path, metavar="OUT", help="the folder to upload; without it, MODEL's card")
    add("--overwrite", action="store_true", help="replace a model that stands in OUT")
    add("--title", default=TITLE, help="(%(default)s)")
    add("--license", metavar="NAME", help="of the model; none is stated without it")
    add("--base-model", metavar="NAME", help="of the hub; as far as the training knows without it")
    data = "of the hub, that it was trained on; may be given several times"
    add("--dataset", action="append", default=[], metavar="NAME", help=data)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
