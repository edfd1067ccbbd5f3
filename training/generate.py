"""Writes paraphrases with a sequence-to-sequence model.

  python training/generate.py MODEL sentences.txt                            TSV on standard output
  python training/generate.py MODEL corpus.parquet --column source --output paraphrases.parquet
  cat sentences.txt | python training/generate.py MODEL - --drop-copies
  python training/generate.py MODEL sentences.txt --n-best 4 --beams 8
  python training/generate.py MODEL sentences.txt --sample --top-p 0.9 --temperature 0.8 --seed 1

MODEL: a folder of any AutoModelForSeq2SeqLM with its tokenizer, as training/curriculum.py leaves one.
Sentences: lines of .txt or standard input, or a column of .parquet, .jsonl, .csv or .tsv.
A line of output for each candidate, in the order of the input: row (of the input, from 1), rank, source,
paraphrase, log_probability (mean over the paraphrase's tokens, by the model itself, natural logarithm),
structure, synonyms, meaning, fluency and spscore (SPScore-zh; its signature is on standard error). A source that is null, empty or not UTF-8, and one
of which every candidate was empty or a dropped copy, keeps its row, without a paraphrase.

Entities stand in the paraphrase as in the source; an indexed token that the source does not have is
dropped and counted. Progress and the counts are on standard error.
Exit codes: 0 done, 2 something to mend (one line says what).

On Spark, where all that a pandas UDF needs is a function that takes lists:

    @pandas_udf("string")
    def paraphrase(source: pd.Series) -> pd.Series:
        return pd.Series(paraphrase_list("/models/gaixie", source.tolist()))
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from training.modeling.generator import LENGTH_STEP, Candidate, Decoding, Generator
from training.modeling.tokenizer import VOCABULARY_FILE
from udfs.io.text_tables import (
    READ,
    STANDARD,
    WRITTEN,
    check_extension,
    count_rows,
    read_columns,
    writing,
)
from udfs.metrics.encoder import PRECISIONS, VOCABULARIES, choose_device, load_network, loading
from udfs.spscore import OUTPUTS, SPScore

CHUNK = 4_096
"""Sentences read, cut into batches of like length and written at a time."""
PROGRESS_SECONDS = 5.0

COLUMNS = {
    "row": pa.int64(),
    "rank": pa.int32(),
    "source": pa.string(),
    "paraphrase": pa.string(),
    "log_probability": pa.float64(),
    **dict.fromkeys(OUTPUTS, pa.float64()),
}


def paraphrases(
    model: Any,
    tokenizer: Any,
    sources: Sequence[str],
    *,
    num_beams: int = 1,
    max_new_tokens: int | None = None,
    batch_size: int = 32,
) -> list[str]:
    """The best paraphrase of each source; "" where the source or what the model writes is empty.

    max_new_tokens: None is relative to the source, see Decoding. The model stays in the mode, training
    or not, that it was in.
    """
    decoding = Decoding(num_beams, max_new_tokens=max_new_tokens, batch_size=batch_size)
    rows = Generator(model, tokenizer).candidates(sources, decoding, scored=False)
    return [row[0].text if row else "" for row in rows]


def load_generator(folder: str, device: str = "auto", precision: str = "float32") -> Generator:
    """The model of a folder, which is loaded once in a process; the counts start anew.

    device: auto is the GPU where there is one. precision: float32, or bfloat16, in which the weights
    are then held. Raises OSError or ValueError, in one line, where there is no such folder, it has no
    sequence-to-sequence model, weights or tokenizer, or the tokenizer has more tokens than the model.
    """
    return Generator(*_load(folder, device, precision))


@cache
def _load(folder: str, device: str, precision: str) -> tuple[Any, Any]:
    if precision not in PRECISIONS:
        raise ValueError(f"precision {precision!r}: expected {' or '.join(PRECISIONS)}")
    try:
        place = torch.empty(0, device=choose_device(device)).device
    except (RuntimeError, AssertionError):  # the latter: torch without CUDA
        raise ValueError(f"device {device!r}: there is none here") from None
    with loading(folder):
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        if not config.is_encoder_decoder:
            raise ValueError(f"{config.model_type} is no sequence-to-sequence model")
        files = (*VOCABULARIES, VOCABULARY_FILE)
        if Path(folder).is_dir() and not any(any(Path(folder).glob(name)) for name in files):
            raise ValueError("it has no tokenizer")
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        if tokenizer.pad_token_id is None:
            raise ValueError("its tokenizer has no padding token")
        model = load_network(AutoModelForSeq2SeqLM, folder, config)
        tokens = model.get_input_embeddings().num_embeddings
        if len(tokenizer) > tokens:
            raise ValueError(
                f"its tokenizer has {len(tokenizer):,} tokens, but the model only {tokens:,}: the "
                "two were not made for each other"
            )
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    return model.to(place, dtype), tokenizer


def paraphrase_list(
    folder: str, sources: Sequence[str | None], decoding: Decoding | None = None
) -> list[str | None]:
    """The best paraphrase of each source by the model of a folder; null where there is none."""
    found = load_generator(folder).candidates(sources, decoding or Decoding(), scored=False)
    return [row[0].text if row else None for row in found]


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    try:
        generate(args)
    except (ValueError, OSError) as error:
        print(f"generate: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def generate(args: argparse.Namespace) -> None:
    """The command: reads, writes candidates chunk by chunk, and says what became of the sentences."""
    decoding = Decoding(
        args.beams,
        args.sample,
        args.top_p,
        args.temperature,
        args.seed,
        args.n_best,
        args.max_new_tokens,
        args.drop_copies,
        args.batch_size,
    )
    check_extension(args.output, WRITTEN)
    total = None
    if args.sentences != STANDARD:
        total = count_rows(args.sentences, [args.column])
        if not total:
            raise ValueError(f"{args.sentences}: no sentences")
    generator = load_generator(args.model, args.device, args.precision)
    spscore = SPScore.load()
    signature = {"spscore_signature": spscore.signature()}
    schema = pa.schema(COLUMNS, signature)
    progress = Progress(total)
    sources = (source for (source,) in read_columns(args.sentences, [args.column]))
    done = 0
    with writing(args.output, schema) as write:
        while chunk := list(islice(sources, CHUNK)):
            found = generator.candidates(chunk, decoding, progress=progress.add)
            write(table_of(chunk, found, done + 1, spscore, schema))
            done += len(chunk)
    if not done:
        raise ValueError("standard input: no sentences")
    print(spscore.signature(), file=sys.stderr)
    print(in_words(generator.counts), file=sys.stderr)


def table_of(
    sources: Sequence[str | None],
    found: Sequence[Sequence[Candidate]],
    first: int,
    spscore: SPScore,
    schema: pa.Schema,
) -> pa.Table:
    """A row for each candidate, and one for each source that has none. first: the first one's number."""
    rows: list[tuple[Any, ...]] = []
    for number, (source, candidates) in enumerate(zip(sources, found, strict=True), first):
        for rank, one in enumerate(candidates, 1):
            rows.append((number, rank, source, one.text, one.log_probability))
        if not candidates:
            rows.append((number, None, source, None, None))
    columns = list(zip(*rows, strict=True))
    scores = spscore.outputs(columns[2], columns[3]).astype(np.float64)
    arrays = [
        pa.array(values, field.type, from_pandas=True)
        for values, field in zip((*columns, *scores.T), schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def in_words(counts: Counter[str]) -> str:
    """What became of the sentences: the first number is the sum of the three behind it."""
    written = counts["sentences"] - counts["no text"] - counts["no candidate"]
    return (
        f"{counts['sentences']:,} sentences: {written:,} paraphrased, {counts['no candidate']:,} left "
        f"without a paraphrase, {counts['no text']:,} without text; {counts['paraphrases']:,} "
        f"paraphrases, {counts['copies']:,} copies dropped, {counts['unknown entities']:,} unknown "
        f"entity indices, {counts['cut']:,} sources cut"
    )


class Progress:
    """Sentences done, rate and time left, on standard error every PROGRESS_SECONDS."""

    def __init__(self, total: int | None):
        self.total, self.done = total, 0
        self._started = self._shown = time.monotonic()

    def add(self, sentences: int) -> None:
        self.done += sentences
        now = time.monotonic()
        if now - self._shown < PROGRESS_SECONDS:
            return
        self._shown = now
        rate = self.done / (now - self._started)
        text = f"{self.done:,} sentences, {rate:,.1f} a second"
        if self.total and rate:
            text += f", {(self.total - self.done) / rate:,.0f} s left of {self.total:,} sentences"
        print(text, file=sys.stderr, flush=True)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="generate.py",
        description=__doc__.partition("\nOn Spark")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="folder of the model and its tokenizer")
    add(
        "sentences",
        metavar="SENTENCES",
        help=f"a file of {', '.join(READ)}, or - for standard input",
    )
    add("--column", default="source", help="of the sentences in a table (%(default)s)")
    add(
        "--output",
        default=STANDARD,
        metavar="FILE",
        help=f"{', '.join(WRITTEN)}, there when all is done; standard output if not given",
    )
    add("--n-best", type=int, default=1, metavar="N", help="candidates of a sentence (%(default)s)")
    add("--beams", type=int, default=4, metavar="N", help="of the search (%(default)s)")
    add("--sample", action="store_true", help="draw candidates instead of searching")
    add("--top-p", type=float, default=0.95, metavar="P", help="nucleus of --sample (%(default)s)")
    add("--temperature", type=float, default=1.0, metavar="T", help="of --sample (%(default)s)")
    add("--seed", type=int, default=13, metavar="N", help="of --sample (%(default)s)")
    add(
        "--max-new-tokens",
        type=int,
        metavar="N",
        help=f"of a paraphrase; without it twice its source's, rounded up to {2 * LENGTH_STEP}s",
    )
    add(
        "--drop-copies",
        action="store_true",
        help="pass over candidates that equal their source; both normalised",
    )
    add("--batch-size", type=int, default=32, metavar="N", help="sentences at once (%(default)s)")
    add("--device", default="auto", help="auto: the GPU where there is one; cpu, cuda:1")
    add("--precision", choices=PRECISIONS, default=PRECISIONS[0], help="(%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
