"""Separates meaning from divergence: the attribution of Shen et al. 2022 (ParaScore), section 4.

For two candidates j and k of one source, the difference of a metric's scores is correlated with the
difference of human scores. Divergence is the normalised edit distance (NED) to the source;
similarity is the cosine of sentence vectors (the paper's footnote 4). The subset S_sim has pairs
(j, k) with similar divergence and different meaning; S_div has pairs with similar meaning and
different divergence. d(j, k) is the smaller of their distances to the source: S_div1 has the pairs
of S_div with d of at most SPLIT, S_div2 the rest. Without the metric ``similarity`` a comparison
has no subsets.

Decided here: each pair of candidates counts in both orders, (j, k) and (k, j), because neither is
first. Pearson's r of the differences a and b is then Σ ab / √(Σ a² · Σ b²), and a metric that
prefers the wrong candidate is penalised. The setting ``stretch`` stretches similarity so that its
first percentile is 0 and its last 1: with an encoder whose cosines all lie between 0.8 and 0.95, no
two candidates would be 0.15 apart.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from gaixie.research.comparison.agreement import draw, statistics_of
from gaixie.research.comparison.datasets import Config, DataSet
from gaixie.research.comparison.scores import Scores, pairs_of
from gaixie.udfs.metrics.bootstrap import Estimate, estimate_of
from gaixie.udfs.metrics.edit_distance import EditDistance

SIMILARITY = "similarity"
"""Name of the metric that measures how near in meaning a candidate is to its source."""
S_SIM = {"divergence": 0.05, "similarity": 0.15}
"""Candidates of one source: greatest difference in divergence, least difference in meaning."""
S_DIV = {"similarity": 0.05, "divergence": 0.10}
"""Candidates of one source: greatest difference in meaning, least difference in divergence."""
SPLIT = 0.35
"""S_div1 has the pairs whose nearer candidate is within this distance of the source."""


def attribution(
    data_set: DataSet, scored: Scores, rows: np.ndarray, config: Config
) -> dict[str, Any] | None:
    """Returns the subsets, or None if the set allows none. rows: those reported, bool."""
    table = scored.table[rows].reset_index(drop=True)
    scores = {name: values[rows] for name, values in scored.scores.items()}
    if SIMILARITY not in scores or data_set.labels or not table["source"].duplicated().any():
        return None
    low, high = np.nanquantile(scores[SIMILARITY], [0.01, 0.99]) if config.stretch else (0, 1)
    if high <= low:
        return None
    divergence = EditDistance().sentence_scores(pairs_of(table))
    similarity = (scores[SIMILARITY] - low) / (high - low)
    return subsets(divergence, similarity, table, scores, config.samples)


def subsets(
    divergence: np.ndarray,
    similarity: np.ndarray,
    table: pd.DataFrame,
    scores: dict[str, np.ndarray],
    samples: int = 0,
) -> dict[str, dict[str, Any]]:
    """Returns S_sim, S_div and its parts: the number of pairs, and Estimates by metric.

    The Estimates are spearman and pearson between differences of the metric's scores and of human
    scores; intervals by bootstrap over sources.
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
        found: dict[str, dict[str, Estimate]] = {"spearman": {}, "pearson": {}}
        for name, of in scores.items():
            kinds = statistics_of(of[a] - of[b], human[a] - human[b], drawn, [*found])
            for kind, values in kinds.items():
                found[kind][name] = estimate_of(values)
        return {"pairs": int(chosen.sum()), **found}

    return {
        "S_sim": differences(s_sim),
        "S_div": differences(s_div),
        f"S_div1, d ≤ {SPLIT}": differences(s_div & near),
        f"S_div2, d > {SPLIT}": differences(s_div & ~near),
    }
