"""How well each metric agrees with people on a data set, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from gaixie.jobs.comparison.agreement import draw, estimate, p_value, statistics_of
from gaixie.jobs.comparison.analysis import why
from gaixie.jobs.comparison.datasets import Config, DataSet
from gaixie.jobs.comparison.scores import Scores, is_cross_fitted
from gaixie.udfs.metrics import Metric


def compare(each: DataSet, found: Scores, config: Config) -> list[dict[str, Any]]:
    """What is reported of a set, and of its extension where it has one."""
    added = found.table["added"].to_numpy()
    results = [_compare_rows(each, found, found.reported & ~added, config)]
    results[0]["why"] = why(each, found)
    if each.extended:
        extended = _compare_rows(each, found, found.reported, config)
        results.append({**extended, "name": f"{each.name}-extended", "published": []})
    return results


def _compare_rows(each: DataSet, found: Scores, rows: np.ndarray, config: Config) -> dict[str, Any]:
    table = found.table[rows]
    human = table["human"].to_numpy(float)
    times = draw(table["source"].to_numpy(object), config.samples)
    main = "auc" if each.labels else "spearman"
    samples = {
        name: statistics_of(scores[rows], human, times, each.labels)
        for name, scores in found.scores.items()
    }

    turned = {
        name: _turned(values[main], found.metrics[name], main) for name, values in samples.items()
    }
    # What is undefined comes last.
    order = sorted(turned, key=lambda name: np.nan_to_num(turned[name][0], nan=-2), reverse=True)
    metrics = [
        {
            **_description(found.metrics[name], each),
            **{key: estimate(values) for key, values in samples[name].items()},
            "p": p_value(turned[order[0]], turned[name]) if name != order[0] else float("nan"),
            "rows": int((~np.isnan(found.scores[name][rows])).sum()),
        }
        for name in order
    ]
    values = {name: samples[name][main][0] for name in order}
    free = [
        (found.metrics[name].title, values[name], values[f"{name}-free"])
        for name in order
        if f"{name}-free" in values
    ]
    published = [
        (found.metrics[name].title, theirs, values[name])
        for name, theirs in each.published.items()
        if name in values
    ]
    return {
        "name": each.name,
        "language": each.language,
        "rows": len(table),
        "sources": int(table["source"].nunique()),
        "added": int(table["added"].sum()),
        "statistic": main,
        "statistics": list(next(iter(samples.values()))),
        "metrics": metrics,
        "free": free,
        "published": published,
        "note": each.note,
        "left_out": found.left_out,
        "signatures": found.signatures,
        "between": _between(found, rows, order),
    }


def _description(metric: Metric, each: DataSet) -> dict[str, Any]:
    crossed = is_cross_fitted(each, metric)
    return {
        "name": metric.name,
        "title": metric.title + (" ×" if crossed else ""),
        "higher_is_better": metric.higher_is_better,
        "with_reference": metric.needs_reference
        or (metric.uses_reference and bool(each.reference)),
    }


def _turned(values: np.ndarray, metric: Metric, main: str) -> np.ndarray:
    """The statistic so that more is better agreement, by the metric's own direction."""
    if metric.higher_is_better:
        return values
    return 1 - values if main == "auc" else -values


def _between(found: Scores, rows: np.ndarray, order: list[str]) -> dict[str, Any]:
    """Spearman between metrics, over the rows that both have a score of."""
    once = np.ones((1, int(rows.sum())), np.int64)
    values = [
        [float(_both(found.scores[one][rows], found.scores[other][rows], once)) for other in order]
        for one in order
    ]
    return {"metrics": [found.metrics[name].title for name in order], "spearman": values}


def _both(one: np.ndarray, other: np.ndarray, once: np.ndarray) -> float:
    there = ~np.isnan(one)
    found = statistics_of(other[there], one[there], once[:, there], False)
    return found["spearman"][0]
