"""What an annotation came to, as sections of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from gaixie.research.annotation.adjudicate import THIRD, undecided
from gaixie.research.annotation.agreement import Alpha, Level, kappas, krippendorff, with_the_rest
from gaixie.research.annotation.answers import repeats_of, table_of
from gaixie.research.annotation.careless import Careless, failures, find_careless
from gaixie.research.annotation.plan import FIELDS, IS_PARAPHRASE, RATINGS, Plan
from gaixie.udfs.reports import Section, number

LEVELS: tuple[Level, ...] = ("ordinal", "interval", "nominal")


class Agreement(NamedTuple):
    """How far a set of annotators agree: alpha by field and level, and their sections of the report."""

    alphas: dict[str, dict[str, Alpha]]
    sections: list[Section]


def agreement(
    answers: pd.DataFrame, annotators: Sequence[str], who: str, samples: int
) -> Agreement:
    """who: names the annotators in the titles."""
    tables = {name: table_of(answers, name, annotators) for name in FIELDS}
    alphas: dict[str, dict[str, Alpha]] = {
        name: {
            level: krippendorff(table, level, samples)
            for level in (LEVELS if name in RATINGS else ("nominal",))
        }
        for name, table in tables.items()
    }
    rows = []
    for name, levels in alphas.items():
        units, given = next(iter(levels.values()))[-2:]
        cells = [estimate(levels[level]) if level in levels else "" for level in LEVELS]
        rows.append((name, *cells, f"{units:,}", f"{given:,}"))
    sections = [
        Section(
            f"Krippendorff's alpha, {who}",
            ("question", *LEVELS, "pairs with 2 answers", "answers"),
            tuple(rows),
            ("95 % intervals by bootstrap over pairs.",),
        )
    ]
    names = list(annotators)
    by_field = {name: kappas(table, names) for name, table in tables.items()}
    sections.append(
        Section(
            f"Weighted kappa, {who}",
            ("annotators", "pairs", *FIELDS, "equal (overall)"),
            tuple(
                (
                    f"{k.first}, {k.second}",
                    f"{k.units:,}",
                    *(number(by_field[name][place].value, 2) for name in FIELDS),
                    f"{by_field['overall'][place].same:.0%}",
                )
                for place, k in enumerate(by_field["overall"])
            ),
            ("Cohen's kappa with quadratic weights.",),
        )
    )
    return Agreement(alphas, sections)


def estimate(alpha: Alpha) -> str:
    if alpha.value != alpha.value:
        return "–"
    return f"{number(alpha.value)} ({number(alpha.low, 2)} to {number(alpha.high, 2)})"


def annotators_section(plan: Plan, answers: pd.DataFrame) -> Section:
    """A line for each annotator: how much is done, checks, repeats, and agreement with the rest."""
    names = plan.annotators
    rest = {row.annotator: row for row in with_the_rest(table_of(answers, "overall", names), names)}
    checks, repeats = failures(answers), repeats_of(answers)
    rows = []
    for name in names:
        tasks = sum(task.annotator == name for task in plan.tasks)
        done = int((answers["annotator"] == name).sum())
        own = checks[checks["annotator"] == name]["failed"]
        twice = repeats[repeats["annotator"] == name]
        moved = float(twice[list(RATINGS)].to_numpy().mean()) if len(twice) else np.nan
        like = rest.get(name)
        cells = (
            [number(like.spearman, 2), f"{like.difference:+.2f}", number(like.distance, 2)]
            if like
            else ["–"] * 3
        )
        failed = f"{int(own.sum())} of {len(own)}"
        rows.append((name, f"{done:,} of {tasks:,}", failed, number(moved, 2), *cells))
    columns = (
        *("annotator", "tasks done", "attention pairs failed", "repeats apart"),
        *("Spearman with the rest", "milder by", "apart by"),
    )
    note = "Repeats: mean difference over the five ratings; the last three columns: overall, beside the mean of the others."
    return Section("Annotators", columns, tuple(rows), (note,))


def careless_section(careless: Sequence[Careless], dropped: bool) -> Section:
    notes = [f"{who.annotator}: {'; '.join(who.reasons)}" for who in careless]
    if notes:
        notes.append(
            "Their answers do not count below."
            if dropped
            else "Their answers count; --drop-careless leaves them out."
        )
    return Section("Careless annotators", notes=tuple(notes or ["Nobody."]))


def decided_section(plan: Plan, table: pd.DataFrame, left_out: int, rule: str) -> Section:
    """What became of the pairs of the sample."""
    sample = len({task.pair for task in plan.tasks if task.kind == "pair"})
    rows = [
        ("in the sample", sample),
        ("without an answer that counts", sample - len(table) - left_out),
        ("disputed, left to a third person", left_out),
        ("disputed, the median taken", int(undecided(table).sum())),
        ("decided by a third person", int((table["decided_by"] == THIRD).sum())),
        ("rated", len(table)),
    ]
    means = ", ".join(f"{name} {table[name].mean():.2f}" for name in RATINGS) if len(table) else ""
    yes = table[IS_PARAPHRASE].mean()
    notes = [f"Means: {means}; {IS_PARAPHRASE} {yes:.0%}."] if len(table) and yes == yes else []
    scored = table.dropna(subset=["spscore"])
    if len(scored) > 2:
        rho = scored["overall"].corr(scored["spscore"], "spearman")
        notes.append(f"Spearman of overall with spscore: {number(rho, 2)} ({len(scored):,} pairs).")
    shown = tuple((name, f"{count:,}") for name, count in rows)
    return Section(f"Pairs (disputed ones: {rule})", ("pairs", "count"), shown, tuple(notes))


def look(
    plan: Plan, answers: pd.DataFrame, drop: bool, samples: int
) -> tuple[list[Careless], dict[str, dict[str, Alpha]], list[Section]]:
    """(careless annotators, alphas of those whose answers count, sections about people)."""
    everybody = plan.annotators
    careless = find_careless(answers, everybody)
    sections = [annotators_section(plan, answers), careless_section(careless, drop)]
    found = agreement(answers, everybody, "everybody", samples)
    sections += found.sections
    names = {who.annotator for who in careless}
    if drop and names:
        left = [name for name in everybody if name not in names]
        found = agreement(answers, left, "without the careless", samples)
        sections += found.sections
    return careless, found.alphas, sections
