"""Reports simplifications with several references as MCTS does: features, HSK levels, systems.

  python research/report_simplifications.py --data mcts --output report/
  python research/report_simplifications.py --data mcts --system ours=ours.txt --output report/

--data is a folder with NAME.dev.orig, one original per line, and NAME.dev.simp.0, .1, …, whose
lines are its references. A system's file has the simplification of each line. Prints and writes

  OUTPUT/simplifications.md     features (Table 2), HSK levels (Table 3), systems (Table 5)
  OUTPUT/simplifications.json   the same figures

The report always has the rows "source", the unchanged originals, and "a person", each reference
against the others. As in the paper, SARI and BLEU count words, and SARI's deletions count by F1.
docs/papers.md has the paper's figures beside ours. To compare models, or systems of a table, use
training/evaluate.py --reference.

Source: Chong et al. 2024, *MCTS: A Multi-Reference Chinese Text Simplification Dataset*.

Exit codes: 0 done, 2 something to fix (one line says what).
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.metrics.bootstrap import Estimate, Resamples, estimate, leave_one_out, mean_of
from gaixie.udfs.metrics.hsk import levels, mean_levels
from gaixie.udfs.metrics.simplification import FEATURES
from gaixie.udfs.reports import write_report
from gaixie.udfs.storage.text_columns import read_lines

TEMPLATE = Path(__file__).with_name("simplifications.md.j2")
LEAST = 3.54
"""A sentence is worth simplifying if its words' mean HSK level is at least this. MCTS leaves out
easy sentences in this way (section 3.1); its threshold is not known here. 95 % of its development
originals reach this level."""
SAMPLES = 1000
SHARES = ("hsk-easy", "hsk-hard")


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    parser = make_parser("report_simplifications.py", __doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="FOLDER", help="of the files of lines")
    system = "the file of a system's simplifications; may be given several times"
    add("--system", action="append", default=[], metavar="NAME=FILE", help=system)
    add("--output", type=Path, required=True, metavar="FOLDER", help="for the report")
    add("--segmenter", default="jieba", metavar="NAME", help="jieba or ltp:FOLDER (%(default)s)")
    return run_command("report_simplifications", partial(report, parser.parse_args(argv)))


def report(args: argparse.Namespace) -> None:
    """Reads the set and the systems, measures them, and writes the report."""
    levels()  # first, since its package may be missing
    name, source, references = read_set(args.data)
    systems = {}
    for text in args.system:
        system, equals, file = text.partition("=")
        if not equals or not system or system in systems or system in ("source", "a person"):
            raise ValueError(f"--system {text}: expected NAME=FILE with a name of its own")
        systems[system] = read_column(file, len(source))
    result = {"set": name, **measure(source, references, systems, args.segmenter)}
    print(write_report(TEMPLATE, args.output, result))


def read_set(folder: Path) -> tuple[str, pa.Array, list[pa.Array]]:
    """Returns the name, the originals and the references of the development set in a folder.

    Raises ValueError or OSError, with one line, if there is no set or several, or lengths differ.
    """
    originals = sorted(folder.glob("*.dev.orig"))
    if len(originals) != 1:
        raise ValueError(f"{folder}: {len(originals)} files *.dev.orig, expected one")
    name, source = originals[0].name.removesuffix(".orig"), read_column(originals[0])
    people = sorted(folder.glob(f"{name}.simp.*"))
    if len(people) < 2:
        raise ValueError(f"{folder}: {len(people)} files {name}.simp.*, expected two or more")
    return name, source, [read_column(file, len(source)) for file in people]


def read_column(file: Path | str, rows: int | None = None) -> pa.Array:
    """Reads the lines of a file. Raises ValueError if there are none, or not ``rows`` of them."""
    lines = list(read_lines(str(file), "strict"))
    if not lines or rows not in (None, len(lines)):
        raise ValueError(f"{file}: {len(lines):,} lines, expected {rows or 'some'}")
    return pa.array(lines, pa.string())


def measure(
    source: pa.Array,
    references: Sequence[pa.Array],
    systems: Mapping[str, pa.Array],
    segmenter: str = "jieba",
) -> dict[str, Any]:
    """Returns the report's figures, ready for JSON. systems: lines by name, one per original."""
    resamples = Resamples(range(len(source)), SAMPLES)
    cut = f"tokenize=zh-word:segmenter={segmenter}"
    specs = {"sari": f"sari:{cut}", "bleu": f"bleu:{cut}"}
    specs |= {name: f"{name}:segmenter={segmenter}" for name in (*SHARES, *FEATURES)}
    metrics = {name: load_metric(spec) for name, spec in specs.items()}
    features = {name: metrics.pop(name) for name in FEATURES}
    people = leave_one_out(source, references)
    rows = {
        "source": [Pairs(source, source, tuple(references))],
        "a person": people,
        **{f"person {k}": [pairs] for k, pairs in enumerate(people)},
        **{name: [Pairs(source, own, tuple(references))] for name, own in systems.items()},
    }
    return {
        "rows": len(source),
        "references": len(references),
        "samples": SAMPLES,
        "features": {
            name: estimate(metric, people, resamples)._asdict() for name, metric in features.items()
        },
        "least": LEAST,
        "choice": {
            name: choice(own, segmenter, resamples)
            for name, own in (("source", [source]), ("a person", references))
        },
        "systems": {
            name: {key: _scaled(key, estimate(m, sets, resamples)) for key, m in metrics.items()}
            for name, sets in rows.items()
        },
        "signatures": {name: metric.signature() for name, metric in metrics.items()},
    }


def choice(columns: Sequence[pa.Array], segmenter: str, resamples: Resamples) -> dict[str, Any]:
    """Returns the mean HSK level of a text's words, and how many per cent of texts reach LEAST."""
    level = np.array([mean_levels(column.to_pylist(), segmenter) for column in columns])
    figures = {"level": np.nanmean(level, axis=0), "kept": 100.0 * (level >= LEAST).mean(axis=0)}
    return {name: mean_of(of, resamples)._asdict() for name, of in figures.items()}


def _scaled(name: str, value: Estimate) -> dict[str, float]:
    """Returns a share in per cent, and any other score unchanged."""
    scale = 100.0 if name in SHARES else 1.0
    return {key: scale * number for key, number in value._asdict().items()}


if __name__ == "__main__":
    sys.exit(main())
