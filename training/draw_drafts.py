"""Draws drafts of sentences, and says of each how likely a reader accepts it.

  python training/draw_drafts.py sentences.txt --output out/drafts.jsonl
  python training/draw_drafts.py sentences.parquet --column text --code 口语 --output out/drafts.jsonl
  python training/learn_preferences.py BASE udfs/models/writer-zh out/drafts.jsonl …

This is how a writer learns from its own best drafts, round after round (expert iteration): in the
next round, draw with --model, the writer made last. A line of the output has source, code,
paraphrase, accepted, from 0 to 1, and overall, from 0 to 5 (udfs/paraphrase/quality.py). The same
command goes on with the sentences that have no drafts yet. Exit codes: 0 done, 2 something to fix
(one line says what).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.paraphrase.judge import JUDGE, Judge
from gaixie.udfs.paraphrase.paraphraser import DEGREE, DRAWS, TEMPERATURE, writer_folder
from gaixie.udfs.paraphrase.quality import Quality
from gaixie.udfs.paraphrase.writer import BATCH, ModelWriter
from gaixie.udfs.storage import text_columns
from gaixie.udfs.storage.progress import Progress

START = b'{"source": "'
"""How a line of drafts begins."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("draw_drafts.py", __doc__)
    add = parser.add_argument
    add("sentences", metavar="FILE", help=f"{', '.join(text_columns.READ)}")
    add("--column", default="source", help="column of the sentences in a table (%(default)s)")
    add("--model", type=Path, default=writer_folder(), metavar="FOLDER", help="(%(default)s)")
    add("--code", default=str(DEGREE), help="degree of change, or a tone (%(default)s)")
    add("--draws", type=positive, default=DRAWS, metavar="N", help="of a sentence (%(default)s)")
    add("--temperature", type=float, default=TEMPERATURE, help="(%(default)s)")
    add("--seed", type=int, default=0, metavar="N", help="of random choices (%(default)s)")
    add("--output", type=Path, required=True, metavar="FILE", help="JSON lines")
    return run_command("draw_drafts", lambda: draw(parser.parse_args(argv)))


def draw(args: argparse.Namespace) -> None:
    """Runs the command."""
    read = text_columns.read_columns(args.sentences, [args.column])
    done = _known(args.output)
    left = [*dict.fromkeys(text for (text,) in read if text and text not in done)]
    args.output.parent.mkdir(parents=True, exist_ok=True)
    writer = ModelWriter.load(args.model, seed=args.seed)
    quality = Quality(Judge.load(writer_folder() / JUDGE))
    with (
        args.output.open("a", encoding="utf-8") as file,
        Progress("drawing", len(left), "sentences") as bar,
    ):
        for first in range(0, len(left), BATCH):
            some = left[first : first + BATCH]
            drawn = writer.draw(some, args.code, args.draws, args.temperature)
            pairs = [(a, one) for a, own in zip(some, drawn, strict=True) for one in own]
            readings = quality([source for source, _ in pairs], [one for _, one in pairs])
            rows = [
                {"source": source, "code": args.code, "paraphrase": one.text}
                | {"accepted": reading.accepted, "overall": 5 * reading.overall}
                for (source, one), reading in zip(pairs, readings, strict=True)
            ]
            file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
            file.flush()
            bar.add(len(some))
    print(args.output)


def _known(output: Path) -> set[str]:
    """Returns the sentences that a file has drafts of; cuts off a line that was not finished.

    Raises ValueError for a file of anything else, which stays as it is.
    """
    whole, _, torn = (output.read_bytes() if output.is_file() else b"").rpartition(b"\n")
    rows = whole.splitlines()
    if not torn.startswith(START[: len(torn)]) or any(b'"accepted": ' not in one for one in rows):
        raise ValueError(f"{output}: is there already, and holds something other than drafts")
    if torn:
        output.write_bytes(whole + b"\n" if whole else b"")
    return {json.loads(row)["source"] for row in rows}


if __name__ == "__main__":
    sys.exit(main())
