"""Exports a paraphraser for CTranslate2, which is several times as fast on a CPU.

  python training/export.py runs/first/model --output exported
  python training/export.py runs/first/model --output exported --quantization float32
  python training/generate.py exported sentences.txt

MODEL is a model of training/curriculum.py: a BART with the entity-aligned tokenizer. The exported
folder is a model for training/generate.py and training/evaluate.py like any other. float32 writes
the same as the model; int8 is smaller and faster, but may sometimes choose another word. Exit
codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from pydantic import Field

from gaixie.training.modeling.exported import WEIGHTS, export
from gaixie.training.modeling.generation import load_model
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.options import add_command, options_of
from gaixie.udfs.storage.settings import Options


class Export(Options):
    """What is exported, and how."""

    model: str
    """Folder or URI of the model and its tokenizer."""
    output: str = Field(title="FOLDER")
    """Folder or URI of the exported model."""
    quantization: Literal["int8", "float32", "bfloat16"] = "int8"
    """Type of the exported weights."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("export.py", __doc__)
    add_command(parser, Export, positional=("model",))
    args = parser.parse_args(argv)
    return run_command("export", lambda: run(options_of(Export, args)))


def run(options: Export) -> None:
    """Runs the command: loads, converts, writes the folder, reports its size."""
    with local_copy(options.output, options.model) as (output, folder):
        export(*load_model(str(folder)), output, options.quantization)
        size = Path(output, WEIGHTS).stat().st_size
    print(f"{options.output}: {options.quantization}, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
