"""Compares systems that paraphrase the same sources by SPScore-zh and further measures.

  python training/evaluate.py pairs.parquet --system mt=mt_zh --system human=pe_zh --output out/
  python training/evaluate.py pairs.parquet --system human --model gaixie=model/ --output out/
  python training/evaluate.py pairs.jsonl --generations gaixie=paraphrases.tsv --output evaluation/

A system is a column of the table (--system NAME=COLUMN), a file of gaixie paraphrase
(--generations NAME=FILE, matched by the source's text, first candidate of each), or a model that
writes now (--model NAME=FOLDER). --reference COLUMN names what a person wrote; give it once for
each person. Every system is then scored against all references together (SARI, BLEU, Self-BLEU, HSK
levels), and each person against the others. The minimum, mean and maximum of
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

from gaixie.training.evaluation.measures import (
    METRICS,
    about,
    against_references,
    measures,
    statistics,
)
from gaixie.training.evaluation.report import Scores, cases, sentence_table, write
from gaixie.training.evaluation.systems import (
    COPY,
    TABLES,
    System,
    check_names,
    from_file,
    from_model,
    named,
    read_table,
)
from gaixie.training.modeling.trained_paraphraser import TrainedParaphraser
from gaixie.training.settings import Decoding, Ranking
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.metrics import Pairs
from gaixie.udfs.metrics.bootstrap import Resamples
from gaixie.udfs.storage.settings import Options, add_options, options_of

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
    encoder: str | None = None
    """Encoder of the metrics that need one: a folder, or a name in the cache."""
    limit: int | None = Field(default=None, ge=1)
    """Only the first N rows."""
    cases: int = Field(default=5, ge=0)
    """Sources that the report shows with all paraphrases."""
    seed: int = 0
    """Seed of resamples and cases."""


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("evaluate.py", __doc__)
    add_options(parser, Evaluation, positional=("pairs",))
    group = parser.add_argument_group("options of --model")
    add_options(group, Decoding, leave_out=("seed",))
    add_options(group, Ranking)
    args = parser.parse_args(argv)
    return run_command("evaluate", lambda: evaluate(args))


def evaluate(args: argparse.Namespace) -> None:
    """Runs the command: reads, generates, scores, reports."""
    options = options_of(Evaluation, args)
    decoding = options_of(Decoding, args, seed=DRAWS_SEED)
    ranking = options_of(Ranking, args)
    columns, files, models = map(named, (options.system, options.generations, options.model))
    if not (columns or files or models or options.reference):
        raise ValueError("nothing to evaluate: give --system, --generations or --model")
    check_names([name for name, _ in columns + files + models])
    specs = options.metrics.split(",") if options.metrics else []
    chosen, left_out = measures(specs, options.encoder)
    for title, reason in left_out.items():
        say(f"{title} is left out: {reason}")
    for _, folder in models:  # check all of them before one writes for hours
        TrainedParaphraser.load(folder, ranking)
    asked = [*(column for _, column in columns), *options.reference]
    sources, texts, without = read_table(options.pairs, options.source, asked, options.limit)
    systems = [
        System(COPY, "each source unchanged", [*sources]),
        *(System(name, f"column {column}", texts[column]) for name, column in columns),
        *(from_file(one, sources) for one in files),
        *(from_model(one, sources, decoding, ranking) for one in models),
    ]
    resamples, described = Resamples(sources, seed=options.seed), []
    scores: Scores = {}
    for system in systems:
        say(f"{system.name}: scoring {system.rows:,} rows")
        pairs = Pairs.of(sources, system.paraphrases)
        own = {name: metric.sentence_scores(pairs) for name, metric in chosen.items()}
        scores |= {(system.name, name): values for name, values in own.items()}
        described.append(
            {
                "name": system.name,
                "made_by": system.made_by,
                "rows": system.rows,
                "left_out": len(sources) - system.rows,
                "measures": {name: statistics(own[name], resamples) for name in own},
            }
        )
    people = {column: texts[column] for column in options.reference}
    result = {
        **options.model_dump(include={"pairs", "source", "seed"}),
        "rows": without + len(sources),
        "without_source": without,
        "evaluated": len(sources),
        "sources": len(set(sources)),
        "systems": described,
        "measures": [about(name, metric) for name, metric in chosen.items()],
        "left_out": left_out,
        "references": people and against_references(sources, systems, people, chosen, resamples),
        "cases": cases(sources, systems, scores, options.cases, options.seed),
    }
    write(options.output, result, sentence_table(sources, systems, scores, chosen))
    print(options.output / "evaluation.md")


if __name__ == "__main__":
    sys.exit(main())
