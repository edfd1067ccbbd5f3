"""Measures how well each metric agrees with people, with intervals, and attributes it.

Correlations are those of sentence scores with human scores, on a sample and on resamples of its
sources (gaixie.udfs.metrics.bootstrap; the paired test is that of Koehn 2004, *Statistical
Significance Tests for Machine Translation Evaluation*).

The attribution of Shen et al. 2022 (ParaScore), section 4, separates meaning from divergence. For
two candidates j and k of one source, the difference of a metric's scores is correlated with the
difference of human scores. Divergence is the normalised edit distance (NED) to the source;
similarity is the cosine of sentence vectors (the paper's footnote 4). The subset S_sim has pairs
(j, k) with similar divergence and different meaning; S_div has pairs with similar meaning and
different divergence. d(j, k) is the smaller of their distances to the source: S_div1 has the pairs
of S_div with d of at most SPLIT, S_div2 the rest. Without the metric ``similarity`` a comparison
has no subsets.

Decided here: each pair of candidates counts in both orders, (j, k) and (k, j), because neither is
first. Pearson's r of the differences a and b is then Σ ab / √(Σ a² · Σ b²), and a metric that
prefers the wrong candidate is penalised. Similarity is stretched so that its first percentile is 0
and its last 1: with an encoder whose cosines all lie between 0.8 and 0.95, no two candidates would
be 0.15 apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.metrics import roc_auc_score

from gaixie.research.comparison.datasets import Config, DataSet
from gaixie.research.comparison.scores import Scores, is_cross_fitted, pairs_of
from gaixie.udfs.metrics.bootstrap import drawn_rows, estimate_of
from gaixie.udfs.metrics.edit_distance import EditDistance

SIMILARITY = "similarity"
"""Name of the metric that measures how near in meaning a candidate is to its source."""
S_SIM = {"divergence": 0.05, "similarity": 0.15}
"""Candidates of one source: greatest difference in divergence, least difference in meaning."""
S_DIV = {"similarity": 0.05, "divergence": 0.10}
"""Candidates of one source: greatest difference in meaning, least difference in divergence."""
SPLIT = 0.35
"""S_div1 has the pairs whose nearer candidate is within this distance of the source."""


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Returns Pearson's r; NaN if a side is constant."""
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) and np.ptp(y) else np.nan


STATISTICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "pearson": pearson,
    "spearman": lambda x, y: pearson(stats.rankdata(x), stats.rankdata(y)),
    "auc": lambda x, y: roc_auc_score(y, x),  # for human scores that are labels, 0 or 1
}


def draw(groups: np.ndarray, samples: int = 1_000) -> list[np.ndarray]:
    """Returns all rows, then the rows of each resample of whole groups (a row's source)."""
    return [np.arange(len(groups)), *drawn_rows(groups, samples)]


def statistic_of(
    name: str, scores: np.ndarray, human: np.ndarray, drawn: Sequence[np.ndarray]
) -> np.ndarray:
    """Returns one of STATISTICS on the sample and its resamples, shape (1 + samples,).

    An undefined value is NaN. scores: NaN where the metric has none; such rows are left out. human:
    shape (rows,), without NaN. drawn: from ``draw``.
    """
    there, of = ~np.isnan(scores), STATISTICS[name]
    kept = [rows[there[rows]] for rows in drawn]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sklearn warns if all labels are the same
        return np.array(
            [of(scores[rows], human[rows]) if len(rows) > 2 else np.nan for rows in kept]
        )


def p_value(differences: np.ndarray) -> float:
    """Returns the two-sided p that a difference is 0, from its resampled values; NaN without
    any."""
    differences = differences[np.isfinite(differences)]
    if not len(differences):
        return float("nan")
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (beyond + 1) / (len(differences) + 1)))


def compare(data_set: DataSet, scored: Scores, config: Config) -> list[dict[str, Any]]:
    """Returns the results for a set and, if it has one, for its extension."""
    added = scored.table["added"].to_numpy()
    parts = {data_set.name: (scored.reported & ~added, data_set.published)}
    if data_set.extended:
        extended = scored.reported, data_set.published_extended
        parts[f"{data_set.name}-extended"] = extended
    results = []
    for name, (rows, published) in parts.items():
        found = {"name": name, **_compare_rows(data_set, scored, rows, config)}
        values = {row["name"]: row[found["statistic"]] for row in found["metrics"]}
        found["published"] = [
            (scored.titles[of], theirs, values[of])
            for of, theirs in published.items()
            if of in values
        ]
        results.append(found | {"attribution": attribution(data_set, scored, rows, config.samples)})
    return results


