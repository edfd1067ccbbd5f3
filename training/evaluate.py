"""Compares systems that paraphrase the same sources: SPScore-zh, and what stands beside it.

  python training/evaluate.py pairs.parquet --system mt=mt_zh --system human=pe_zh --output evaluation/
  python training/evaluate.py pairs.parquet --system human --model gaixie=model/ --output evaluation/
  python training/evaluate.py pairs.jsonl --generations gaixie=paraphrases.tsv --output evaluation/

A system is a column of the table (--system NAME=COLUMN), a file that training/generate.py wrote
(--generations NAME=FILE, matched by the source's text, the first candidate of each), or a model that
writes now (--model NAME=FOLDER). The copy baseline, each source as its own paraphrase, is always there.
Tables: .parquet, .jsonl, .csv, .tsv. Texts are normalised, NFKC and spaces collapsed, before anything is
measured.

Source: Chinese Sentence Paraphrasing, Table 8 (mean and standard deviation of SPScore-zh) and Table 7
(cases). Means have 95 % intervals by bootstrap over sources, the same resamples for all systems.
A row without a source is left out; a row for which a system has no paraphrase is left out of that
system alone. Both are counted.

  OUTPUT/evaluation.md      tables, cases and signatures; evaluation.json has the same and all settings
  OUTPUT/evaluation.png     every system's means with their intervals
  OUTPUT/scores.parquet     row, source, system, paraphrase and its scores

Exit codes: 0 done, 2 something to mend (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from training.evaluation.report import print_table, write
from training.evaluation.scores import METRICS, SAMPLES, Measure, estimates, measures
from training.generate import Progress, in_words, load_generator
from training.modeling.generator import SPACE_BESIDE_CHINESE, Decoding, has_text
from udfs.io.text_tables import check_extension, read_columns
from udfs.metrics import Pairs
from udfs.metrics.encoder import PRECISIONS, model_signature
from udfs.text.normalise import normalise

TABLES = (".tsv", ".csv", ".jsonl", ".parquet")
COPY = "copy"


@dataclass(frozen=True)
class System:
    name: str
    made_by: str
    """As the report says it."""
    paraphrases: list[str | None]
    """Of each row, normalised."""


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    try:
        evaluate(args)
    except (ValueError, OSError, ImportError) as error:
        print(f"evaluate: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def evaluate(args: argparse.Namespace) -> None:
    """The command: reads, generates, scores, reports."""
    for name, value, least in (
        ("limit", args.limit, 1),
        ("samples", args.samples, 1),
        ("cases", args.cases, 0),
    ):
        if value is not None and value < least:
            raise ValueError(f"--{name} {value}: expected {least} or more")
    decoding = Decoding(
        beams=args.beams,
        max_new_tokens=args.max_new_tokens,
        drop_copies=args.drop_copies,
        batch_size=args.batch_size,
    )
    named = [_named(text) for text in (*args.system, *args.generations, *args.model)]
    _check_names([name for name, _ in named])
    found, left_out = measures(args.metrics and tuple(args.metrics.split(",")), args.encoder)
    for title, reason in left_out.items():
        print(f"{title} is left out: {reason}", file=sys.stderr)
    for text in args.model:  # all of them, before one writes for hours
        load_generator(_named(text)[1], args.device, args.precision)
    sources, systems, without_source = read_systems(args)
    systems += [_from_generations(text, sources, args.close_spaces) for text in args.generations]
    systems += [_from_model(text, sources, decoding, args) for text in args.model]
    scores = score(sources, systems, found)
    table = estimates(scores, np.array(sources), args.samples, args.seed)
    result = {
        "pairs": args.pairs,
        "source": args.source,
        "rows": without_source + len(sources),
        "without_source": without_source,
        "evaluated": len(sources),
        "sources": len(set(sources)),
        "samples": args.samples,
        "seed": args.seed,
        "systems": [
            {
                "name": one.name,
                "made_by": one.made_by,
                "rows": len(sources) - one.paraphrases.count(None),
                "left_out": one.paraphrases.count(None),
                "measures": {m.name: table[one.name, m.name]._asdict() for m in found},
            }
            for one in systems
        ],
        "measures": [
            {name: getattr(m, name) for name in ("name", "title", "better", "digits", "signature")}
            for m in found
        ],
        "left_out": left_out,
        "cases": cases(sources, systems, scores, args.cases, args.seed),
    }
    write(args.output, result)
    pq.write_table(sentence_table(sources, systems, scores, found), args.output / "scores.parquet")
    print_table(result)
    print(args.output / "evaluation.md")


def read_systems(args: argparse.Namespace) -> tuple[list[str], list[System], int]:
    """Sources, the copy baseline and the systems that are columns, and the rows without a source."""
    check_extension(args.pairs, TABLES)
    named = [_named(text) for text in args.system]
    columns = list(dict.fromkeys([args.source, *(column for _, column in named)]))
    rows = list(islice(read_columns(args.pairs, columns), args.limit))
    if not rows:
        raise ValueError(f"{args.pairs}: no rows")
    table = {
        column: [_clean(text, args.close_spaces) for text in texts]
        for column, texts in zip(columns, zip(*rows, strict=True), strict=True)
    }
    kept = [k for k, source in enumerate(table[args.source]) if source is not None]
    if not kept:
        raise ValueError(f"{args.pairs}: no row has text in column '{args.source}'")
    sources = [table[args.source][k] for k in kept]
    systems = [System(COPY, "each source as it is", sources)]
    systems += [
        System(name, f"column {column}", [table[column][k] for k in kept]) for name, column in named
    ]
    return sources, systems, len(rows) - len(kept)


def _clean(text: str | None, close_spaces: bool) -> str | None:
    """The text normalised; None where it has none."""
    if not has_text(text):
        return None
    text = normalise(text)
    return SPACE_BESIDE_CHINESE.sub("", text) if close_spaces else text


def _from_generations(text: str, sources: Sequence[str], close_spaces: bool) -> System:
    name, file = _named(text)
    check_extension(file, TABLES)
    best: dict[str | None, str | None] = {}
    for source, paraphrase in read_columns(file, ["source", "paraphrase"]):
        best.setdefault(_clean(source, close_spaces), _clean(paraphrase, close_spaces))
    found = [best.get(source) for source in sources]
    if not any(found):
        raise ValueError(f"{file}: has no paraphrase of any source")
    return System(name, f"file {file}", found)


def _from_model(
    text: str, sources: Sequence[str], decoding: Decoding, args: argparse.Namespace
) -> System:
    name, folder = _named(text)
    generator = load_generator(folder, args.device, args.precision)
    different = list(dict.fromkeys(sources))
    progress = Progress(len(different))
    rows = generator.candidates(different, decoding, scored=False, progress=progress.add)
    best = {
        source: _clean(row[0].text, False) if row else None
        for source, row in zip(different, rows, strict=True)
    }
    print(f"{name}: {in_words(generator.counts)}", file=sys.stderr)
    made_by = [f"model {model_signature(folder)}", f"{decoding.beams} beams", args.precision]
    made_by += ["copies dropped"] if decoding.drop_copies else []
    made_by += [f"{decoding.max_new_tokens} new tokens"] if decoding.max_new_tokens else []
    return System(name, ", ".join(made_by), [best[source] for source in sources])


def score(
    sources: Sequence[str], systems: Sequence[System], found: Sequence[Measure]
) -> dict[tuple[str, str], np.ndarray]:
    """(system, measure) -> float64, shape (rows,), NaN where the system has no paraphrase."""
    scores = {}
    for one in systems:
        there = np.array([text is not None for text in one.paraphrases])
        pairs = Pairs.of(
            [source for source, text in zip(sources, one.paraphrases, strict=True) if text],
            [text for text in one.paraphrases if text],
        )
        print(f"{one.name}: scoring {len(pairs):,} rows", file=sys.stderr)
        for measure in found:
            column = np.full(len(sources), np.nan)
            column[there] = measure.score(pairs) if len(pairs) else []
            scores[one.name, measure.name] = column
    return scores


def cases(
    sources: Sequence[str],
    systems: Sequence[System],
    scores: dict[tuple[str, str], np.ndarray],
    count: int,
    seed: int,
) -> list[dict[str, Any]]:
    """Some sources that every system has a paraphrase of, drawn by seed, in the table's order."""
    first: dict[str, int] = {}
    for row, source in enumerate(sources):
        if all(one.paraphrases[row] for one in systems):
            first.setdefault(source, row)
    drawn = np.random.default_rng(seed).permutation(list(first.values()))[:count]
    return [
        {
            "source": sources[row],
            "paraphrases": [
                {
                    "system": one.name,
                    "paraphrase": one.paraphrases[row],
                    "spscore": float(scores[one.name, "spscore"][row]),
                }
                for one in systems[1:]
            ],
        }
        for row in sorted(drawn.tolist())
    ]


