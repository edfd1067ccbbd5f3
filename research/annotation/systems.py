"""Human evaluation of systems: what people's ratings or ranks say about them, and how surely.

An evaluation is a table of ratings: items (sentences), systems, annotators, and a criterion's
value. The items are drawn by chance, so intervals and tests are over items: the mean of an item's
annotators is one value.

Sources: Wilcoxon 1945 (signed ranks; zeros split, as Pratt 1959 has it); Holm 1979 (several tests);
Koehn 2004 (paired bootstrap); ranks with intervals as the WMT's overview papers give them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata, wilcoxon

from gaixie.research.annotation.agreement import Level, kappas, krippendorff
from gaixie.research.annotation.answers import read_rows, whole_numbers
from gaixie.research.comparison.agreement import p_value
from gaixie.udfs.metrics.bootstrap import interval, resamples

KEY = ["item", "system", "annotator"]
RANK, AVERAGE = "rank", "average"
LEVELS: tuple[Level, ...] = ("ordinal", "interval")


def read_sheets(
    uris: Sequence[str], scale: tuple[int, int], criteria: Sequence[str], systems: Sequence[str]
) -> pd.DataFrame:
    """Columns item, system, annotator and a float for each criterion, NaN where a cell is empty.

    uris: CSV or TSV with columns item, system, annotator (else the file's name is the annotator)
    and the criteria, by default all other columns but note. systems: a column of ranks for each,
    instead of the column system. Raises OSError, or ValueError naming file and row.
    """
    parts = []
    for uri in uris:
        rows = read_rows(uri)
        rows["where"] = [f"{uri}, row {k}" for k in range(1, len(rows) + 1)]
        if "annotator" not in rows:
            rows["annotator"] = uri.rpartition("/")[2].rpartition(".")[0]
        for name in ("item", *(systems or ["system"]), *criteria):
            if name not in rows:
                there = ", ".join(rows.columns.drop(["where", "annotator"]))
                raise ValueError(f"{uri}: no column '{name}', it has: {there}")
        if systems:
            rows = rows.melt(["item", "annotator", "where"], systems, "system", RANK)
        parts.append(rows)
    table = pd.concat(parts, ignore_index=True).fillna("")
    names = criteria or [*table.columns.drop([*KEY, "where", "note"], errors="ignore")]
    all_of = ", ".join(uris)
    if not names:
        raise ValueError(f"{all_of}: columns none beside {', '.join(KEY)}")
    for row in table[(table["item"] == "") | (table["system"] == "")].itertuples():
        raise ValueError(f"{row.where}: {'system' if row.item else 'item'} is empty")
    for name in names:
        table[name] = whole_numbers(table[name], name, *scale, table["where"], empty=True)
    for row in table[table.duplicated(KEY)].itertuples():
        which = f"item {row.item!r}, system {row.system!r} and annotator {row.annotator!r}"
        raise ValueError(f"{row.where}: {which} stand in an earlier row already")
    if table[names].isna().all(axis=None):
        raise ValueError(f"{all_of}: no answers")
    if table["system"].nunique() < 2:
        raise ValueError(f"{all_of}: one system, {table['system'].iloc[0]!r}; expected two or more")
    return table[[*KEY, *names]]


def with_average(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the mean of several criteria as one more (MCTS, Table 6)."""
    criteria = table.columns.drop(KEY)
    if len(criteria) < 2:
        return table
    return table.assign(**{AVERAGE: table[criteria].mean(axis=1, skipna=False)})


def analyse(
    table: pd.DataFrame, name: str, lower_is_better: bool, samples: int, seed: int = 0
) -> dict[str, Any]:
    """A criterion: alpha by level, kappa, systems (the best first) and comparisons of each two of
    them.

    systems: mean of the items with its 95 % interval; sd, the standard deviation of all answers;
    place, 1 for the best, with its interval. comparisons: of the items that both have; wins, ties
    and losses are the first's; p values are two-sided, holm is Wilcoxon's adjusted for the
    comparisons of this criterion.
    """
    table = table.dropna(subset=[name])
    wide = table.pivot(index=["item", "system"], columns="annotator", values=name)
    answers = wide.to_numpy(float)
    means = table.groupby(["item", "system"])[name].mean().unstack("system")
    drawn = np.array([*resamples(len(means), samples, seed)])
    with np.errstate(invalid="ignore"):
        resampled = np.stack([pd.DataFrame(means.to_numpy()[rows]).mean() for rows in drawn])
    sign = 1 if lower_is_better else -1
    places = rankdata(sign * means.mean().to_numpy())
    sampled = rankdata(sign * resampled, axis=1, nan_policy="omit")
    standings = []
    for k, system in enumerate(means):
        low, high = interval(resampled[:, k])
        best, worst = np.nanquantile(sampled[:, k], (0.025, 0.975))
        row = {"system": str(system), "items": int(means[system].count())}
        row |= {"mean": float(means[system].mean()), "low": low, "high": high}
        row |= {"sd": float(table[table["system"] == system][name].std())}
        row |= {"place": float(places[k]), "best": int(best), "worst": int(np.ceil(worst))}
        standings.append(row)
    standings.sort(key=lambda row: (row["place"], row["system"]))
    comparisons = [
        {"first": a, "second": b, **compared}
        for a, b in combinations([row["system"] for row in standings], 2)
        if (compared := compare((means[a] - means[b]).dropna(), lower_is_better, samples, seed))
    ]
    for row, p in zip(comparisons, holm([row["wilcoxon"] for row in comparisons]), strict=True):
        row["holm"] = p
    return {
        "lower_is_better": lower_is_better,
        "alpha": {of: krippendorff(answers, of, samples, seed) for of in LEVELS},
        "kappa": [] if name == AVERAGE else kappas(wide),
        "systems": standings,
        "comparisons": comparisons,
    }


def compare(
    apart: pd.Series, lower_is_better: bool, samples: int, seed: int = 0
) -> dict[str, Any] | None:
    """Counts, mean with interval, and tests of two systems' differences; None without items."""
    if apart.empty:
        return None
    values = apart.to_numpy(float)
    better = -values if lower_is_better else values
    drawn = np.array([*resamples(len(values), samples, seed)])
    means = values[drawn].mean(axis=1)
    low, high = interval(means)
    counts = {"wins": better > 0, "ties": values == 0, "losses": better < 0}
    return {
        "items": len(values),
        **{name: int(of.sum()) for name, of in counts.items()},
        **{"difference": float(values.mean()), "low": low, "high": high},
        "wilcoxon": signed_ranks(values),
        "bootstrap": p_value(means),
    }


def signed_ranks(differences: np.ndarray) -> float:
    """p of Wilcoxon's signed-rank test, two-sided; 1 where nothing differs."""
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, zero_method="pratt").pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """p values adjusted for their number, in the same order."""
    order = np.argsort(p, kind="stable")
    rising = np.maximum.accumulate(np.asarray(p)[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(rising, 1)
    return adjusted.tolist()