def _compare_rows(
    data_set: DataSet, scored: Scores, rows: np.ndarray, config: Config
) -> dict[str, Any]:
    table = scored.table[rows]
    human = table["human"].to_numpy(float)
    drawn = draw(table["source"].to_numpy(object), config.samples)
    kinds = ("auc",) if data_set.labels else ("pearson", "spearman")
    samples = {
        name: {kind: statistic_of(kind, scores[rows], human, drawn) for kind in kinds}
        for name, scores in scored.scores.items()
    }
    turned = {}  # reversed for a metric whose lower scores are better
    for name, values in samples.items():
        main = values[kinds[-1]]
        worse = 1 - main if data_set.labels else -main
        turned[name] = main if scored.metrics[name].higher_is_better else worse
    # Undefined values come last.
    order = sorted(turned, key=lambda name: np.nan_to_num(turned[name][0], nan=-2), reverse=True)
    metrics: list[dict[str, Any]] = []
    for name in order:
        metric = scored.metrics[name]
        references = metric.uses_reference and bool(data_set.reference)
        row = {
            "name": name,
            "title": scored.titles[name] + (" ×" if is_cross_fitted(data_set, metric) else ""),
            "higher_is_better": metric.higher_is_better,
            "with_reference": metric.needs_reference or references,
            **{kind: estimate_of(values) for kind, values in samples[name].items()},
            "p": p_value((turned[order[0]] - turned[name])[1:]) if metrics else float("nan"),
            "rows": int((~np.isnan(scored.scores[name][rows])).sum()),
        }
        metrics.append(row)
    return {
        "rows": len(table),
        "sources": int(table["source"].nunique()),
        "added": int(table["added"].sum()),
        "statistic": kinds[-1],
        "statistics": kinds,
        "metrics": metrics,
        "note": data_set.note,
        "left_out": scored.left_out,
        "signatures": scored.signatures,
    }


def attribution(
    data_set: DataSet, scored: Scores, rows: np.ndarray, samples: int
) -> dict[str, Any] | None:
    """Returns the subsets, or None if the set allows none. rows: those reported, bool."""
    table = scored.table[rows].reset_index(drop=True)
    scores = {name: values[rows] for name, values in scored.scores.items()}
    if SIMILARITY not in scores or data_set.labels or not table["source"].duplicated().any():
        return None
    low, high = np.nanquantile(scores[SIMILARITY], [0.01, 0.99])
    if high <= low:
        return None
    divergence = EditDistance().sentence_scores(pairs_of(table))
    similarity = (scores[SIMILARITY] - low) / (high - low)
    return subsets(divergence, similarity, table, scores, samples)


def subsets(
    divergence: np.ndarray,
    similarity: np.ndarray,
    table: pd.DataFrame,
    scores: dict[str, np.ndarray],
    samples: int = 0,
) -> dict[str, dict[str, Any]]:
    """Returns S_sim and the parts of S_div: the number of pairs, and an Estimate by metric.

    It is Pearson's r between differences of the metric's scores and of human scores; intervals by
    bootstrap over sources.
    """
    groups = table.groupby("source", sort=False).indices
    pairs = [pair for rows in groups.values() for pair in combinations(rows, 2)]
    first, other = np.array(pairs, np.int64).reshape(-1, 2).T
    sim = abs(similarity[first] - similarity[other])
    div = abs(divergence[first] - divergence[other])
    s_sim = (div <= S_SIM["divergence"]) & (sim >= S_SIM["similarity"])
    s_div = (sim <= S_DIV["similarity"]) & (div >= S_DIV["divergence"])
    near = np.minimum(divergence[first], divergence[other]) <= SPLIT
    human, source = table["human"].to_numpy(float), table["source"].to_numpy(object)

    def differences(chosen: np.ndarray) -> dict[str, Any]:
        a, b = np.r_[first[chosen], other[chosen]], np.r_[other[chosen], first[chosen]]
        drawn = draw(source[a].astype(str), samples) if len(a) else [a]
        found = {
            name: estimate_of(statistic_of("pearson", of[a] - of[b], human[a] - human[b], drawn))
            for name, of in scores.items()
        }
        return {"pairs": int(chosen.sum()), "pearson": found}

    return {
        "S_sim": differences(s_sim),
        f"S_div1, d ≤ {SPLIT}": differences(s_div & near),
        f"S_div2, d > {SPLIT}": differences(s_div & ~near),
    }
