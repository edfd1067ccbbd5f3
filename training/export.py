"""Exports a paraphraser for CTranslate2, which writes several times as fast on a CPU.

  python training/export.py runs/first/model --output exported
  python training/export.py runs/first/model --output exported --quantization float32
  python training/generate.py exported sentences.txt

MODEL is what training/curriculum.py left: a BART with the entity-aligned tokenizer. The folder is then a
model of training/generate.py and training/evaluate.py as any other. float32 writes what the model writes;
int8 is smaller and faster, and may choose another word here and there.
Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from gaixie.training.modeling.exported import QUANTIZATIONS, WEIGHTS, export
from gaixie.training.modeling.generation import load_model
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.storage.local_copy import local_copy


def main(argv: list[str] | None = None) -> int:
    """Runs the script; its exit code."""
    return run_command("export", partial(run, _arguments(argv)))


def run(args: argparse.Namespace) -> None:
    """The command: loads, converts, writes the folder, says how large it is."""
    with local_copy(args.output, args.model) as (output, folder):
        export(*load_model(str(folder)), output, args.quantization)
        size = Path(output, WEIGHTS).stat().st_size
    print(f"{args.output}: {args.quantization}, {size / 1e6:.1f} MB")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("export.py", __doc__)
    add = parser.add_argument
    add("model", metavar="MODEL", help="folder or URI of the model and its tokenizer")
    add("--output", required=True, metavar="FOLDER", help="a folder or a URI")
    add("--quantization", choices=QUANTIZATIONS, default="int8", help="(%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
