"""Why metrics agree with people or not: by distance, and meaning and divergence taken apart.

Source: Shen et al. 2022 (ParaScore), sections 3 and 4. Distance is the normalised edit distance.
Decided here: pairs of candidates are put so that the nearer in meaning (S_sim) or the more
divergent (S_div) comes first; similarity is that of the first metric of SIMILARITIES that was computed,
stretched so that its first percentile is 0 and its last 1: an encoder whose cosines all lie between 0.8
and 0.95 would have no two candidates 0.15 apart.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from gaixie.jobs.comparison.agreement import spearman
from gaixie.jobs.comparison.datasets import DataSet
from gaixie.jobs.comparison.scores import Scores, pairs_of
from gaixie.udfs.metrics import Pairs
from gaixie.udfs.metrics.edit_distance import EditDistance

SIMILARITIES = ("bertscore-free", "similarity", "chrf-free")
S_SIM = {"divergence": 0.05, "similarity": 0.15}
"""Candidates of one source that diverge alike (at most) and differ in meaning (at least)."""
S_DIV = {"similarity": 0.05, "divergence": 0.10}
"""Candidates of one source that are alike in meaning (at most) and diverge unlike (at least)."""
SPLIT = 0.35
"""S_div apart: both candidates within this distance of the source, both beyond, others."""


def why(data_set: DataSet, scored: Scores) -> dict[str, Any]:
    """Sections of the analysis, of those that the set allows: it needs references, or groups."""
    rows = scored.reported & ~scored.table["added"].to_numpy()
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
    name = next((name for name in SIMILARITIES if name in scores), None)
    if name and not data_set.labels and table["source"].duplicated().any():
        sections["subsets"] = {"similarity": name}
        low, high = np.nanquantile(scores[name], [0.01, 0.99])
        if high > low:
            similarity = (scores[name] - low) / (high - low)
            sections["subsets"] |= subsets(to_source, similarity, table, scores)
    return sections


def by_quartile(distance: np.ndarray, table: pd.DataFrame, scores: dict) -> list[dict]:
    """Spearman of every metric in each quarter of the rows, the nearest first."""
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
    """Rows, their share, and Spearman of every metric on them."""
    human = table["human"].to_numpy()[chosen]
    values = {name: _rho(of[chosen], human) for name, of in scores.items()}
    return {"rows": int(chosen.sum()), "share": float(chosen.mean()), "spearman": values}


def subsets(
    divergence: np.ndarray, similarity: np.ndarray, table: pd.DataFrame, scores: dict
) -> dict[str, dict]:
    """S_sim, S_div and its parts: pairs in them, Spearman between differences of scores."""
    groups = table.groupby("source", sort=False).indices
    pairs = np.array([p for rows in groups.values() for p in combinations(rows, 2)]).reshape(-1, 2)
    first, other = pairs.T
    sim, div = similarity[first] - similarity[other], divergence[first] - divergence[other]
    s_sim = (abs(div) <= S_SIM["divergence"]) & (abs(sim) >= S_SIM["similarity"])
    s_div = (abs(sim) <= S_DIV["similarity"]) & (abs(div) >= S_DIV["divergence"])
    near = (divergence[first] <= SPLIT) & (divergence[other] <= SPLIT)
    far = (divergence[first] > SPLIT) & (divergence[other] > SPLIT)
    human = table["human"].to_numpy()

    def differences(chosen: np.ndarray, sign: np.ndarray) -> dict:
        a, b = first[chosen], other[chosen]
        turn = np.sign(sign[chosen])
        target = turn * (human[a] - human[b])
        values = {name: _rho(turn * (of[a] - of[b]), target) for name, of in scores.items()}
        return {"pairs": int(chosen.sum()), "spearman": values}

    return {
        "S_sim": differences(s_sim, sim),
        "S_div": differences(s_div, div),
        f"S_div, both within {SPLIT}": differences(s_div & near, div),
        f"S_div, both beyond {SPLIT}": differences(s_div & far, div),
    }


def _rho(scores: np.ndarray, human: np.ndarray) -> float:
    there = ~np.isnan(scores)
    if there.sum() < 3:
        return float("nan")
    once = np.ones((1, int(there.sum())), np.int64)
    return float(spearman(scores[there], human[there], once)[0])