def sentence_table(
    sources: Sequence[str],
    systems: Sequence[System],
    scores: dict[tuple[str, str], np.ndarray],
    found: Sequence[Measure],
) -> pa.Table:
    """A row for each source and system, the scores null where there is none."""
    columns: dict[str, Any] = {
        "source": [source for _ in systems for source in sources],
        "system": [one.name for one in systems for _ in sources],
        "paraphrase": pa.array([t for one in systems for t in one.paraphrases], pa.string()),
    }
    for measure in found:
        values = np.concatenate([scores[one.name, measure.name] for one in systems])
        columns[measure.name] = pa.array(values, from_pandas=True)
    table = pa.table(columns)
    return table.replace_schema_metadata({m.name: m.signature for m in found})


def _named(text: str) -> tuple[str, str]:
    """(name, rest) of NAME=REST; of anything else its last part and itself."""
    name, equals, rest = text.partition("=")
    return (name, rest) if equals else (Path(text).name, text)


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise ValueError("nothing to evaluate: give --system, --generations or --model")
    for place, name in enumerate(names):
        if name == COPY:
            raise ValueError(f"a system cannot be called {COPY!r}, which is the baseline's name")
        if not name or name in names[:place]:
            raise ValueError(
                f"the name {name!r} is given to two systems" if name else "a system without a name"
            )


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="evaluate.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("pairs", metavar="PAIRS", help=f"a table: {', '.join(TABLES)}")
    add("--source", default="source", metavar="COLUMN", help="(%(default)s)")
    for name, what, text in (
        (
            "--system",
            "COLUMN",
            "a column of the table; may be given several times, as the next two",
        ),
        ("--generations", "FILE", "what training/generate.py wrote: columns source, paraphrase"),
        ("--model", "FOLDER", "a model, which writes the paraphrases now"),
    ):
        add(name, action="append", default=[], metavar=f"NAME={what}", help=text)
    add("--output", type=Path, required=True, metavar="FOLDER")
    add(
        "--metrics",
        metavar="NAMES",
        help=f"beside SPScore-zh (without it: {','.join(METRICS[1:])})",
    )
    add("--encoder", metavar="MODEL", help="of the metrics that have one")
    add("--limit", type=int, metavar="N", help="only the first N rows")
    add("--close-spaces", action="store_true", help="take out spaces beside Chinese characters")
    add("--samples", type=int, default=SAMPLES, metavar="N", help="resamples (%(default)s)")
    add("--cases", type=int, default=5, metavar="K", help="sources shown whole (%(default)s)")
    add("--seed", type=int, default=0, metavar="N", help="of resamples and cases (%(default)s)")
    group = parser.add_argument_group("of --model")
    add = group.add_argument
    add("--beams", type=int, default=4, metavar="N", help="(%(default)s)")
    add("--drop-copies", action="store_true", help="take the next beam instead of a copy")
    add("--max-new-tokens", type=int, metavar="N", help="as in generate.py")
    add("--batch-size", type=int, default=32, metavar="N", help="sentences (%(default)s)")
    add("--device", default="auto", help="auto: the GPU where there is one; cpu, cuda:1")
    add("--precision", choices=PRECISIONS, default=PRECISIONS[0], help="(%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
