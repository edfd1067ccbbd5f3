"""How far people go from their source, where a set has many paraphrases of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.metrics.bootstrap import bootstrap_interval
from gaixie.udfs.metrics.references import Resamples, estimate, leave_one_out

SUBSETS = 200
"""Sets of references that are drawn of a source with more of them than are asked for."""
FIGURES: dict[str, Any] = {"min": np.min, "mean": np.mean, "max": np.max, "sd": np.std}


def human_diversity(
    paraphrases: Mapping[str, Sequence[str]],
    count: int,
    encoder: str | None,
    tokenize: str,
    samples: int = 1000,
) -> dict[str, Any]:
    """Self-BLEU and BERT-iBLEU of references: of each source's the least, mean, greatest, and sd.

    Source: Dou, Jiang & Xu 2022 (MultiPIT), Table 4, human row, where each source has eight
    references. A source with more has the mean over random sets of ``count`` of them, and the
    figures are means over sources. sd: the standard deviation within a source (divided by count).

    paraphrases: source -> texts. Exactly ``count`` of them are all taken, as the paper's are; of
    more, a text that is there already or is the source is left out, and so is a source with fewer.
    encoder: of BERT-iBLEU; None leaves it out. Raises ValueError where no source has so many.
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
