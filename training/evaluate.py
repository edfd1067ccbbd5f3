"""Compares systems that paraphrase the same sources by SPScore-zh and further measures.

  python training/evaluate.py pairs.parquet --system mt=mt_zh --system human=pe_zh --output out/
  python training/evaluate.py pairs.parquet --system human --model gaixie=model/ --output out/
  python training/evaluate.py pairs.jsonl --generations gaixie=paraphrases.tsv --output evaluation/

A system is a column of the table (--system NAME=COLUMN), a file of gaixie paraphrase
(--generations NAME=FILE, matched by the source's text, first candidate of each), or a model that
writes now (--model NAME=FOLDER). --reference COLUMN names what a person wrote; give it once for
each person. Every system is then scored against all references together (SARI, BLEU, Self-BLEU, HSK
levels: --reference-metrics), and each person against the others. The minimum, mean and maximum of
all other measures over a source's references show how much people change (Table 5 of MCTS, Tables 4
and 5 of MultiPIT). The copy baseline, each source as its own paraphrase, is always included.
Tables: .parquet, .jsonl, .csv, .tsv. Texts are normalised, NFKC and spaces collapsed, before
anything is measured.

Source: Chinese Sentence Paraphrasing, Table 8 (mean and standard deviation of SPScore-zh) and Table
7 (cases). Means have 95 % intervals by bootstrap over sources, the same resamples for all systems.
A row without a source is left out; a row for which a system has no paraphrase is left out of that
system alone. Both are counted.

  OUTPUT/evaluation.md      tables, cases and signatures; evaluation.json has the same
  OUTPUT/scores.parquet     row, source, system, paraphrase and its scores

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pydantic import Field

from gaixie.training.evaluation import references, report
from gaixie.training.evaluation.measures import METRICS, measures
from gaixie.training.evaluation.systems import (
    COPY,
    TABLES,
    System,
    check_names,
    from_columns,
    from_generations,
    from_model,
    read_table,
    split_name,
)
from gaixie.training.modeling.trained_paraphraser import TrainedParaphraser
from gaixie.training.settings import Decoding, Ranking
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.metrics import Pairs
from gaixie.udfs.metrics.references import Resamples
from gaixie.udfs.storage.options import add_command, options_of
from gaixie.udfs.storage.settings import Options

DRAWS_SEED = 13


class Evaluation(Options):
    """What is compared, and how."""

    pairs: str = Field(description=f"A table: {', '.join(TABLES)}")
    source: str = Field(default="source", title="COLUMN")
    """Column of the sources."""
    system: list[str] = Field(default=[], title="NAME=COLUMN")
    """A system in a column of the table; may be repeated, as the next two."""
    generations: list[str] = Field(default=[], title="NAME=FILE")
    """A system in a file that gaixie paraphrase wrote: columns source and paraphrase."""
    model: list[str] = Field(default=[], title="NAME=FOLDER")
    """A model that writes the paraphrases now."""
    output: Path
    """Folder of the report."""
    metrics: str | None = Field(
        default=None,
        title="NAMES",
        description=f"Metrics besides SPScore-zh; without it {','.join(METRICS[1:])}",
    )
    reference: list[str] = Field(default=[], title="COLUMN")
    """Column of a person's paraphrases; may be repeated."""
    reference_metrics: str | None = Field(
        default=None,
        title="NAMES",
        description=f"Metrics against references; without it {','.join(references.METRICS)}",
    )
    encoder: str | None = None
    """Encoder of the metrics that need one: a folder, or a name in the cache."""
    limit: int | None = Field(default=None, ge=1)
    """Only the first N rows."""
    samples: int = Field(default=1_000, ge=1)
    """Resamples of the bootstrap."""
    cases: int = Field(default=5, ge=0)
    """Sources that the report shows with all paraphrases."""
    seed: int = 0
    """Seed of resamples and cases."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("evaluate.py", __doc__)
    add_command(parser, Evaluation, positional=("pairs",))
    group = parser.add_argument_group("options of --model")
    add_command(group, Decoding, leave_out=("seed",))
    add_command(group, Ranking)
    args = parser.parse_args(argv)
    return run_command("evaluate", lambda: evaluate(args))


def evaluate(args: argparse.Namespace) -> None:
    """Runs the command: reads, generates, scores, reports."""
    options = options_of(Evaluation, args)
    decoding = options_of(Decoding, args, seed=DRAWS_SEED)
    ranking = options_of(Ranking, args)
    named = [split_name(text)[0] for text in options.system + options.generations + options.model]
    check_names(named, bool(options.reference))
    metrics = references.chosen(options.reference, options.reference_metrics, options.encoder)
    names = tuple(options.metrics.split(",")) if options.metrics else None
    chosen, left_out = measures(names, options.encoder)
    for title, reason in left_out.items():
        say(f"{title} is left out: {reason}")
    for text in options.model:  # check all of them before one writes for hours
        TrainedParaphraser.load(split_name(text)[1], ranking)
    columns = [column for _, column in map(split_name, options.system)]
    sources, texts, without_source = read_table(
        options.pairs, options.source, [*columns, *options.reference], options.limit
    )
    systems = [
        System(COPY, "each source unchanged", [*sources]),
        *from_columns(options.system, texts),
        *(from_generations(text, sources) for text in options.generations),
        *(from_model(text, sources, decoding, ranking) for text in options.model),
    ]
    scores = {}
    for system in systems:
        say(f"{system.name}: scoring {system.rows:,} rows")
        pairs = Pairs.of(sources, system.paraphrases)
        for name, metric in chosen.items():
            scores[system.name, name] = metric.sentence_scores(pairs)
    resamples = Resamples(sources, options.samples, options.seed)
    people = {column: texts[column] for column in options.reference}
    result = {
        **options.model_dump(include={"pairs", "source", "samples", "seed"}),
        "rows": without_source + len(sources),
        "without_source": without_source,
        "evaluated": len(sources),
        "sources": len(set(sources)),
        "systems": report.described(systems, scores, resamples),
        "measures": report.measures_of(chosen),
        "left_out": left_out,
        "references": references.compared(sources, systems, people, metrics, chosen, resamples),
        "cases": report.cases(sources, systems, scores, options.cases, options.seed),
    }
    report.write(options.output, result, report.sentence_table(sources, systems, scores, chosen))
    print(options.output / "evaluation.md")


if __name__ == "__main__":
    sys.exit(main())
