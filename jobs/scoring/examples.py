"""Picks example pairs of each stage for the report of a run, with the reasons for their scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.jobs.corpus.accounts import data_files
from gaixie.jobs.scoring.job import Job
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS, STAGES
from gaixie.udfs.storage import storage
from gaixie.udfs.text.segmenters import load_segmenter

EXAMPLES = 3
"""Pairs of each stage that a report shows."""
ROWS = 1_000
"""Rows among which they are chosen, from each origin: a hash decides which pairs share a file."""

COLUMNS = ["pair_id", "source", "paraphrase", *FEATURES, *OUTPUTS]


def pick_examples(job: Job, stages: Mapping[str, Mapping[int, int]]) -> list[dict[str, Any]]:
    """Returns some pairs of each stage, the best stage and the best pair first, as dictionaries:
    COLUMNS (None where missing), origin, stage and reasons.

    stages: scored pairs by origin and stage.
    """
    segmenter = load_segmenter(job.scorer.segmenter)
    examples: list[dict[str, Any]] = []
    for stage in reversed(STAGES):
        pairs = [
            pair | {"origin": origin, "stage": stage}
            for origin in ORIGINS
            if stages.get(origin, {}).get(stage)
            for pair in _first_rows(job.path(f"scored/origin={origin}/stage={stage}"))
        ]
        pairs.sort(key=lambda pair: (-pair["spscore"], pair["pair_id"]))
        middles = ((np.arange(EXAMPLES) + 0.5) / EXAMPLES * len(pairs)).astype(int)
        examples += [pairs[place] for place in np.unique(middles) if pairs]
    for pair in examples:
        explain = job.scorer.metric.explain
        pair["reasons"] = explain(pair["source"], pair["paraphrase"], segmenter)
    return examples


def _first_rows(folder: str) -> list[dict[str, Any]]:
    with storage.open_file(data_files(folder)[0].uri) as file:
        batches = pq.ParquetFile(file).iter_batches(ROWS, columns=COLUMNS)
        return pa.Table.from_batches([next(batches)]).to_pylist()
