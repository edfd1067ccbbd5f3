"""Paraphrases sentences and texts: a model draws drafts, and checks refuse most of them.

  gaixie paraphrase "会议原定周四举行，但因为暴雨推迟到了下周。"
  gaixie paraphrase -n 3 --degree 2 "…"                 1: a light touch; 5: a rewrite
  gaixie paraphrase --tone 口语 "…"                      正式, 口语 or 精简
  gaixie paraphrase --keep 图书馆 "…"                    a term that must not change
  gaixie paraphrase sentences.txt                       TSV on standard output
  gaixie paraphrase corpus.parquet --column source --output paraphrases.parquet
  cat sentences.txt | gaixie paraphrase -
  gaixie paraphrase --model runs/first/model --draws 8 --degree 4 sentences.txt
  OPENAI_API_KEY=… gaixie paraphrase --endpoint https://host/v1 --model NAME "…"

The models are made once, by make writer (1.1 GB to download): one writes, one reads the drafts,
also those of a service. --model is another folder that training/make_writer.py made; or a folder of
training/curriculum.py, or any causal or sequence-to-sequence model of transformers that learned its
form, which SPScore-zh alone ranks. A text is written sentence by sentence. For sentences on the
command line, a line is printed for each paraphrase. For a file, or - for standard input, the
columns are row (of the input, from 1), rank, source, paraphrase, and its judgements: structure,
synonyms, meaning, fluency and spscore of SPScore-zh, before them accepted, the probability that a
reader accepts it (or entities_kept, per cent, of a model that SPScore-zh ranks). A sentence without
a good enough paraphrase keeps its row, without one; standard error says how many there were. Exit
codes: 0 done, 1 no sentence has a good enough paraphrase, 2 something to fix (one line says what).
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from gaixie.training.settings import Decoding, Ranking
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.paraphrase.endpoint import EndpointWriter
from gaixie.udfs.paraphrase.paraphraser import DEGREE, Paraphraser, Wanted
from gaixie.udfs.paraphrase.prompt import TONES
from gaixie.udfs.paraphrase.writer import MODEL
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.storage import text_columns
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.settings import add_options, options_of
from gaixie.udfs.storage.tables import STANDARD, Form, header_of, kind_of, named

CHUNK, FEW = 256, 16
"""Sentences read together, for batches of like length, and as a step of progress; and if a writer
needs seconds for each."""
COLUMNS = {
    "row": pa.int64(),
    "rank": pa.int32(),
    "source": pa.string(),
    "paraphrase": pa.string(),
}
NOTHING = "no paraphrase good enough"
Write = Callable[[Sequence[str]], list[list[dict[str, Any]]]]
"""Maps sentences to the paraphrases of each, best first: the columns from paraphrase on."""


def main(argv: list[str] | None = None) -> int:
    """Runs the command, and returns its exit code."""
    return run_command("paraphrase", lambda: int(not paraphrase(_arguments(argv))))


def paraphrase(args: argparse.Namespace) -> int:
    """Runs the command; returns how many sentences have a paraphrase."""
    text_columns.check_extension(args.output, text_columns.WRITTEN)
    first = args.sentences[0]
    if first == STANDARD or first.endswith(text_columns.READ):
        if len(args.sentences) > 1:
            raise ValueError(f"{args.sentences[1]}: expected one file, or only sentences")
        return _paraphrase_file(first, args)
    if args.output != STANDARD:
        raise ValueError("--output: only valid for a file of sentences")
    answers = _load(args, judged=False)[0](args.sentences)
    for text, own in zip(args.sentences, answers, strict=True):
        for one in own:
            print(one["paraphrase"])
        if not own:
            say(f"{text}: {NOTHING}")
    return sum(map(bool, answers))


def _load(args: argparse.Namespace, judged: bool = True) -> tuple[Write, pa.Schema]:
    """Returns what writes, and the columns of its table. judged: whether the metric judges too."""
    degree = DEGREE if args.degree is None else args.degree
    wanted = Wanted(degree, args.n, tuple(args.keep), args.tone)
    if args.model and not args.endpoint and not Path(args.model, MODEL).is_file():
        return _load_model(args)
    for name in (*Decoding.model_fields, *Ranking.model_fields):
        if name not in ("seed", "code", "draws") and getattr(args, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')}: only for a model of curriculum.py")
    if args.endpoint and not args.model:
        raise ValueError("--endpoint: give --model too, the service's model")
    writer = EndpointWriter(args.endpoint, args.model, args.seed) if args.endpoint else None
    paraphraser = Paraphraser.load(args.model, args.seed, writer)
    if args.draws:
        paraphraser.draws = options_of(Decoding, args).draws

    metric = SPScore.load("full") if judged else None

    def write(texts: Sequence[str]) -> list[list[dict[str, Any]]]:
        found = [
            [{"paraphrase": one.text, "accepted": one.accepted} for one in own]
            for own in paraphraser(texts, wanted)
        ]
        if metric:
            sources = [text for text, own in zip(texts, found, strict=True) for _ in own]
            rows = [one for own in found for one in own]
            outputs = metric.outputs(sources, [str(one["paraphrase"]) for one in rows])
            for one, row in zip(rows, outputs.tolist(), strict=True):
                one |= dict(zip(OUTPUTS, row, strict=True))
        return found

    columns = COLUMNS | dict.fromkeys(("accepted", *OUTPUTS), pa.float32())
    return write, pa.schema(columns, metric and {"spscore_signature": metric.signature()})


def _load_model(args: argparse.Namespace) -> tuple[Write, pa.Schema]:
    from gaixie.training.modeling.trained_paraphraser import TrainedParaphraser  # loads PyTorch

    code = args.tone or (str(args.degree) if args.degree else "")
    decoding, ranking = options_of(Decoding, args, code=code), options_of(Ranking, args)
    paraphraser = TrainedParaphraser.load(args.model, ranking)

    def write(texts: Sequence[str]) -> list[list[dict[str, Any]]]:
        found = []
        for text, ranked in zip(texts, paraphraser(texts, decoding), strict=True):
            terms = [term for term in args.keep if term in text]
            kept = [one for one in ranked if all(term in one.text for term in terms)][: args.n]
            found.append(
                [{"paraphrase": p.text, "entities_kept": p.entities} | p.judgements for p in kept]
            )
        return found

    judged = dict.fromkeys(("entities_kept", *OUTPUTS), pa.float64())
    signed = {"spscore_signature": paraphraser.spscore.signature()}
    return write, pa.schema(COLUMNS | judged, signed)


def _paraphrase_file(name: str, args: argparse.Namespace) -> int:
    columns, kind = [args.column], kind_of(name) or "txt"
    if kind != "txt":
        columns = named(header_of(name, Form(kind)), columns)
    total = None if name == STANDARD else text_columns.count_rows(name, columns)
    if total == 0:
        raise ValueError(f"{name}: no sentences")
    paraphrase_all, schema = _load(args)
    sources = (text for (text,) in text_columns.read_columns(name, columns))
    done = found = 0
    with (
        text_columns.writing(args.output, schema) as write,
        Progress("paraphrasing", total, "sentences") as bar,
    ):
        while chunk := list(islice(sources, FEW if "accepted" in schema.names else CHUNK)):
            answers = paraphrase_all([text or "" for text in chunk])
            write(pa.Table.from_pylist(_rows(chunk, answers, done + 1), schema=schema))
            done, found = done + len(chunk), found + sum(map(bool, answers))
            bar.add(len(chunk))
    if not done:
        raise ValueError("standard input: no sentences")
    say(f"{done:,} sentences: {found:,} paraphrased, {done - found:,} with {NOTHING}")
    return found


def _rows(
    chunk: Sequence[str | None], answers: Sequence[Sequence[dict[str, Any]]], first: int
) -> list[dict[str, Any]]:
    """Returns a row for each paraphrase, and one for each sentence without any."""
    rows = []
    for number, (source, own) in enumerate(zip(chunk, answers, strict=True), first):
        row = {"row": number, "source": source}
        rows += [row | {"rank": rank} | one for rank, one in enumerate(own, 1)] or [row]
    return rows


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("paraphrase", __doc__)
    add = parser.add_argument
    sentences = f"sentences, or a file of {', '.join(text_columns.READ)}, or - for standard input"
    add("sentences", nargs="+", metavar="SENTENCE", help=sentences)
    add("-n", type=positive, default=1, metavar="N", help="paraphrases of a sentence (%(default)s)")
    add("--degree", type=int, metavar="1-5", help=f"degree of change ({DEGREE})")
    add("--tone", help=f"instead of a degree: {', '.join(TONES)}")
    keep = "a term that must not change; may be repeated"
    add("--keep", action="append", default=[], metavar="TERM", help=keep)
    add("--seed", type=int, default=0, metavar="N", help="of random choices (%(default)s)")
    add("--model", metavar="FOLDER", help="another model, or with --endpoint the service's")
    add("--endpoint", metavar="URL", help="an OpenAI-compatible service that writes")
    add("--column", default="source", help="column of the sentences in a table (%(default)s)")
    output = f"{', '.join(text_columns.WRITTEN)}, complete once all is done; else standard output"
    add("--output", default=STANDARD, metavar="FILE", help=output)
    group = parser.add_argument_group("how a model of curriculum.py writes (--draws: every one)")
    add_options(group, Decoding, leave_out=("seed", "code"))
    add_options(group, Ranking)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
