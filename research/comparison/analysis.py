"""Why metrics agree with people or not: by distance, and meaning and divergence taken apart.

Source: Shen et al. 2022 (ParaScore), sections 3 and 4. Distance is the normalised edit distance. Two
candidates j and k of one source have d(j, k), the smaller of their distances to it: S_div1 are the pairs
of S_div with d of at most SPLIT, S_div2 the rest. Similarity is the cosine of sentence vectors (the
paper's footnote 4), so a comparison without the metric ``similarity`` has no such subsets.
Decided here: pairs of candidates are put so that the nearer in meaning (S_sim) or the more
divergent (S_div) comes first; similarity is stretched so that its first percentile is 0 and its last 1:
an encoder whose cosines all lie between 0.8 and 0.95 would have no two candidates 0.15 apart.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from gaixie.research.comparison.agreement import pearson, spearman
from gaixie.research.comparison.datasets import DataSet
from gaixie.research.comparison.scores import Scores, pairs_of
from gaixie.udfs.metrics import Pairs
from gaixie.udfs.metrics.edit_distance import EditDistance

SIMILARITY = "similarity"
"""Name of the metric that says how near in meaning candidates are to their source."""
S_SIM = {"divergence": 0.05, "similarity": 0.15}
"""Candidates of one source that diverge alike (at most) and differ in meaning (at least)."""
S_DIV = {"similarity": 0.05, "divergence": 0.10}
"""Candidates of one source that are alike in meaning (at most) and diverge unlike (at least)."""
SPLIT = 0.35
"""S_div apart: the nearer candidate within this distance of the source, or beyond."""


def why(data_set: DataSet, scored: Scores, rows: np.ndarray) -> dict[str, Any]:
    """Sections of the analysis, of those that the set allows: it needs references, or groups.

    rows: those that are reported, bool.
    """
    table = scored.table[rows].reset_index(drop=True)
    scores = {name: values[rows] for name, values in scored.scores.items()}
    pairs = pairs_of(table)
    to_source = EditDistance().sentence_scores(pairs)
    sections: dict[str, Any] = {"by_distance_to_source": by_quartile(to_source, table, scores)}
    if pairs.references:
        turned = Pairs(pairs.references[0], pairs.paraphrase)
        to_reference = EditDistance().sentence_scores(turned)
        sections["by_distance_to_reference"] = by_quartile(to_reference, table, scores)
        sections["parts"] = {
            "I, nearer the reference": part(to_reference < to_source, table, scores),
            "II, nearer the source": part(to_reference > to_source, table, scores),
        }
    if SIMILARITY in scores and not data_set.labels and table["source"].duplicated().any():
        sections["subsets"] = {"similarity": SIMILARITY}
        low, high = np.nanquantile(scores[SIMILARITY], [0.01, 0.99])
        if high > low:
            similarity = (scores[SIMILARITY] - low) / (high - low)
            sections["subsets"] |= subsets(to_source, similarity, table, scores)
    return sections


def by_quartile(distance: np.ndarray, table: pd.DataFrame, scores: dict) -> list[dict]:
    """Correlations of every metric in each quarter of the rows, the nearest first."""
    edges = np.quantile(distance, [0.25, 0.5, 0.75])
    quarter = np.searchsorted(edges, distance, side="left")
    quarters = []
    for number in range(4):
        chosen = quarter == number
        bounds = (
            [float(distance[chosen].min()), float(distance[chosen].max())] if chosen.any() else []
        )
        quarters.append({"distance": bounds, **part(chosen, table, scores)})
    return quarters


def part(chosen: np.ndarray, table: pd.DataFrame, scores: dict) -> dict:
    """Rows, their share, and Spearman and Pearson of every metric on them."""
    values = correlations(
        {name: of[chosen] for name, of in scores.items()}, table["human"].to_numpy()[chosen]
    )
    return {"rows": int(chosen.sum()), "share": float(chosen.mean()), **values}


def subsets(
    divergence: np.ndarray, similarity: np.ndarray, table: pd.DataFrame, scores: dict
) -> dict[str, dict]:
    """S_sim, S_div and its parts: pairs in them, correlations between differences of scores."""
    groups = table.groupby("source", sort=False).indices
    pairs = [pair for rows in groups.values() for pair in combinations(rows, 2)]
    first, other = np.array(pairs, np.int64).reshape(-1, 2).T
    sim, div = similarity[first] - similarity[other], divergence[first] - divergence[other]
    s_sim = (abs(div) <= S_SIM["divergence"]) & (abs(sim) >= S_SIM["similarity"])
    s_div = (abs(sim) <= S_DIV["similarity"]) & (abs(div) >= S_DIV["divergence"])
    near = np.minimum(divergence[first], divergence[other]) <= SPLIT
    human = table["human"].to_numpy()

    def differences(chosen: np.ndarray, sign: np.ndarray) -> dict:
        a, b = first[chosen], other[chosen]
        turn = np.sign(sign[chosen])
        of_scores = {name: turn * (of[a] - of[b]) for name, of in scores.items()}
        values = correlations(of_scores, turn * (human[a] - human[b]))
        return {"pairs": int(chosen.sum()), **values}

    return {
        "S_sim": differences(s_sim, sim),
        "S_div": differences(s_div, div),
        f"S_div1, d ≤ {SPLIT}": differences(s_div & near, div),
        f"S_div2, d > {SPLIT}": differences(s_div & ~near, div),
    }


def correlations(scores: dict[str, np.ndarray], human: np.ndarray) -> dict[str, dict[str, float]]:
    """spearman and pearson, each by name of the metric; NaN with fewer than three scores."""
    return {
        kind: {name: _correlation(statistic, values, human) for name, values in scores.items()}
        for kind, statistic in (("spearman", spearman), ("pearson", pearson))
    }


def _correlation(statistic: Callable, scores: np.ndarray, human: np.ndarray) -> float:
    there = ~np.isnan(scores)
    if there.sum() < 3:
        return float("nan")
    once = np.ones((1, int(there.sum())), np.int64)
    return float(statistic(scores[there], human[there], once)[0])
