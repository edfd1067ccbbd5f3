"""How far people go from their source, where a set has many paraphrases of one: MultiPIT's human rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from gaixie.udfs.metrics import load_metric
from gaixie.udfs.metrics.references import Resamples, diversity, estimate, leave_one_out


def human_diversity(
    paraphrases: Mapping[str, Sequence[str]],
    least: int,
    encoder: str | None,
    tokenize: str,
    samples: int = 1000,
) -> dict[str, Any]:
    """Least, mean and greatest Self-BLEU and BERT-iBLEU over a source's paraphrases, and BLEU between them.

    paraphrases: source -> different texts; sources with fewer than ``least`` are left out. encoder: of BERT-iBLEU;
    None leaves it out. Raises ValueError where no source has so many.
    """
    kept = {a: [*dict.fromkeys(b for b in texts if b != a)] for a, texts in paraphrases.items()}
    kept = {source: texts for source, texts in kept.items() if len(texts) >= least}
    if not kept:
        raise ValueError(f"no source has {least} different paraphrases")
    most = max(map(len, kept.values()))
    source = pa.array([*kept], pa.string())
    columns = [
        pa.array([texts[k] if k < len(texts) else None for texts in kept.values()], pa.string())
        for k in range(most)
    ]
    resamples = Resamples([*kept], samples)
    specs = {"Self-BLEU": f"self-bleu:tokenize={tokenize}"}
    if encoder:
        specs["BERT-iBLEU"] = f"bert-ibleu:tokenize={tokenize}:model={encoder}"
    rows = {}
    for title, spec in specs.items():
        metric = load_metric(spec)
        found = diversity(metric.sentence_scores, source, columns, resamples)
        rows[title] = {name: value._asdict() for name, value in found.items()}
    # Each reference against the others: rows of a column that is null there are not scored.
    between = estimate(
        load_metric(f"bleu:tokenize={tokenize}"), leave_one_out(source, columns[:least]), resamples
    )
    return {
        "sources": len(kept),
        "paraphrases": sum(map(len, kept.values())),
        "least": least,
        "rows": rows,
        "between": between._asdict(),
    }
