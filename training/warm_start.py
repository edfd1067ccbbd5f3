"""Makes an encoder-decoder from a BERT encoder, for model.pretrained of conf/curriculum.yaml.

  python research/make_encoder.py --from bge-small-zh --output models/bge-small-zh
  python training/warm_start.py models/tokenizer --output models/warm
  python training/warm_start.py models/tokenizer --decoder-layers 2 --output models/warm

The model has BART's architecture; training/modeling/warm_start.py says which weights go where.
TOKENIZER is a folder that `training/tokenize_text.py make` wrote; it is copied to the output, which
may be in a store. Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import sys

from pydantic import Field

from gaixie.training.cards.facts import Training, start_of, write_training
from gaixie.training.modeling.model import load_tokenizer
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.warm_start import from_bert, known_characters, load_bert
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.options import add_command, options_of
from gaixie.udfs.storage.settings import Options


class WarmStart(Options):
    """What the model is made of."""

    tokenizer: str
    """Folder or URI of an entity-aligned tokenizer."""
    from_: str = Field(default="models/bge-small-zh", title="BERT")
    """A BERT of transformers, by folder or name."""
    decoder_layers: int | None = Field(default=None, ge=1)
    """Layers of the decoder; by default as many as the encoder has."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of the model."""
    seed: int = 13
    """Seed of the embeddings of tokens without a character."""
    output: str = Field(title="FOLDER")
    """Folder or URI of the new model."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("warm_start.py", __doc__)
    add_command(parser, WarmStart, positional=("tokenizer",))
    args = parser.parse_args(argv)
    return run_command("warm_start", lambda: make(options_of(WarmStart, args)))


def make(options: WarmStart) -> None:
    """Runs the command: loads, copies, writes the folder, reports its contents."""
    # After gaixie.training, which reports if it is not installed.
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    tokenizer = load_tokenizer(options.tokenizer)
    assert isinstance(tokenizer, EntityAlignedTokenizer)  # a folder was named, so it is ours
    bert, characters = load_bert(options.from_)
    settings = options.decoder_layers, options.dropout, options.seed
    model = from_bert(bert, characters, tokenizer, *settings)
    with local_copy(options.output) as (output,):
        model.save_pretrained(output)
        tokenizer.save_pretrained(output)
        write_training(output, Training(base_model=start_of(options.from_)[1]))
    weights = sum(parameter.numel() for parameter in model.parameters())
    known, single = known_characters(characters, tokenizer)
    layers = f"{model.config.encoder_layers} + {model.config.decoder_layers} layers"
    print(
        f"{options.output}: {weights:,} weights, {layers} of {model.config.d_model}; {known:,} of "
        f"{single:,} characters have a row of {options.from_}"
    )


if __name__ == "__main__":
    sys.exit(main())
