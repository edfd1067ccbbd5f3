"""Reports simplifications with several references as MCTS does: features, HSK levels, systems.

  python research/report_simplifications.py --data mcts --output report/
  python research/report_simplifications.py --data mcts --system ours=ours.txt --output report/

--data is a folder with NAME.PART.orig, one original per line, and NAME.PART.simp.0, .1, …, whose
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

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.metrics.bootstrap import Estimate, Resamples, estimate, estimate_of, leave_one_out
from gaixie.udfs.metrics.hsk import levels, mean_levels
from gaixie.udfs.metrics.simplification import FEATURES
from gaixie.udfs.reports import render, write_json
from gaixie.udfs.storage.text_tables import read_lines

TEMPLATE = Path(__file__).with_name("simplifications.md.j2")
LEAST = 3.54
"""A sentence is worth simplifying if its words' mean HSK level is at least this. MCTS leaves out
easy sentences in this way (section 3.1); its threshold is not known here. 95 % of its development
originals reach this level."""
SHARES = {"hsk-easy": "L1–3 % ↑", "hsk-hard": "L7+ % ↓"}


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    return run_command("report_simplifications", partial(report, _arguments(argv)))


def report(args: argparse.Namespace) -> None:
    """Reads the set and the systems, measures them, and writes the report."""
    levels()  # first, since its package may be missing
    data = read_set(args.data, args.part)
    systems = {}
    for text in args.system:
        name, equals, file = text.partition("=")
        if not equals or not name or name in systems or name in ("source", "a person"):
            raise ValueError(f"--system {text}: expected NAME=FILE with a name of its own")
        systems[name] = read_column(file, len(data.source))
    result = measure(data, systems, args.segmenter, args.samples, args.seed)
    args.output.mkdir(parents=True, exist_ok=True)
    write_json(args.output / "simplifications.json", result)
    text = render(TEMPLATE, **result)
    (args.output / "simplifications.md").write_text(text, "utf-8")
    print(text)


class SimplificationSet(NamedTuple):
    """Originals, and columns of references of the same length."""

    name: str
    source: pa.Array
    references: tuple[pa.Array, ...]


def read_set(folder: Path, part: str) -> SimplificationSet:
    """Reads the files ``*.PART.orig`` and ``*.PART.simp.K`` of a folder.

    Raises ValueError or OSError, with one line, if there is no set or several, or lengths differ.
    """
    originals = sorted(folder.glob(f"*.{part}.orig"))
    if len(originals) != 1:
        raise ValueError(f"{folder}: {len(originals)} files *.{part}.orig, expected one")
    [original] = originals
    people = sorted(folder.glob(f"{original.name.removesuffix('orig')}simp.*"))
    if len(people) < 2:
        raise ValueError(f"{folder}: {len(people)} files *.{part}.simp.*, expected two or more")
    source = read_column(original)
    columns = tuple(read_column(file, len(source)) for file in people)
    return SimplificationSet(original.name.removesuffix(".orig"), source, columns)


def read_column(file: Path | str, rows: int | None = None) -> pa.Array:
    """Reads the lines of a file. Raises ValueError if there are none, or not ``rows`` of them."""
    lines = list(read_lines(str(file), "strict"))
    if not lines or rows not in (None, len(lines)):
        raise ValueError(f"{file}: {len(lines):,} lines, expected {rows or 'some'}")
    return pa.array(lines, pa.string())


def measure(
    data: SimplificationSet,
    systems: Mapping[str, pa.Array],
    segmenter: str = "jieba",
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Returns the report's figures, ready for JSON. systems: lines by name, one per original."""
    resamples = Resamples(range(len(data.source)), samples, seed)
    cut = f"tokenize=zh-word:segmenter={segmenter}"
    metrics = {
        "sari": load_metric(f"sari:{cut}"),
        "bleu": load_metric(f"bleu:{cut}"),
        **{name: load_metric(f"{name}:segmenter={segmenter}") for name in SHARES},
    }
    features = {name: load_metric(f"{name}:segmenter={segmenter}") for name in FEATURES}
    people = leave_one_out(data.source, data.references)
    rows = {
        "source": [Pairs(data.source, data.source, data.references)],
        "a person": people,
        **{f"person {k}": [pairs] for k, pairs in enumerate(people)},
        **{name: [Pairs(data.source, own, data.references)] for name, own in systems.items()},
    }
    return {
        "set": data.name,
        "rows": len(data.source),
        "references": len(data.references),
        "samples": samples,
        "seed": seed,
        "features": {
            name: estimate(metric, people, resamples)._asdict() for name, metric in features.items()
        },
        "least": LEAST,
        "choice": {
            name: choice(own, segmenter, resamples)
            for name, own in (("source", [data.source]), ("a person", data.references))
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
    found = {}
    for name, of in figures.items():
        there = np.isfinite(of)
        total, rows = resamples.sums(np.column_stack([np.where(there, of, 0.0), there])).T
        found[name] = estimate_of(total / rows)._asdict()
    return found


def _scaled(name: str, value: Estimate) -> dict[str, float]:
    """Returns a share in per cent, and any other score unchanged."""
    scale = 100.0 if name in SHARES else 1.0
    return {key: scale * number for key, number in value._asdict().items()}


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("report_simplifications.py", __doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="FOLDER", help="of the files of lines")
    add("--part", default="dev", metavar="NAME", help="of the files' names (%(default)s)")
    system = "the file of a system's simplifications; may be given several times"
    add("--system", action="append", default=[], metavar="NAME=FILE", help=system)
    add("--output", type=Path, required=True, metavar="FOLDER", help="for the report")
    add("--segmenter", default="jieba", metavar="NAME", help="jieba or ltp:FOLDER (%(default)s)")
    add("--samples", type=positive, default=1000, metavar="N", help="resamples (%(default)s)")
    add("--seed", type=int, default=0, metavar="N", help="of the resamples (%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
