"""Makes an encoder-decoder from a BERT encoder, for model.pretrained of conf/curriculum.yaml.

  python research/make_encoder.py --from bge-small-zh --output models/bge-small-zh
  python training/warm_start.py models/tokenizer --output models/warm
  python training/warm_start.py models/tokenizer --from models/bge-small-zh --decoder-layers 2 --output models/warm

The model has BART's architecture; training/modeling/warm_start.py says which weights go where. TOKENIZER is a folder
that `training/tokenize_text.py make` left; it is copied to the output, which may be in a store.
Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from gaixie.training.cards.facts import Training, start_of, write_training
from gaixie.training.modeling.model import load_tokenizer
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.warm_start import from_bert, known_characters, load_bert
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.storage.local_copy import local_copy

BERT = "models/bge-small-zh"


def main(argv: list[str] | None = None) -> int:
    """Runs the script; its exit code."""
    return run_command("warm_start", partial(make, _arguments(argv)))


def make(args: argparse.Namespace) -> None:
    """The command: loads, copies, writes the folder, says what it has."""
    # Behind gaixie.training, which says so if it is not installed.
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    tokenizer = load_tokenizer(args.tokenizer)
    assert isinstance(tokenizer, EntityAlignedTokenizer)  # as a folder was named
    bert, characters = load_bert(args.bert)
    model = from_bert(bert, characters, tokenizer, args.decoder_layers, args.dropout, args.seed)
    with local_copy(args.output) as (output,):
        model.save_pretrained(output)
        tokenizer.save_pretrained(output)
        write_training(output, Training(base_model=start_of(args.bert)[1]))
    weights = sum(parameter.numel() for parameter in model.parameters())
    known, single = known_characters(characters, tokenizer)
    layers = f"{model.config.encoder_layers} + {model.config.decoder_layers} layers"
    print(
        f"{args.output}: {weights:,} weights, {layers} of {model.config.d_model}; {known:,} of "
        f"{single:,} characters have a row of {args.bert}"
    )


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("warm_start.py", __doc__)
    add = parser.add_argument
    add("tokenizer", metavar="TOKENIZER", help="folder or URI of an entity-aligned tokenizer")
    add(
        "--from",
        dest="bert",
        default=BERT,
        metavar="BERT",
        help="a BERT of transformers, by folder or name (%(default)s)",
    )
    add("--decoder-layers", type=positive, metavar="N", help="as many as the encoder has")
    add("--dropout", type=float, default=0.1, metavar="P", help="(%(default)s)")
    add(
        "--seed",
        type=int,
        default=13,
        metavar="N",
        help="of rows without a character (%(default)s)",
    )
    add("--output", required=True, metavar="FOLDER", help="a folder or a URI")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
