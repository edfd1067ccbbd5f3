"""Scores paraphrases with any of the metrics.

  python -m gaixie.udfs.metrics source.txt paraphrase.txt            lines, by SPScore-zh
  python -m gaixie.udfs.metrics --metrics bleu,ibleu:alpha=0.5 a.txt b.txt --reference r.txt
  python -m gaixie.udfs.metrics --metrics self-bleu,pinc pairs.tsv   columns source, paraphrase
  python -m gaixie.udfs.metrics --metrics rouge-l pairs.jsonl --reference human  a column of it
  python -m gaixie.udfs.metrics --metrics spscore:tier=full pairs.tsv   or paper, or core
  cat pairs.tsv | python -m gaixie.udfs.metrics --metrics spscore,spscore-meaning - --json

Sentence scores go to standard output, one line a pair: TSV with a header, or JSON lines. Corpus
scores with their signatures follow on standard error (with --corpus, only they are printed, on
standard output). Files are lines of text; a single FILE is a table (.tsv or .csv with a header,
.jsonl, .parquet, .xlsx; - is standard input, TSV or JSON lines). Of a file, columns that people
call otherwise are recognised, such as 原句 and 改写. A metric's settings follow its name:
parascore:omega=0.1. NAME-free reads the source in place of the reference. Exit codes: 0 done, 2
something to fix (one line says what).
"""

import argparse
import json
import math
import sys
import textwrap
from functools import partial
from io import BufferedReader
from typing import Any, TextIO, cast

import numpy as np
import pyarrow.compute as pc

from gaixie.udfs.command_line import encoding, in_words, make_parser, run_command, say
from gaixie.udfs.metrics import METRICS, Metric, Pairs, load_metric
from gaixie.udfs.metrics.spscore import SPScoreZh
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.tables import KINDS, Form, header_of, kind_of, named
from gaixie.udfs.storage.text_columns import is_standard, read_columns, read_lines

STEP = 500
"""Pairs between two looks at the clock."""
TABLES = [endings[0] for kind, endings in KINDS.items() if kind != "txt"]


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    return run_command("metrics", partial(run, _arguments(argv)))


def run(args: argparse.Namespace) -> None:
    """Reads, scores and prints."""
    metrics = [load_metric(spec) for spec in args.metrics.split(",")]
    pairs = read_pairs(args)
    for metric in metrics:
        metric.check(pairs)
    scores = [score(metric, pairs) for metric in metrics]
    if args.corpus:
        print_corpus(metrics, pairs, scores, sys.stdout, args.json)
    else:
        print_sentences(metrics, scores, args.json)
        print_corpus(metrics, pairs, scores, sys.stderr, False)


def read_pairs(args: argparse.Namespace) -> Pairs:
    """Reads two files of lines, or one table. A ValueError names the file and the column."""
    if args.paraphrase:
        names = [args.source, args.paraphrase, *args.reference]
        lines = partial(read_lines, errors="strict", encoding=args.encoding)
        columns: list[list[str | None]] = [[*lines(name)] for name in names]
        rows = len(columns[0])
        for name, column in zip(names, columns, strict=True):
            if len(column) != rows:
                here = f"{name}: {len(column):,} lines"
                raise ValueError(f"{here}, expected {rows:,} as in {args.source}")
    else:
        names = [args.source_column, args.paraphrase_column, *args.reference]
        columns = _table(args.source, names, args.encoding)
    if not columns[0]:
        raise ValueError(f"{args.source}: no pairs")
    return Pairs.of(*columns)


def _table(name: str, columns: list[str], encoding: str | None) -> list[list[str | None]]:
    """Reads columns of a table; standard input is TSV, or JSON lines if it starts with a brace."""
    standard, kind, header = ".tsv", kind_of(name), columns
    if is_standard(name):
        if cast(BufferedReader, sys.stdin.buffer).peek(1).startswith(b"{"):
            standard = ".jsonl"
    elif kind in (None, "txt"):
        raise ValueError(f"{name}: one file must be a table, {', '.join(TABLES)}; or give two")
    else:
        header = header_of(name, Form(kind, encoding))
    rows = read_columns(name, columns := named(header, columns), "strict", standard, encoding)
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]


