"""Ranks translations of a segment by a metric, and compares with people's ranks (WMT 2024, ESA)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from gaixie.udfs.metrics.bootstrap import bootstrap_interval
from gaixie.udfs.text.normalise import normalise

Score = Callable[[Sequence[str], Sequence[str]], np.ndarray]
SAMPLES = 500


def translations(path: Path, metrics: Mapping[str, Score]) -> dict[str, Any]:
    """Kendall's tau-b within a segment, its mean over segments.

    A text's score is the mean of a metric over the pairs (another text of the segment, the text).
    Intervals resample documents. A segment where people or the metric see no difference counts 0.
    """
    judged = pd.read_json(path, lines=True)
    judged["text"] = judged["text"].map(normalise)
    pairs = judged.merge(judged[["segment", "text"]], on="segment", suffixes=("", "_other"))
    pairs = pairs[pairs["text"] != pairs["text_other"]]
    documents = judged.groupby("segment")["document"].first()
    table = []
    for name, score in metrics.items():
        own = score(pairs["text_other"].tolist(), pairs["text"].tolist())
        pairs = pairs.assign(own=np.asarray(own, float))
        means = pairs.groupby(["segment", "text"], as_index=False)["own"].mean()
        both = judged.merge(means, on=["segment", "text"], how="left").fillna({"own": 0.0})
        taus = [kendalltau(rows["own"], rows["score"])[0] for _, rows in both.groupby("segment")]
        column = np.nan_to_num(taus)
        low, high = bootstrap_interval(np.mean, (column,), documents.tolist(), SAMPLES)
        table.append({"metric": name, "tau": float(column.mean()), "low": low, "high": high})
    return {
        "documents": documents.nunique(),
        "segments": len(documents),
        "texts": len(judged),
        "metrics": sorted(table, key=lambda row: -row["tau"]),
    }
