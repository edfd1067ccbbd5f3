"""Writes paraphrases with a sequence-to-sequence model.

  python training/generate.py MODEL sentences.txt                            TSV on standard output
  python training/generate.py MODEL corpus.parquet --column source --output paraphrases.parquet
  cat sentences.txt | python training/generate.py MODEL - --drop-copies
  python training/generate.py MODEL sentences.txt --n-best 4 --beams 8
  python training/generate.py MODEL sentences.txt --beams 8 --draws 12 --rank-by spscore
  python training/generate.py MODEL sentences.txt --degree 4        1: a light touch; 5: a rewrite
  python training/generate.py MODEL sentences.txt --sample --top-p 0.9 --temperature 0.8 --seed 1

MODEL: a folder with any AutoModelForSeq2SeqLM and its tokenizer, such as training/curriculum.py
writes. Sentences: lines of .txt or standard input, or a column of .parquet, .jsonl, .csv or .tsv.
The output has a line for each candidate, in input order: row (of the input, from 1), rank, source,
paraphrase, log_probability (mean over the paraphrase's tokens, by the model itself, natural
logarithm), reverse (with --reverse: the same for the source given the paraphrase), entities_kept
(per cent; none if the source has none), structure, synonyms, meaning, fluency and spscore
(SPScore-zh; its signature is on standard error). The first candidate is the model's choice. With
--rank-by spscore, all beams and draws are candidates; the first has the highest score of those that
kept all entities and reach --min-meaning. A source keeps its row without a paraphrase if it is
null, empty or not UTF-8, or if every candidate was empty or a dropped copy.

Entities appear in the paraphrase as in the source; an indexed token that the source does not have
is dropped and counted. Progress and counts go to standard error. Exit codes: 0 done, 2 something to
fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from pydantic import Field

from gaixie.training.modeling.generation import Loading, add_decoding, in_words, load_generator
from gaixie.training.modeling.generator import Decoding
from gaixie.training.modeling.paraphraser import Paraphraser, Ranked, Ranking
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.storage.options import add_command, options_of
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.settings import Options
from gaixie.udfs.storage.text_tables import (
    READ,
    STANDARD,
    WRITTEN,
    check_extension,
    count_rows,
    read_columns,
    writing,
)

CHUNK = 4_096
"""Sentences read at a time; these are cut into batches of like length, and then written."""

COLUMNS = {
    "row": pa.int64(),
    "rank": pa.int32(),
    "source": pa.string(),
    "paraphrase": pa.string(),
    "log_probability": pa.float64(),
    "reverse": pa.float64(),
    "entities_kept": pa.float64(),
    **dict.fromkeys(OUTPUTS, pa.float64()),
}


class Files(Options):
    """What is read and written."""

    model: str
    """Folder of the model and its tokenizer."""
    sentences: str = Field(description=f"A file of {', '.join(READ)}, or - for standard input.")
    column: str = "source"
    """Column of the sentences in a table."""
    output: str = Field(
        default=STANDARD,
        title="FILE",
        description=f"A file of {', '.join(WRITTEN)}, which appears once all is done; - prints TSV",
    )


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("generate.py", __doc__)
    add_command(parser, Files, positional=("model", "sentences"))
    add_decoding(parser)
    args = parser.parse_args(argv)
    return run_command("generate", lambda: generate(args))


def generate(args: argparse.Namespace) -> None:
    """Runs the command: reads, writes candidates chunk by chunk, and reports what became of the
    sentences."""
    decoding, ranking = options_of(Decoding, args), options_of(Ranking, args)
    files, loading = options_of(Files, args), options_of(Loading, args)
    check_extension(files.output, WRITTEN)
    total = None
    if files.sentences != STANDARD:
        total = count_rows(files.sentences, [files.column])
        if not total:
            raise ValueError(f"{files.sentences}: no sentences")
    generator = load_generator(files.model, loading.device, loading.precision)
    spscore = SPScore.load(loading.tier)
    paraphraser = Paraphraser(generator, decoding, ranking, spscore)
    schema = pa.schema(COLUMNS, {"spscore_signature": spscore.signature()})
    sources = (source for (source,) in read_columns(files.sentences, [files.column]))
    done = 0
    with (
        writing(files.output, schema) as write,
        Progress("generating", total, "sentences") as shown,
    ):
        while chunk := [*islice(sources, CHUNK)]:
            write(table_of(chunk, paraphraser(chunk, shown.add), done + 1, schema))
            done += len(chunk)
    if not done:
        raise ValueError("standard input: no sentences")
    say(spscore.signature())
    say(in_words(generator.counts))


def table_of(
    sources: Sequence[str | None], ranked: Sequence[Sequence[Ranked]], first: int, schema: pa.Schema
) -> pa.Table:
    """Returns a row for each candidate, and one for each source without any. first: the first
    source's number."""
    rows: list[tuple[Any, ...]] = []
    for number, (source, candidates) in enumerate(zip(sources, ranked, strict=True), first):
        for rank, candidate in enumerate(candidates, 1):
            *own, judgements = candidate
            rows.append((number, rank, source, *own, *judgements.values()))
        if not candidates:
            rows.append((number, None, source, *[None] * (len(schema) - 3)))
    arrays = [
        pa.array(values, field.type, from_pandas=True)
        for values, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


if __name__ == "__main__":
    sys.exit(main())
