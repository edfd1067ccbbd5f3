"""Measures how far people's paraphrases are from their source, in sets with many per source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.metrics.bootstrap import bootstrap_interval
from gaixie.udfs.metrics.references import Resamples, estimate, leave_one_out

SUBSETS = 200
"""Random sets of references to draw for a source that has more than ``count``."""
FIGURES: dict[str, Any] = {"min": np.min, "mean": np.mean, "max": np.max, "sd": np.std}


def human_diversity(
    paraphrases: Mapping[str, Sequence[str]],
    count: int,
    encoder: str | None,
    tokenize: str,
    samples: int = 1000,
) -> dict[str, Any]:
    """Returns the min, mean, max and sd of Self-BLEU and BERT-iBLEU over each source's references.

    Source: Dou, Jiang & Xu 2022 (MultiPIT), Table 4, human row, where each source has eight
    references. Figures are means over sources. For a source with more than ``count`` references,
    they are means over random sets of ``count``. sd: the standard deviation within a source
    (divided by count).

    paraphrases: texts by source. If there are exactly ``count``, all are taken, as in the paper;
    otherwise duplicates and copies of the source are removed first. A source with fewer is left
    out. encoder: for BERT-iBLEU; None leaves it out. Raises ValueError if no source has enough.
    """
    kept = {
        a: [*texts] if len(texts) == count else [*dict.fromkeys(b for b in texts if b != a)]
        for a, texts in paraphrases.items()
    }
    kept = {source: texts for source, texts in kept.items() if len(texts) >= count}
    if not kept:
        raise ValueError(f"no source has {count} paraphrases")
    pairs = Pairs.of(*zip(*((a, b) for a, texts in kept.items() for b in texts), strict=True))
    ends = np.cumsum([len(texts) for texts in kept.values()])
    specs = {"Self-BLEU": f"self-bleu:tokenize={tokenize}"}
    if encoder:
        specs["BERT-iBLEU"] = f"bert-ibleu:tokenize={tokenize}:model={encoder}"
    rows: dict[str, dict[str, Any]] = {}
    for title, spec in specs.items():
        scores = np.split(load_metric(spec).sentence_scores(pairs), ends[:-1])
        draw = np.random.default_rng(0)
        drawn = [draw.permuted(np.tile(own, (SUBSETS, 1)), axis=1)[:, :count] for own in scores]
        rows[title] = {}
        for name, of in FIGURES.items():
            of_sources = np.array([of(sets, axis=1).mean() for sets in drawn])
            low, high = bootstrap_interval(np.mean, (of_sources,), [*kept], samples)
            rows[title][name] = {"score": float(of_sources.mean()), "low": low, "high": high}
    columns = [pa.array([texts[k] for texts in kept.values()], pa.string()) for k in range(count)]
    each = leave_one_out(pa.array([*kept], pa.string()), columns)
    bleu, resamples = load_metric(f"bleu:tokenize={tokenize}"), Resamples([*kept], samples)
    return {
        "sources": len(kept),
        "paraphrases": int(ends[-1]),
        "count": count,
        "rows": rows,
        "between": estimate(bleu, each, resamples)._asdict(),
    }
