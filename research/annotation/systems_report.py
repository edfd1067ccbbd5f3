"""The report of a human evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from gaixie.research.annotation.report import estimate
from gaixie.research.annotation.systems import ANNOTATOR, ITEM, SYSTEM, Criterion
from gaixie.udfs.reports import Section, number


def sections(table: pd.DataFrame, criteria: Sequence[Criterion]) -> list[Section]:
    """table: as it was read."""
    systems, people = sorted(set(table[SYSTEM])), sorted(set(table[ANNOTATOR]))
    counts = (
        ("items", f"{table[ITEM].nunique():,}"),
        ("systems", ", ".join(systems)),
        ("annotators", ", ".join(people)),
    )
    parts = [Section("What was judged", ("what", "which"), counts)]
    alphas = tuple(
        (c.name, *map(estimate, c.alphas.values()), f"{c.alphas['ordinal'].units:,}")
        for c in criteria
    )
    note = "A unit is an item of a system. 95 % intervals by bootstrap over units."
    columns = ("criterion", *criteria[0].alphas, "units with 2 answers")
    parts.append(Section("Krippendorff's alpha", columns, alphas, (note,)))
    kappas = tuple(
        (f"{c.name}: {k.first}, {k.second}", f"{k.units:,}", number(k.value), f"{k.same:.0%}")
        for c in criteria
        for k in c.kappas
    )
    if kappas:
        note = "Cohen's kappa with quadratic weights."
        parts.append(
            Section("Weighted kappa", ("annotators", "units", "kappa", "equal"), kappas, (note,))
        )
    for criterion in criteria:
        parts += _of_criterion(criterion)
    return parts


def _of_criterion(criterion: Criterion) -> list[Section]:
    better = "lower is better" if criterion.lower_is_better else "higher is better"
    standings = tuple(
        (
            row.system,
            f"{row.items:,}",
            f"{number(row.mean, 2)} ({number(row.low, 2)} to {number(row.high, 2)})",
            f"{row.place:g} ({row.best} to {row.worst})",
        )
        for row in criterion.standings
    )
    comparisons = tuple(
        (
            f"{row.first} – {row.second}",
            f"{row.items:,}",
            f"{row.wins} / {row.ties} / {row.losses}",
            f"{row.difference:+.2f} ({row.low:+.2f} to {row.high:+.2f})",
            *(p_of(p) for p in (row.wilcoxon, row.holm, row.bootstrap)),
        )
        for row in criterion.comparisons
    )
    tests = (
        "systems",
        "items",
        "wins / ties / losses",
        "difference",
        "Wilcoxon p",
        "Holm",
        "bootstrap p",
    )
    notes = (
        "Over items, each the mean of its annotators. Holm: Wilcoxon's p adjusted for the comparisons of this criterion.",
    )
    return [
        Section(
            f"{criterion.name}: systems ({better})",
            ("system", "items", "mean (95 % interval)", "place (95 % interval)"),
            standings,
        ),
        Section(f"{criterion.name}: each two systems", tests, comparisons, notes),
    ]


def p_of(p: float) -> str:
    return "< 0.001" if p < 0.001 else number(p)


def figures(criteria: Sequence[Criterion]) -> dict[str, Any]:
    """The same as numbers."""
    return {
        c.name: {
            "lower_is_better": c.lower_is_better,
            "alpha": {level: alpha._asdict() for level, alpha in c.alphas.items()},
            "kappa": [kappa._asdict() for kappa in c.kappas],
            "systems": [row._asdict() for row in c.standings],
            "comparisons": [row._asdict() for row in c.comparisons],
        }
        for c in criteria
    }
