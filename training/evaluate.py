"""Compares systems that paraphrase the same sources: SPScore-zh, and what stands beside it.

  python training/evaluate.py pairs.parquet --system mt=mt_zh --system human=pe_zh --output evaluation/
  python training/evaluate.py pairs.parquet --system human --model gaixie=model/ --output evaluation/
  python training/evaluate.py pairs.jsonl --generations gaixie=paraphrases.tsv --output evaluation/

A system is a column of the table (--system NAME=COLUMN), a file that training/generate.py wrote
(--generations NAME=FILE, matched by the source's text, the first candidate of each), or a model that
writes now (--model NAME=FOLDER). With --reference COLUMN, what a person wrote, given for each person, every system is
scored against all of them together (SARI, BLEU, Self-BLEU, HSK levels: --reference-metrics), a person against the others, and
the least, mean and greatest of all other measures over a source's references say how far people go: Tables 5
of MCTS and 4 and 5 of MultiPIT. The copy baseline, each source as its own paraphrase, is always there.
Tables: .parquet, .jsonl, .csv, .tsv. Texts are normalised, NFKC and spaces collapsed, before anything is
measured.

Source: Chinese Sentence Paraphrasing, Table 8 (mean and standard deviation of SPScore-zh) and Table 7
(cases). Means have 95 % intervals by bootstrap over sources, the same resamples for all systems.
A row without a source is left out; a row for which a system has no paraphrase is left out of that
system alone. Both are counted.

  OUTPUT/evaluation.md      tables, cases and signatures; evaluation.json has the same and all settings
  OUTPUT/evaluation.png     every system's means with their intervals
  OUTPUT/scores.parquet     row, source, system, paraphrase and its scores

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from gaixie.training.evaluation.references import (
    METRICS as REFERENCE_METRICS,
)
from gaixie.training.evaluation.references import (
    against_references,
    reference_metrics,
)
from gaixie.training.evaluation.report import print_table, write
from gaixie.training.evaluation.scores import METRICS, SAMPLES, estimates, measures
from gaixie.training.evaluation.systems import (
    TABLES,
    check_names,
    from_generations,
    from_model,
    read_systems,
    split_name,
)
from gaixie.training.evaluation.tables import cases, score, sentence_table
from gaixie.training.modeling.generation import add_decoding, load_generator
from gaixie.training.modeling.generator import Decoding
from gaixie.training.modeling.paraphraser import Ranking
from gaixie.udfs.command_line import make_parser, run_command, say


def main(argv: list[str] | None = None) -> int:
    """Runs the script; its exit code."""
    return run_command("evaluate", partial(evaluate, _arguments(argv)))


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
        draws=args.draws,
        top_p=args.top_p,
        temperature=args.temperature,
        degree=args.degree,
        max_new_tokens=args.max_new_tokens,
        drop_copies=args.drop_copies,
        batch_size=args.batch_size,
    )
    ranking = Ranking(args.rank_by, args.min_meaning, args.reverse, args.forward)
    named = [split_name(text) for text in (*args.system, *args.generations, *args.model)]
    check_names([name for name, _ in named], bool(args.reference))
    of_references = reference_metrics(args)
    chosen, left_out = measures(args.metrics and tuple(args.metrics.split(",")), args.encoder)
    for title, reason in left_out.items():
        say(f"{title} is left out: {reason}")
    for text in args.model:  # all of them, before one writes for hours
        load_generator(split_name(text)[1], args.device, args.precision)
    sources, systems, references, without_source = read_systems(args)
    systems += [from_generations(text, sources, args.close_spaces) for text in args.generations]
    systems += [from_model(text, sources, decoding, ranking, args) for text in args.model]
    scores = score(sources, systems, chosen)
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
                "name": system.name,
                "made_by": system.made_by,
                "rows": len(sources) - system.paraphrases.count(None),
                "left_out": system.paraphrases.count(None),
                "measures": {m.name: table[system.name, m.name]._asdict() for m in chosen},
            }
            for system in systems
        ],
        "measures": [
            {name: getattr(m, name) for name in ("name", "title", "better", "digits", "signature")}
            for m in chosen
        ],
        "left_out": left_out,
        "references": against_references(
            *(sources, systems, references, of_references, chosen, args.samples, args.seed)
        )
        if references
        else None,
        "cases": cases(sources, systems, scores, args.cases, args.seed),
    }
    write(args.output, result)
    pq.write_table(sentence_table(sources, systems, scores, chosen), args.output / "scores.parquet")
    print_table(result)
    print(args.output / "evaluation.md")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("evaluate.py", __doc__)
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
    add(
        "--reference",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a person's paraphrases; may be given several times",
    )
    add(
        "--reference-metrics",
        metavar="NAMES",
        help=f"against the references (without it: {','.join(REFERENCE_METRICS)})",
    )
    add("--encoder", metavar="MODEL", help="of the metrics that have one")
    add("--limit", type=int, metavar="N", help="only the first N rows")
    add("--close-spaces", action="store_true", help="take out spaces beside Chinese characters")
    add("--samples", type=int, default=SAMPLES, metavar="N", help="resamples (%(default)s)")
    add("--cases", type=int, default=5, metavar="K", help="sources shown whole (%(default)s)")
    add("--seed", type=int, default=0, metavar="N", help="of resamples and cases (%(default)s)")
    add_decoding(parser.add_argument_group("of --model").add_argument)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
