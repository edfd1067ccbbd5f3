"""Samples the scored pairs for the report of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.corpus.reporting import BARS
from gaixie.jobs.corpus.storage import LITERAL, Storage
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import JUDGEMENTS, OUTPUTS

MEASURED = [*FEATURES, *OUTPUTS]
"""Numeric columns of a scored pair."""

EXAMPLES = 3
"""Pairs of each stage that a report shows."""


@dataclass(frozen=True)
class Sample:
    """Figures from a sample of the scored pairs, besides their counts."""

    rows: int = 0
    correlations: list[list[float]] = field(
        default_factory=lambda: [[float("nan")] * len(MEASURED)] * len(MEASURED)
    )
    """Rank correlations over MEASURED; may be NaN."""
    judgements: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Pairs by origin and judgement, in BARS bins of equal width from 0 to 1."""
    examples: list[dict] = field(default_factory=list)
    """Some pairs of each stage, lowest score first: source, paraphrase, origin, stage, and
    MEASURED, None where missing."""


def sample_scored(
    spark: SparkSession,
    storage: Storage,
    path: str,
    schema: StructType,
    counts: Counter[tuple[Any, ...]],
    rows: int = 30_000,
) -> Sample:
    """Samples scored pairs, in proportion to every origin and stage.

    counts: rows by origin and stage. The pairs come from the start of one file of each: a hash
    decides which pairs share a file.
    """
    total = sum(counts.values())
    columns = ["source", "paraphrase", "origin", "stage", *MEASURED]
    reader = spark.read.options(**LITERAL).schema(schema)
    if total <= rows:
        pairs = reader.parquet(path).select(columns)
    else:
        parts = []
        for (origin, stage), count in counts.items():
            file = storage.list_files(f"{path}/origin={origin}/stage={stage}")[0].uri
            front = reader.option("basePath", path).parquet(file)
            parts.append(front.select(columns).limit(max(rows * count // total, 1)))
        pairs = reduce(DataFrame.unionAll, parts)
    sample = interruptible(pairs.toArrow).to_pandas().sort_values(["spscore", "source"])
    judgements = {
        str(origin): {
            name: np.histogram(pairs[name], BARS, (0, 1))[0].tolist() for name in JUDGEMENTS
        }
        for origin, pairs in sample.groupby("origin")
    }
    examples = []
    for _, pairs in sample.groupby("stage"):
        middle = ((np.arange(EXAMPLES) + 0.5) / EXAMPLES * len(pairs)).astype(int)
        chosen = pairs.iloc[np.unique(middle)]
        examples += chosen.astype(object).where(chosen.notna(), None).to_dict("records")
    matrix = sample[MEASURED].corr("spearman").to_numpy().tolist()
    return Sample(len(sample), matrix, judgements, examples)
