"""Human evaluation of systems: what people's ratings or ranks say about them, and how surely.

An evaluation is a table of ratings: items (sentences), systems, annotators, and a criterion's value. The items are
what is drawn by chance, so intervals and tests are over items: the mean of an item's annotators is one value.

Sources: Wilcoxon 1945 (signed ranks; zeros split, as Pratt 1959 has it); Holm 1979 (several tests); Koehn 2004
(paired bootstrap); ranks with intervals as the WMT's overview papers give them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata, wilcoxon

from gaixie.research.annotation.agreement import Alpha, Kappa, kappas, krippendorff
from gaixie.research.annotation.sheets import read_lines, whole_number
from gaixie.udfs.metrics.bootstrap import interval, resamples

ITEM, SYSTEM, ANNOTATOR = "item", "system", "annotator"
RANK = "rank"


class Standing(NamedTuple):
    """A system under a criterion."""

    system: str
    items: int
    mean: float
    low: float
    high: float
    """95 % interval of the mean."""
    place: float
    """1 is the best; systems of equal means share the mean of their places."""
    best: int
    worst: int
    """95 % interval of the place."""


class Comparison(NamedTuple):
    """Two systems on the items that both have."""

    first: str
    second: str
    items: int
    wins: int
    ties: int
    losses: int
    """Of the first: items on which its mean is better, equal, worse."""
    difference: float
    """Mean of the first less that of the second."""
    low: float
    high: float
    wilcoxon: float
    """p, two-sided."""
    holm: float
    """The same, adjusted for all comparisons of the criterion."""
    bootstrap: float
    """p of the paired bootstrap, two-sided."""


@dataclass(frozen=True)
class Criterion:
    """What came out of one question."""

    name: str
    lower_is_better: bool
    alphas: dict[str, Alpha]
    kappas: list[Kappa]
    standings: list[Standing]
    """The best first."""
    comparisons: list[Comparison]


def read_ratings(uris: Sequence[str], low: int, high: int, criteria: Sequence[str]) -> pd.DataFrame:
    """Columns item, system, annotator and a float for each criterion, NaN where a cell is empty.

    uris: CSV or TSV with columns item, system, annotator (else the file's name is the annotator) and the
    criteria, by default all other columns but note. Raises OSError, or ValueError naming file and line.
    """
    names, rows = list(criteria), []
    seen: dict[tuple, str] = {}
    for uri in uris:
        for where, cells in read_lines(uri, [ITEM, SYSTEM, *criteria]):
            if not criteria:
                own = [n for n in cells if n and n not in (ITEM, SYSTEM, ANNOTATOR, "note")]
                names = names or own
                if not own or names != own:
                    expected = ", ".join(names) or "a criterion beside item and system"
                    raise ValueError(
                        f"{where}: columns {', '.join(own) or 'none'}, expected {expected}"
                    )
            row: dict[str, object] = _who(where, cells, uri)
            _once(seen, (row[ITEM], row[SYSTEM], row[ANNOTATOR]), where)
            for name in names:
                row[name] = (
                    whole_number(where, name, cells[name], low, high) if cells[name] else np.nan
                )
            rows.append(row)
    return _checked(pd.DataFrame(rows), uris, names)


def read_rankings(uris: Sequence[str], systems: Sequence[str]) -> pd.DataFrame:
    """Columns item, system, annotator, rank: 1 is the best, ties allowed.

    uris: CSV or TSV, either a row for each item, system and annotator with the column rank, or (systems
    given) a row for each item and annotator, and a column with the rank of each system. Raises as
    read_ratings does.
    """
    rows = []
    seen: dict[tuple, str] = {}
    for uri in uris:
        for where, cells in read_lines(uri, [ITEM, *(systems or (SYSTEM, RANK))]):
            given = [(name, cells[name]) for name in systems] or [(cells[SYSTEM], cells[RANK])]
            for system, text in given:
                row: dict[str, object] = _who(where, cells | {SYSTEM: system}, uri)
                _once(seen, (row[ITEM], row[SYSTEM], row[ANNOTATOR]), where)
                name = system if systems else RANK
                rank = whole_number(where, name, text, 1, 1_000) if text else np.nan
                rows.append(row | {RANK: rank})
    return _checked(pd.DataFrame(rows), uris, [RANK])


def _who(where: str, cells: dict[str, str], uri: str) -> dict[str, object]:
    for name in (ITEM, SYSTEM):
        if not cells[name]:
            raise ValueError(f"{where}: {name} is empty")
    stem = uri.rpartition("/")[2].rpartition(".")[0]
    annotator = cells.get(ANNOTATOR) or stem
    return {ITEM: cells[ITEM], SYSTEM: cells[SYSTEM], ANNOTATOR: annotator}


def _once(seen: dict[tuple, str], key: tuple, where: str) -> None:
    if key in seen:
        raise ValueError(
            f"{where}: item {key[0]!r}, system {key[1]!r} and annotator {key[2]!r} stand already in {seen[key]}"
        )
    seen[key] = where


def _checked(table: pd.DataFrame, uris: Sequence[str], names: list[str]) -> pd.DataFrame:
    if table.empty or table[names].isna().all(axis=None):
        raise ValueError(f"{', '.join(uris)}: no answers")
    systems = sorted(set(table[SYSTEM]))
    if len(systems) < 2:
        raise ValueError(f"{', '.join(uris)}: one system, {systems[0]!r}; expected two or more")
    return table


def analyse(
    table: pd.DataFrame, name: str, lower_is_better: bool, samples: int, seed: int = 0
) -> Criterion:
    """All of a criterion, from a table of read_ratings or read_rankings."""
    table = table.dropna(subset=[name])
    annotators = sorted(set(table[ANNOTATOR]))
    wide = table.pivot(index=[ITEM, SYSTEM], columns=ANNOTATOR, values=name)
    answers = wide.reindex(columns=annotators).to_numpy(float)
    means = table.groupby([ITEM, SYSTEM])[name].mean().unstack(SYSTEM)
    values, systems = means.to_numpy(float), [str(system) for system in means.columns]
    drawn = np.array([*resamples(len(values), samples, seed)])
    resampled = np.stack([_means(values[rows]) for rows in drawn])
    standings = _standings(values, systems, resampled, lower_is_better)
    order = [systems.index(standing.system) for standing in standings]
    by_place = [systems[k] for k in order]
    return Criterion(
        name,
        lower_is_better,
        {
            "ordinal": krippendorff(answers, "ordinal", samples, seed),
            "interval": krippendorff(answers, "interval", samples, seed),
        },
        kappas(answers, annotators),
        standings,
        _comparisons(values[:, order], by_place, lower_is_better, samples, seed),
    )


def _means(values: np.ndarray) -> np.ndarray:
    """Mean of each column without NaN; NaN where a column has nothing else."""
    there = ~np.isnan(values)
    count = there.sum(axis=0)
    total = np.where(there, values, 0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _standings(
    values: np.ndarray, systems: list[str], resampled: np.ndarray, lower_is_better: bool
) -> list[Standing]:
    sign = 1 if lower_is_better else -1
    means = _means(values)
    places = rankdata(sign * means)
    in_samples = rankdata(sign * resampled, axis=1, nan_policy="omit")
    standings = []
    for k, system in enumerate(systems):
        ends = np.nanquantile(in_samples[:, k], (0.025, 0.975))
        low, high = interval(resampled[:, k])
        standings.append(
            Standing(
                system,
                int((~np.isnan(values[:, k])).sum()),
                float(means[k]),
                low,
                high,
                float(places[k]),
                int(np.floor(ends[0])),
                int(np.ceil(ends[1])),
            )
        )
    return sorted(standings, key=lambda standing: (standing.place, standing.system))


def _comparisons(
    values: np.ndarray, systems: list[str], lower_is_better: bool, samples: int, seed: int
) -> list[Comparison]:
    rows = []
    for a, b in combinations(range(len(systems)), 2):
        apart = values[:, a] - values[:, b]
        apart = apart[~np.isnan(apart)]
        if not len(apart):
            continue
        better = -apart if lower_is_better else apart
        drawn = np.array([*resamples(len(apart), samples, seed)])
        means = apart[drawn].mean(axis=1)
        low, high = interval(means)
        rows.append(
            Comparison(
                systems[a],
                systems[b],
                len(apart),
                int((better > 0).sum()),
                int((apart == 0).sum()),
                int((better < 0).sum()),
                float(apart.mean()),
                low,
                high,
                signed_ranks(apart),
                np.nan,
                bootstrap_p(means),
            )
        )
    adjusted = holm([row.wilcoxon for row in rows])
    return [row._replace(holm=p) for row, p in zip(rows, adjusted, strict=True)]


def signed_ranks(differences: np.ndarray) -> float:
    """p of Wilcoxon's signed-rank test, two-sided; 1 where nothing differs."""
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, zero_method="pratt").pvalue)


def bootstrap_p(means: np.ndarray) -> float:
    """Two-sided p that the mean of resampled differences is 0."""
    beyond = min((means <= 0).sum(), (means >= 0).sum())
    return float(min(1.0, 2 * (beyond + 1) / (len(means) + 1)))


def holm(p: Sequence[float]) -> list[float]:
    """p values adjusted for their number, in the same order."""
    adjusted, largest = [0.0] * len(p), 0.0
    for place, k in enumerate(np.argsort(p, kind="stable")):
        largest = max(largest, min(1.0, (len(p) - place) * p[k]))
        adjusted[k] = largest
    return adjusted
