"""Counts what a run has written, closes its accounts, and states them in its manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.accounts import close_accounts, input_entry, written_counts, written_files
from gaixie.jobs.corpus.publish import now
from gaixie.jobs.scoring.cut_points import Cells, CutPoints, bins_of
from gaixie.jobs.scoring.job import Job
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import SCORE_BINS, STAGES, quantile
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import RunManifest, RunRows

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

BARS, TENTHS = 20, 10
"""Number of bins for the score and for a judgement in a manifest's histograms."""

Counts = Counter[tuple[Any, ...]]


def account(
    job: Job,
    read: Counter[str],
    left_out: Cells,
    cut_points: CutPoints,
    schemas: Mapping[Literal["scored", "quarantine"], StructType],
    earlier_runs: Sequence[str],
) -> RunManifest:
    """Returns the manifest of a run whose tables are written, without its times.

    read: rows by origin; left_out: the duplicates. Raises RuntimeError unless read = scored +
    quarantined + duplicates for every origin, as counted from the written files.
    """
    tenths = _written(job, "scored", schemas, ("origin", "stage", *map(_tenth, JUDGEMENTS)))
    scored: Counts = Counter()
    for (origin, number, *_), pairs in tenths.items():
        scored[origin, number] += pairs
    quarantined = _written(job, "quarantine", schemas, ("origin", "reason"))
    duplicates = {origin: bins.total() for origin, bins in bins_of(left_out).items()}
    close_accounts(read, scored, quarantined, duplicates)
    by_stage = {origin: {number: scored[origin, number] for number in STAGES} for origin in read}
    by_reason: dict[str, dict[str, int]] = {origin: {} for origin in read}
    for (origin, reason), rows in quarantined.items():
        by_reason[origin][reason] = rows
    cuts = {origin: cuts for origin, cuts in cut_points.cuts.items() if origin in read}
    bins = cut_points.bins
    written = {name: written_files(job.spark, job.folder, name) for name in schemas}
    files = {name: found for name, found in written.items() if found}
    return RunManifest(
        run_id=job.run_id,
        created=now(),
        gaixie=version("gaixie"),
        spark=job.spark.version,
        signature=job.scorer.signature,
        settings=job.settings.model_dump(),
        limit=job.limit,
        inputs=[
            input_entry(one.settings.path, one.kind, one.files, one.left_out) for one in job.inputs
        ],
        rows={
            origin: RunRows(
                read=rows,
                scored=sum(by_stage[origin].values()),
                quarantined=sum(by_reason[origin].values()),
                duplicates=duplicates.get(origin, 0),
            )
            for origin, rows in read.items()
        },
        earlier_runs=list(earlier_runs),
        stages=by_stage,
        quarantine=by_reason,
        cuts={o: [None if cut != cut else cut for cut in points] for o, points in cuts.items()},
        min_meaning={origin: cut_points.min_meaning[origin] for origin in cuts},
        quantiles={o: {s: quantile(counts, s) for s in QUANTILES} for o, counts in bins.items()},
        histograms=histograms(bins, tenths),
        seconds={},
        files=files,
    )


def _written(
    job: Job, name: Any, schemas: Mapping[Any, StructType], keys: Sequence[str | Column]
) -> Counts:
    """Counts the rows of a table by keys, from its files."""
    path = job.path(name)
    return (
        written_counts(job.spark, path, schemas[name], keys) if storage.exists(path) else Counter()
    )


def _tenth(name: str) -> Column:
    """Returns the tenth of 0 to 1 that a column's value falls in."""
    return F.least(F.floor(F.col(name) * TENTHS), F.lit(TENTHS - 1)).cast("int").alias(f"_{name}")


def histograms(
    bins: Mapping[str, Mapping[int, int]], tenths: Mapping[tuple[Any, ...], int]
) -> dict[str, dict[str, list[int]]]:
    """Counts pairs by origin, output and bin.

    bins: pairs by origin and score bin. tenths: pairs by origin, stage, and the tenth of each of
    JUDGEMENTS.
    """
    found = {origin: {"spscore": [0] * BARS} for origin in bins}
    for origin, counts in bins.items():
        found[origin] |= {name: [0] * TENTHS for name in JUDGEMENTS}
        for index, pairs in counts.items():
            found[origin]["spscore"][min(index * BARS // SCORE_BINS, BARS - 1)] += pairs
    for (origin, _, *places), pairs in tenths.items():
        for name, place in zip(JUDGEMENTS, places, strict=True):
            found[origin][name][place] += pairs
    return found