def score(metric: Metric, pairs: Pairs) -> np.ndarray:
    """Returns the sentence scores; shows the progress of SPScore-zh, whose encoder is slow."""
    step = STEP if isinstance(metric, SPScoreZh) else len(pairs)
    parts = []
    with Progress(metric.title, len(pairs), "pairs") as progress:
        for start in range(0, len(pairs), step):
            try:
                parts.append(metric.sentence_scores(pairs.part(start, step)))
            except ModuleNotFoundError as error:
                raise ValueError(f"{metric.name}: {in_words(error)}") from error
            progress.add(len(parts[-1]))
    return np.concatenate(parts)


def print_sentences(metrics: list[Metric], columns: list[np.ndarray], as_json: bool) -> None:
    """Prints a line for each pair, with an empty cell or null if a metric gives no score."""
    scores = np.column_stack(columns)
    names = [metric.name for metric in metrics]
    if not as_json:
        print("\t".join(names))
    for row in scores.tolist():
        values = [None if math.isnan(value) else round(value, 6) for value in row]
        if as_json:
            print(json.dumps(dict(zip(names, values, strict=True))))
        else:
            print("\t".join("" if value is None else f"{value:.6f}" for value in values))


def print_corpus(
    metrics: list[Metric], pairs: Pairs, columns: list[np.ndarray], file: TextIO, as_json: bool
) -> None:
    """Prints a line for each metric: its name, the score of all pairs, how many have one, and its
    signature. Says on standard error which pairs have none."""
    for metric, scores in zip(metrics, columns, strict=True):
        value, n = metric.corpus_score(pairs, scores), int((~np.isnan(scores)).sum())
        name, signature = metric.title, metric.signature()
        if as_json:
            score = None if math.isnan(value) else round(value, 6)
            row = {"metric": metric.name, "score": score, "n": n, "signature": signature}
            print(json.dumps(row), file=file)
        else:
            arrow = "↑" if metric.higher_is_better else "↓"
            print(f"{name} {arrow}\t{value:.4f}\tn={n}\t{signature}", file=file)
        if without := [f"{place + 1:,}" for place in np.flatnonzero(np.isnan(scores))]:
            left = ", ".join(without[:5]) + ", …" * (len(without) > 5)
            fault = f"{len(without):,} have no sentence, or one with U+FFFD (pair {left})"
            say(f"{name}: {n:,} of {len(pairs):,} pairs scored; {fault}")
        if isinstance(metric, SPScoreZh):
            chinese = pc.fill_null(pc.match_substring_regex(pairs.source, r"\p{Han}"), True)
            if foreign := int(((scores == 0) & ~chinese.to_numpy(zero_copy_only=False)).sum()):
                say(f"{name}: {foreign:,} of the sources have no Chinese character: scored 0")


def describe() -> str:
    """Describes each metric in a line or two: its meaning, range and better direction."""
    lines, width = ["metrics:"], max(map(len, METRICS)) + 2
    for name, make in METRICS.items():
        metric: Any = make if hasattr(make, "range") else make()  # what depends on settings
        low, high = (f"{bound:g}" for bound in metric.range)
        better = "higher" if metric.higher_is_better else "lower"
        text = f"{metric.summary} {low} to {high}, {better} is better"
        text += "; needs --reference." if metric.needs_reference else "."
        text = text[:-1] + "; reads --reference too." if metric.uses_reference else text
        first, rest = f"  {name:<{width}}", " " * (width + 2)
        lines += textwrap.wrap(text, width + 74, initial_indent=first, subsequent_indent=rest)
    return "\n".join(lines)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("python -m gaixie.udfs.metrics", __doc__)
    parser.epilog = describe()
    add = parser.add_argument
    add("source", metavar="SOURCE", help="lines of text, or a table; - is stdin")
    add("paraphrase", metavar="PARAPHRASE", nargs="?", help="lines of text")
    commas = "metrics, separated by commas (%(default)s)"
    add("--metrics", default="spscore", metavar="NAMES", help=commas)
    says = "a file of lines, or the name of a column of the table; may be repeated"
    add("--reference", action="append", default=[], metavar="REF", help=says)
    for side in ("source", "paraphrase"):
        column = "column of the table (%(default)s)"
        add(f"--{side}-column", default=side, metavar="NAME", help=column)
    add("--encoding", type=encoding, metavar="NAME", help="of text, such as gb18030; else UTF-8")
    add("--json", action="store_true", help="JSON lines instead of TSV")
    add("--corpus", action="store_true", help="print only corpus scores")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
