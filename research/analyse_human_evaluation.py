"""Analyses a human evaluation of systems: do annotators agree, and which system is better?

  python research/analyse_human_evaluation.py anna.csv bo.csv --output evaluation
  python research/analyse_human_evaluation.py ranks.csv --lower-is-better --output evaluation

Sheets are CSV or TSV in UTF-8 with columns item, system, annotator, and one column per criterion.
A criterion holds ratings, or ranks (1 is best). If there is no column annotator, the file's name is
the annotator. An empty cell is a missing answer.

Writes OUTPUT/human_evaluation.md and .json. For each criterion, and for their average if there are
several, the report has Krippendorff's alpha, each system's mean with its 95 % interval and standard
deviation (MCTS, Table 6), and a comparison of every two systems: Wilcoxon's signed-rank test with
Holm's adjustment, and the mean difference. An item's value is the mean over its annotators;
intervals resample items. Every path may be on S3.

Sources: Wilcoxon 1945 (signed ranks); Pratt 1959 (zeros split); Holm 1979 (several tests).
Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from gaixie.research.annotation.agreement import krippendorff
from gaixie.research.annotation.answers import read_rows
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.metrics.bootstrap import bootstrap_interval
from gaixie.udfs.reports import render
from gaixie.udfs.storage import storage

KEY = ["item", "system", "annotator"]
TEMPLATE = Path(__file__).parent / "annotation/human_evaluation.md.j2"


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    return run_command("analyse_human_evaluation", partial(analyse_sheets, _arguments(argv)))


def analyse_sheets(args: argparse.Namespace) -> None:
    """Reads the sheets, analyses them, and writes the report."""
    table = read_sheets(args.sheets)
    criteria = table.columns.drop(KEY)
    if len(criteria) > 1:
        table["average"] = table[criteria].mean(axis=1, skipna=False)
    found = {name: analyse(table, name, args.lower_is_better) for name in table.columns.drop(KEY)}
    text = render(
        TEMPLATE,
        items=table["item"].nunique(),
        annotators=sorted(set(table["annotator"])),
        lower_is_better=args.lower_is_better,
        criteria=found,
    )
    storage.write(storage.join(args.output, "human_evaluation.md"), text)
    storage.write_json(storage.join(args.output, "human_evaluation.json"), found)
    print(text)


def read_sheets(uris: Sequence[str]) -> pd.DataFrame:
    """Returns item, system, annotator and a float per criterion, NaN where a cell is empty.

    Ignores a column note. Raises OSError, or ValueError that names the file.
    """
    parts = []
    for uri in uris:
        rows = read_rows(uri).drop(columns="note", errors="ignore")
        if "annotator" not in rows:
            rows["annotator"] = uri.rpartition("/")[2].rpartition(".")[0]
        if missing := {"item", "system"} - {*rows}:
            raise ValueError(
                f"{uri}: no column '{min(missing)}', it has: {', '.join(rows.columns)}"
            )
        for name in rows.columns.drop(KEY):
            try:
                rows[name] = pd.to_numeric(rows[name].replace("", np.nan))
            except ValueError as error:
                raise ValueError(f"{uri}: column '{name}': {error}") from None
        parts.append(rows)
    table = pd.concat(parts, ignore_index=True)
    if table.duplicated(KEY).any():
        twice = table[table.duplicated(KEY)].iloc[0]
        raise ValueError(f"{', '.join(uris)}: twice: {', '.join(twice[KEY])}")
    if table["system"].nunique() < 2 or table.columns.size == len(KEY):
        raise ValueError(f"{', '.join(uris)}: expected two systems or more, and a criterion")
    return table


def analyse(table: pd.DataFrame, name: str, lower_is_better: bool = False) -> dict[str, Any]:
    """Returns one criterion's alpha, its systems (best first) and a comparison of every two.

    systems: the mean over items with its 95 % interval; sd, the standard deviation of all answers.
    comparisons: over the items that both systems have, the mean difference with its interval, and
    the first system's wins, ties and losses. holm: Wilcoxon's p, adjusted for all comparisons of
    this criterion.
    """
    table = table.dropna(subset=[name])
    wide = table.pivot(index=["item", "system"], columns="annotator", values=name)
    means = table.groupby(["item", "system"])[name].mean().unstack("system")
    deviations = table.groupby("system")[name].std()
    systems = [
        {"system": system, **_mean(means[system].dropna()), "sd": float(deviations[system])}
        for system in map(str, means)
    ]
    systems.sort(key=lambda row: (row["mean"] if lower_is_better else -row["mean"], row["system"]))
    comparisons = [
        _compared(a, b, (means[a] - means[b]).dropna(), lower_is_better)
        for a, b in combinations([row["system"] for row in systems], 2)
    ]
    for row, p in zip(comparisons, holm([row["wilcoxon"] for row in comparisons]), strict=True):
        row["holm"] = p
    alpha = krippendorff(wide.to_numpy(float))
    return {"alpha": alpha, "systems": systems, "comparisons": comparisons}


def _mean(values: pd.Series) -> dict[str, Any]:
    if values.empty:
        return {"items": 0, **dict.fromkeys(("mean", "low", "high"), np.nan)}
    low, high = bootstrap_interval(np.mean, (values.to_numpy(),), range(len(values)))
    return {"items": len(values), "mean": float(values.mean()), "low": low, "high": high}


def _compared(first: str, second: str, apart: pd.Series, lower_is_better: bool) -> dict[str, Any]:
    better = -apart if lower_is_better else apart
    counts = {"wins": better > 0, "ties": better == 0, "losses": better < 0}
    found = {"first": first, "second": second, **_mean(apart)}
    found |= {name: int(of.sum()) for name, of in counts.items()}
    return found | {"wilcoxon": signed_ranks(apart.to_numpy())}


def signed_ranks(differences: np.ndarray) -> float:
    """Returns the two-sided p of Wilcoxon's signed-rank test; 1 if all differences are zero."""
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, zero_method="pratt").pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """Returns the p values after Holm's adjustment, in the same order."""
    order = np.argsort(p, kind="stable")
    rising = np.maximum.accumulate(np.asarray(p)[order] * np.arange(len(p), 0, -1))
    return np.minimum(rising, 1)[np.argsort(order)].tolist()


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("analyse_human_evaluation.py", __doc__)
    add = parser.add_argument
    add("sheets", metavar="SHEET", nargs="+", help="CSV or TSV")
    add("--lower-is-better", action="store_true", help="as of ranks")
    add("--output", metavar="FOLDER", required=True, help="for the report")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
