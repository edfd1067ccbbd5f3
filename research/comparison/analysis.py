"""Why metrics agree with people or not: by distance, and meaning and divergence taken apart.

Source: Shen et al. 2022 (ParaScore), sections 3 and 4. Distance is the normalised edit distance
(NED). Attribution (section 4): of two candidates j and k of one source, the difference of a
metric's scores is correlated with the difference of human scores. S_sim has the pairs that diverge
alike and differ in meaning, S_div those that are alike in meaning and diverge unlike. d(j, k) is
the smaller of their distances to the source: S_div1 are the pairs of S_div with d of at most SPLIT,
S_div2 the rest. Similarity is the cosine of sentence vectors (the paper's footnote 4), so a
comparison without the metric ``similarity`` has no such subsets.

Decided here: each pair of candidates counts in both orders, (j, k) and (k, j), because neither is
first; Pearson's r is then Σ ab / √(Σ a² · Σ b²) of the differences a and b, and a metric that
prefers the wrong one of two candidates loses by it. The setting ``stretch`` stretches similarity so
that its first percentile is 0 and its last 1: an encoder whose cosines all lie between 0.8 and 0.95
would have no two candidates 0.15 apart.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from gaixie.research.comparison.agreement import draw, pearson, spearman
from gaixie.research.comparison.datasets import Config, DataSet
from gaixie.research.comparison.scores import Scores, pairs_of
from gaixie.udfs.metrics import Pairs
from gaixie.udfs.metrics.bootstrap import estimate_of
from gaixie.udfs.metrics.edit_distance import EditDistance

SIMILARITY = "similarity"
"""Name of the metric that says how near in meaning candidates are to their source."""
S_SIM = {"divergence": 0.05, "similarity": 0.15}
"""Candidates of one source that diverge alike (at most) and differ in meaning (at least)."""
S_DIV = {"similarity": 0.05, "divergence": 0.10}
"""Candidates of one source that are alike in meaning (at most) and diverge unlike (at least)."""
SPLIT = 0.35
"""S_div apart: the nearer candidate within this distance of the source, or beyond."""


def why(data_set: DataSet, scored: Scores, rows: np.ndarray, config: Config) -> dict[str, Any]:
    """Sections of the analysis, of those that the set allows: it needs references, or groups.

    rows: those that are reported, bool.
    """
    table = scored.table[rows].reset_index(drop=True)
    scores = {name: values[rows] for name, values in scored.scores.items()}
    pairs, human = pairs_of(table), table["human"].to_numpy(float)
    to_source = EditDistance().sentence_scores(pairs)
    sections: dict[str, Any] = {"by_distance_to_source": by_quartile(to_source, human, scores)}
    if pairs.references:
        turned = Pairs(pairs.references[0], pairs.paraphrase)
        to_reference = EditDistance().sentence_scores(turned)
        sections["by_distance_to_reference"] = by_quartile(to_reference, human, scores)
        sections["parts"] = {
            "I, nearer the reference": part(to_reference < to_source, human, scores),
            "II, nearer the source": part(to_reference > to_source, human, scores),
        }
    if SIMILARITY in scores and not data_set.labels and table["source"].duplicated().any():
        low, high = np.nanquantile(scores[SIMILARITY], [0.01, 0.99]) if config.stretch else (0, 1)
        if high > low:
            similarity = (scores[SIMILARITY] - low) / (high - low)
            sections["subsets"] = subsets(to_source, similarity, table, scores, config.samples)
    return sections


def by_quartile(distance: np.ndarray, human: np.ndarray, scores: dict) -> list[dict]:
    """Correlations of every metric in each quarter of the rows, the nearest first."""
    edges = np.quantile(distance, [0.25, 0.5, 0.75])
    quarter = np.searchsorted(edges, distance, side="left")
    quarters = []
    for number in range(4):
        chosen = quarter == number
        inside = distance[chosen]
        bounds = [float(inside.min()), float(inside.max())] if chosen.any() else []
        quarters.append({"distance": bounds, **part(chosen, human, scores)})
    return quarters


def part(chosen: np.ndarray, human: np.ndarray, scores: dict) -> dict:
    """Rows, their share, and Spearman and Pearson of every metric on them."""
    values = correlations({name: of[chosen] for name, of in scores.items()}, human[chosen])
    return {"rows": int(chosen.sum()), "share": float(chosen.mean()), **values}


def subsets(
    divergence: np.ndarray,
    similarity: np.ndarray,
    table: pd.DataFrame,
    scores: dict,
    samples: int = 0,
) -> dict[str, dict]:
    """S_sim, S_div and its parts: pairs in them, correlations between differences of scores.

    Intervals by bootstrap over sources.
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

    def differences(chosen: np.ndarray) -> dict:
        a, b = np.r_[first[chosen], other[chosen]], np.r_[other[chosen], first[chosen]]
        apart = {name: of[a] - of[b] for name, of in scores.items()}
        times = draw(source[a].astype(str), samples)
        values = correlations(apart, human[a] - human[b], times)
        return {"pairs": int(chosen.sum()), **values}

    return {
        "S_sim": differences(s_sim),
        "S_div": differences(s_div),
        f"S_div1, d ≤ {SPLIT}": differences(s_div & near),
        f"S_div2, d > {SPLIT}": differences(s_div & ~near),
    }


def correlations(
    scores: dict[str, np.ndarray], human: np.ndarray, times: np.ndarray | None = None
) -> dict[str, dict[str, Any]]:
    """spearman and pearson, an Estimate for each metric; NaN with fewer than three scores.

    times: as from ``draw``; without them there are no intervals.
    """
    times = np.ones((1, len(human))) if times is None else times
    found: dict[str, dict[str, Any]] = {"spearman": {}, "pearson": {}}
    for kind, statistic in (("spearman", spearman), ("pearson", pearson)):
        for name, values in scores.items():
            there = ~np.isnan(values)
            enough = there.sum() >= 3
            of = statistic(values[there], human[there], times[:, there]) if enough else [np.nan]
            found[kind][name] = estimate_of(of)
    return found
