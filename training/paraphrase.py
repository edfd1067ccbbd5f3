"""Paraphrases sentences by checked edits; needs no PyTorch and no model of your own.

  gaixie paraphrase "会议原定周四举行，但因为暴雨推迟到了下周。"
  gaixie paraphrase -n 3 --degree 2 "…"                 1: a light touch; 5: as much as possible
  gaixie paraphrase --keep 图书馆 "…"                    a term that must not change
  gaixie paraphrase sentences.txt                       TSV on standard output
  gaixie paraphrase corpus.parquet --column source --output paraphrases.parquet
  cat sentences.txt | gaixie paraphrase -
  OPENAI_API_KEY=… gaixie paraphrase --endpoint https://host/v1 --model NAME "…"

For sentences on the command line, it prints a line for each paraphrase. For a file, or - for
standard input, the columns are row (of the input, from 1), rank, source, paraphrase, and three
judgements by the pair encoder, from 0 to 1: same (the same meaning), fluent (good Chinese), good
(an editor would print it as a paraphrase). A sentence without a good enough paraphrase keeps its
row, without one; standard error says how many there were. Exit codes: 0 done, 1 no sentence has a
good enough paraphrase, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.paraphrase.endpoint import Endpoint
from gaixie.udfs.paraphrase.paraphraser import DEGREES, Paraphrase, Paraphraser, Wanted
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.text_tables import (
    READ,
    STANDARD,
    WRITTEN,
    check_extension,
    count_rows,
    read_columns,
    writing,
)

CHUNK = 256
"""Sentences read together: for batches of like length, and as a step of progress."""
SCHEMA = pa.schema(
    {
        "row": pa.int64(),
        "rank": pa.int32(),
        "source": pa.string(),
        "paraphrase": pa.string(),
        "same": pa.float32(),
        "fluent": pa.float32(),
        "good": pa.float32(),
    }
)
NOTHING = "no paraphrase good enough"


def main(argv: list[str] | None = None) -> int:
    """Runs the command, and returns its exit code."""
    return run_command("paraphrase", lambda: int(not paraphrase(_arguments(argv))))


def paraphrase(args: argparse.Namespace) -> int:
    """Runs the command; returns how many sentences have a paraphrase."""
    wanted = Wanted(args.degree, args.n, tuple(args.keep), args.seed)
    check_extension(args.output, WRITTEN)
    first = args.sentences[0]
    if first == STANDARD or first.endswith(READ):
        if len(args.sentences) > 1:
            raise ValueError(f"{args.sentences[1]}: expected one file, or only sentences")
        return _paraphrase_file(first, args, wanted)
    if args.output != STANDARD:
        raise ValueError("--output: only valid for a file of sentences")
    answers = _load(args)(args.sentences, wanted)
    for text, own in zip(args.sentences, answers, strict=True):
        for one in own:
            print(one.text)
        if not own:
            say(f"{text}: {NOTHING}")
    return sum(map(bool, answers))


def _load(args: argparse.Namespace) -> Paraphraser:
    if (args.endpoint is None) != (args.model is None):
        raise ValueError("--endpoint and --model: give both, or neither")
    return Paraphraser.load(endpoint=args.endpoint and Endpoint(args.endpoint, args.model))


def _paraphrase_file(name: str, args: argparse.Namespace, wanted: Wanted) -> int:
    total = None if name == STANDARD else count_rows(name, [args.column])
    if total == 0:
        raise ValueError(f"{name}: no sentences")
    paraphraser = _load(args)
    schema = SCHEMA.with_metadata({"encoder_signature": paraphraser.encoder.signature})
    sources = (text for (text,) in read_columns(name, [args.column]))
    done = found = 0
    with writing(args.output, schema) as write, Progress("paraphrasing", total, "sentences") as bar:
        while chunk := list(islice(sources, CHUNK)):
            answers = paraphraser([text or "" for text in chunk], wanted)
            write(pa.Table.from_pylist(_rows(chunk, answers, done + 1), schema=schema))
            done, found = done + len(chunk), found + sum(map(bool, answers))
            bar.add(len(chunk))
    if not done:
        raise ValueError("standard input: no sentences")
    say(f"{done:,} sentences: {found:,} paraphrased, {done - found:,} with {NOTHING}")
    return found


def _rows(
    chunk: Sequence[str | None], answers: Sequence[Sequence[Paraphrase]], first: int
) -> list[dict[str, Any]]:
    """Returns a row for each paraphrase, and one for each sentence without any."""
    rows = []
    for number, (source, own) in enumerate(zip(chunk, answers, strict=True), first):
        for rank, one in enumerate(own, 1):
            judged = {"same": one.same, "fluent": one.fluent, "good": one.good}
            texts = {"source": source, "paraphrase": one.text}
            rows.append({"row": number, "rank": rank, **texts, **judged})
        if not own:
            rows.append({"row": number, "source": source})
    return rows


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("paraphrase", __doc__)
    add = parser.add_argument
    add(
        "sentences",
        nargs="+",
        metavar="SENTENCE",
        help=f"sentences, or a file of {', '.join(READ)}, or - for standard input",
    )
    add("-n", type=positive, default=1, metavar="N", help="paraphrases of a sentence (%(default)s)")
    add("--degree", type=int, default=DEGREES, metavar="1-5", help="degree of change (%(default)s)")
    add(
        "--keep",
        action="append",
        default=[],
        metavar="TERM",
        help="a term that must not change; may be repeated",
    )
    add("--seed", type=int, default=0, metavar="N", help="of random choices (%(default)s)")
    add("--endpoint", metavar="URL", help="an OpenAI-compatible service to ask first")
    add("--model", metavar="NAME", help="the service's model")
    add("--column", default="source", help="column of the sentences in a table (%(default)s)")
    add(
        "--output",
        default=STANDARD,
        metavar="FILE",
        help=f"{', '.join(WRITTEN)}, complete once all is done; standard output if not given",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
