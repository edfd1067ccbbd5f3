"""Compares raters, systems and scores, and makes one rating for each pair.

Sources: Wilcoxon 1945 (signed ranks); Pratt 1959 (zeros split); Holm 1979 (several tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from gaixie.udfs.metrics.bootstrap import bootstrap_interval


def compare_raters(ratings: pd.DataFrame, criterion: str) -> list[dict[str, Any]]:
    """Returns, for each rater, Spearman with the mean of the others, and the offset from it.

    The offset is the mean difference on pairs that others rated too: what to take from this rater's
    ratings to put them on the others' scale.
    """
    table = ratings.pivot(index="id", columns="rater", values=criterion)
    rows = []
    for rater in table:
        others = table.drop(columns=rater).mean(axis=1)
        both = pd.DataFrame({"own": table[rater], "others": others}).dropna()
        rows.append(
            {
                "rater": rater,
                "rated": int(table[rater].notna().sum()),
                "spearman": both["own"].corr(both["others"], "spearman"),
                "offset": (both["own"] - both["others"]).mean(),
            }
        )
    return rows


def compare_systems(ratings: pd.DataFrame, key: pd.DataFrame, criterion: str) -> dict[str, Any]:
    """Returns a criterion's mean of each system (best first), and a comparison of every two.

    key: columns item and system. An item's value is the mean over its raters; intervals resample
    items. comparisons: over the items that both systems have, the mean difference, the first
    system's wins, ties and losses, and Wilcoxon's p, adjusted by Holm for all comparisons.
    """
    table = ratings.join(key[["item", "system"]], on="id")
    means = table.groupby(["item", "system"])[criterion].mean().unstack("system")
    deviations = table.groupby("system")[criterion].std()
    systems = [
        {"system": name, **mean_of(means[name].dropna()), "sd": float(deviations[name])}
        for name in map(str, means)
    ]
    systems.sort(key=lambda row: (-row["mean"], row["system"]))
    comparisons = []
    for first, second in combinations([row["system"] for row in systems], 2):
        apart = (means[first] - means[second]).dropna()
        counts = {"wins": apart > 0, "ties": apart == 0, "losses": apart < 0}
        comparisons.append(
            {
                "first": first,
                "second": second,
                **mean_of(apart),
                **{name: int(rows.sum()) for name, rows in counts.items()},
                "wilcoxon": signed_ranks(apart.to_numpy()),
            }
        )
    adjusted = holm([row["wilcoxon"] for row in comparisons])
    for row, p in zip(comparisons, adjusted, strict=True):
        row["holm"] = p
    return {"systems": systems, "comparisons": comparisons}


def mean_of(values: pd.Series) -> dict[str, Any]:
    """Returns the number of items and their mean with its 95 % interval."""
    if values.empty:
        return {"items": 0, **dict.fromkeys(("mean", "low", "high"), np.nan)}
    low, high = bootstrap_interval(np.mean, (values.to_numpy(),), range(len(values)))
    return {"items": len(values), "mean": float(values.mean()), "low": low, "high": high}


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


def one_rating(ratings: pd.DataFrame, key: pd.DataFrame, criteria: Sequence[str]) -> pd.DataFrame:
    """Returns the mean rating of each pair, in the columns that research/fit_spscore.py reads.

    passes: the number of raters. disputed: two ratings of a criterion are more than 2 apart.
    """
    by_pair = ratings.groupby("id")[list(criteria)]
    table = key.join(by_pair.mean(), how="inner")
    table["passes"] = ratings.groupby("id").size()
    table["disputed"] = (by_pair.max() - by_pair.min() > 2).any(axis=1)
    return table.reset_index()
