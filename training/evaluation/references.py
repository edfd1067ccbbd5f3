"""Compares systems with the references that people wrote, and people with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gaixie.training.evaluation.measures import better, digits
from gaixie.training.evaluation.systems import System
from gaixie.udfs.metrics import Metric, Pairs, load_metric
from gaixie.udfs.metrics.references import Resamples, diversity, estimate, leave_one_out

METRICS = (
    *("sari:tokenize=zh-word", "bleu:tokenize=zh-word", "self-bleu:tokenize=zh-word"),
    *("hsk-easy", "hsk-hard"),
)
A_PERSON = "a person"
"""Name of the row of people: the mean over the references, each against the others."""


def chosen(references: Sequence[str], names: str | None, encoder: str | None) -> list[Metric]:
    """Returns the metrics of --reference-metrics. Raises ValueError if one is unknown or there is
    no reference."""
    if not references:
        if names:
            raise ValueError("--reference-metrics needs --reference")
        return []
    model = {"model": encoder} if encoder else {}
    return [load_metric(spec, **model) for spec in (names.split(",") if names else METRICS)]


def compared(
    sources: Sequence[str],
    systems: Sequence[System],
    references: dict[str, list[str | None]],
    metrics: Sequence[Metric],
    measures: Mapping[str, Metric],
    resamples: Resamples,
) -> dict[str, Any] | None:
    """Scores every system and a person against the references, with intervals, and how far people
    differ.

    references: column -> texts, as many as sources; without columns it returns None. A system is
    scored on the rows for which it has a paraphrase. measures: those of the evaluation, each of
    which compares only source and paraphrase.
    """
    if not references:
        return None
    source = pa.array(sources, pa.string())
    columns = [pa.array(column, pa.string()) for column in references.values()]
    sets = {system.name: [Pairs.of(source, system.paraphrases, *columns)] for system in systems}
    if len(columns) > 1:
        if A_PERSON in sets:
            raise ValueError(f"a system cannot be named {A_PERSON!r}, which is the row of people")
        sets[A_PERSON] = leave_one_out(source, columns)
    spread = [
        {"title": measure.title, "digits": digits(measure)}
        | {
            name: value._asdict()
            for name, value in diversity(
                measure.sentence_scores, source, columns, resamples
            ).items()
        }
        for measure in measures.values()
    ]
    return {
        "columns": [*references],
        "rows_with": int(np.any([column.is_valid() for column in columns], axis=0).sum()),
        "titles": [f"{metric.title} {better(metric)}" for metric in metrics],
        "signatures": [metric.signature() for metric in metrics],
        "digits": [digits(metric) for metric in metrics],
        "systems": {
            name: [estimate(metric, pairs, resamples)._asdict() for metric in metrics]
            for name, pairs in sets.items()
        },
        "diversity": spread,
    }
