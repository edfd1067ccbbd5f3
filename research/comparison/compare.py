"""Measures how well each metric agrees with people on a data set, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from gaixie.research.comparison.agreement import CORRELATIONS, CURVES, draw, p_value, statistics_of
from gaixie.research.comparison.analysis import attribution
from gaixie.research.comparison.datasets import Config, DataSet
from gaixie.research.comparison.scores import Scores, is_cross_fitted
from gaixie.udfs.metrics import Metric
from gaixie.udfs.metrics.bootstrap import estimate_of


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
        results.append(found | {"attribution": attribution(data_set, scored, rows, config)})
    return results


def _compare_rows(
    data_set: DataSet, scored: Scores, rows: np.ndarray, config: Config
) -> dict[str, Any]:
    table = scored.table[rows]
    human = table["human"].to_numpy(float)
    drawn = draw(table["source"].to_numpy(object), config.samples)
    kinds = CURVES if data_set.labels else CORRELATIONS
    main = "auc" if data_set.labels else "spearman"
    samples = {
        name: statistics_of(scores[rows], human, drawn, kinds)
        for name, scores in scored.scores.items()
    }
    turned = {
        name: _turned(values[main], scored.metrics[name], main) for name, values in samples.items()
    }
    # Undefined values come last.
    order = sorted(turned, key=lambda name: np.nan_to_num(turned[name][0], nan=-2), reverse=True)
    best = turned[order[0]]
    metrics = [
        {
            **_description(name, scored, data_set),
            **{key: estimate_of(values) for key, values in samples[name].items()},
            "p": p_value((best - turned[name])[1:]) if name != order[0] else float("nan"),
            "rows": int((~np.isnan(scored.scores[name][rows])).sum()),
        }
        for name in order
    ]
    return {
        "rows": len(table),
        "sources": int(table["source"].nunique()),
        "added": int(table["added"].sum()),
        "statistic": main,
        "statistics": kinds,
        "metrics": metrics,
        "note": data_set.note,
        "left_out": scored.left_out,
        "signatures": scored.signatures,
    }


def _description(name: str, scored: Scores, data_set: DataSet) -> dict[str, Any]:
    metric = scored.metrics[name]
    references = metric.uses_reference and bool(data_set.reference)
    return {
        "name": name,
        "title": scored.titles[name] + (" ×" if is_cross_fitted(data_set, metric) else ""),
        "higher_is_better": metric.higher_is_better,
        "with_reference": metric.needs_reference or references,
    }


def _turned(values: np.ndarray, metric: Metric, main: str) -> np.ndarray:
    """Returns the statistic, reversed for a metric whose lower scores are better."""
    if metric.higher_is_better:
        return values
    return 1 - values if main == "auc" else -values
