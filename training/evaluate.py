"""Compares systems that paraphrase the same sources by SPScore-zh and further measures.

  python training/evaluate.py pairs.parquet --system mt=mt_zh --system human=pe_zh --output out/
  python training/evaluate.py pairs.parquet --system human --model gaixie=model/ --output out/
  python training/evaluate.py paraphrases.tsv --system gaixie=paraphrase --output evaluation/

A system is a column of the table (--system NAME=COLUMN), such as of a file of gaixie paraphrase, or
a model that writes now (--model NAME=FOLDER). --reference COLUMN names what a person wrote; give it
once for each person. Every system is then scored against all references together (SARI, BLEU,
Self-BLEU, HSK levels), and each person against the others. The minimum, mean and maximum of all
other measures over a source's references show how much people change (Table 5 of MCTS, Tables 4 and
5 of MultiPIT). The copy baseline, each source as its own paraphrase, is always included.
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

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pandas as pd
from pydantic import Field

from gaixie.training.evaluation.measures import about, against_references, measures, statistics
from gaixie.training.evaluation.report import COPY, cases, check_output, scored, write
from gaixie.training.modeling.generator import has_text
from gaixie.training.modeling.trained_paraphraser import TrainedParaphraser
from gaixie.training.settings import Decoding, Ranking
from gaixie.udfs.command_line import encoding, make_parser, run_command, say
from gaixie.udfs.metrics.bootstrap import Resamples
from gaixie.udfs.networks import model_signature
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.settings import Options, add_options, options_of
from gaixie.udfs.storage.text_columns import check_extension, read_columns
from gaixie.udfs.text.normalise import normalise


class Evaluation(Options):
    """What is compared, and how."""

    pairs: str
    """A table: .tsv, .csv, .jsonl or .parquet."""
    source: str = Field(default="source", title="COLUMN")
    """Column of the sources."""
    system: list[str] = Field(default=[], title="NAME=COLUMN")
    """A system in a column of the table; may be repeated."""
    model: list[str] = Field(default=[], title="NAME=FOLDER")
    """A model that writes the paraphrases now; may be repeated."""
    output: Path
    """Folder of the report."""
    metrics: str | None = Field(default=None, title="NAMES")
    """Metrics besides SPScore-zh; without it spscore-meaning,self-bleu."""
    reference: list[str] = Field(default=[], title="COLUMN")
    """Column of a person's paraphrases; may be repeated."""
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
    text = "of text, such as gb18030; else UTF-8"
    parser.add_argument("--encoding", type=encoding, metavar="NAME", help=text)
    args = parser.parse_args(argv)
    return run_command("evaluate", lambda: evaluate(args))


def evaluate(args: argparse.Namespace) -> None:
    """Runs the command: reads, generates, scores, reports."""
    options, ranking = options_of(Evaluation, args), options_of(Ranking, args)
    decoding = options_of(Decoding, args, seed=13)
    columns, models = named(options.system), named(options.model)
    if not (columns or models or options.reference):
        raise ValueError("nothing to evaluate: give --system or --model")
    for name, times in Counter([COPY, *(name for name, _ in columns + models)]).items():
        if not name or times > 1:
            raise ValueError(f"the name {name!r} is taken, or empty: each system needs one")
    how = decoding.model_dump(exclude_defaults=True) | ranking.model_dump(exclude_defaults=True)
    asked = options.model_dump(mode="json", exclude={"output"}) | {"decoding": how}
    check_output(options.output, asked)
    chosen = measures(options.metrics.split(",") if options.metrics else [])
    loaded = {name: TrainedParaphraser.load(folder, ranking) for name, folder in models}
    wanted = [*(column for _, column in columns), *options.reference]
    if options.source in wanted:
        raise ValueError(f"column {options.source!r} is both source and paraphrase: choose two")
    table, total = read_table(options, wanted, args.encoding)
    sources = table[options.source].tolist()
    systems = {COPY: sources} | {name: table[column].tolist() for name, column in columns}
    made_by = {COPY: "each source unchanged"} | {name: f"column {one}" for name, one in columns}
    for name, folder in models:
        systems[name] = written(name, loaded[name], sources, decoding)
        signature = f"model {model_signature(folder)}"
        made_by[name] = ", ".join([signature, *(f"{key} {how[key]}" for key in how)])
    resamples, described, tables = Resamples(sources, seed=options.seed), [], {}
    for name, paraphrases in systems.items():
        rows = len(sources) - paraphrases.count(None)
        say(f"{name}: scoring {rows:,} rows")
        tables[name] = own = scored(name, sources, paraphrases, chosen)
        described.append(
            {
                "name": name,
                "made_by": made_by[name],
                "rows": rows,
                "left_out": len(sources) - rows,
                "measures": {one: statistics(own[one].to_numpy(), resamples) for one in chosen},
            }
        )
    people = {column: table[column].tolist() for column in options.reference}
    result = {
        **options.model_dump(include={"pairs", "source", "seed"}),
        "asked": asked,
        "rows": total,
        "without_source": total - len(sources),
        "evaluated": len(sources),
        "sources": len(set(sources)),
        "systems": described,
        "measures": [about(name, metric) for name, metric in chosen.items()],
        "references": people and against_references(sources, systems, people, chosen, resamples),
        "cases": cases(tables, options.cases, options.seed),
    }
    write(options.output, result, tables)


def named(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Returns (NAME, REST) of each NAME=REST; of other text, its last part and the text itself."""
    parted = (text.partition("=") for text in texts)
    return [(name, rest) if equals else (Path(name).name, name) for name, equals, rest in parted]


def read_table(
    options: Evaluation, columns: Sequence[str], encoding: str | None
) -> tuple[pd.DataFrame, int]:
    """Returns the rows that have a source, with their texts, and the number of all rows."""
    path, source = options.pairs, options.source
    check_extension(path, (".tsv", ".csv", ".jsonl", ".parquet"))
    names = [*dict.fromkeys([source, *columns])]
    read = islice(read_columns(path, names, "strict", encoding=encoding), options.limit)
    rows = [[clean(text) for text in row] for row in read]
    table = pd.DataFrame(rows, columns=names, dtype=object)
    kept = table[table[source].notna()]
    if kept.empty:
        raise ValueError(f"{path}: no row has text in column '{source}'")
    return kept, len(rows)


def clean(text: str | None) -> str | None:
    """Returns the normalised text; None if it is empty."""
    return normalise(text) if text is not None and has_text(text) else None


def written(
    name: str, paraphraser: TrainedParaphraser, sources: Sequence[str], decoding: Decoding
) -> list[str | None]:
    """Returns the best paraphrase that a model writes of each source."""
    different = [*dict.fromkeys(sources)]
    with Progress(name, len(different), "sentences") as shown:
        made = paraphraser(different, decoding, shown.add)
    texts = [clean(row[0].text) if row else None for row in made]
    best = dict(zip(different, texts, strict=True))
    return [best[source] for source in sources]


if __name__ == "__main__":
    sys.exit(main())
