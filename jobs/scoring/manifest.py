"""Counts what a run has written, closes its accounts, and states them in its manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.parquet import read_table
from gaixie.jobs.corpus.publish import now
from gaixie.jobs.corpus.written import input_entry, written_files
from gaixie.jobs.scoring.cut_points import Cells, CutPoints, bins_of
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import SCORE_BINS, STAGES, quantile
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import RunManifest, RunRows

if TYPE_CHECKING:
    from gaixie.jobs.scoring.steps import Job

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

BARS, TENTHS = 20, 10
"""Number of bins for the score and for a judgement in a manifest's histograms."""


def make_manifest(
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

    def written(name: Literal["scored", "quarantine"], *keys: str | Column) -> Counter[Any]:
        if not storage.exists(job.path(name)):
            return Counter()
        rows = read_table(job.spark, job.path(name), schema=schemas[name]).groupBy(*keys).count()
        return Counter({tuple(row)[:-1]: row["count"] for row in rows.collect()})

    tenths = written("scored", "origin", "stage", *map(_tenth, JUDGEMENTS))
    by_stage = {origin: dict.fromkeys(STAGES, 0) for origin in read}
    by_reason: dict[str, dict[str, int]] = {origin: {} for origin in read}
    for (origin, number, *_), pairs in tenths.items():
        by_stage.setdefault(origin, dict.fromkeys(STAGES, 0))[number] += pairs
    for (origin, reason), rows in written("quarantine", "origin", "reason").items():
        by_reason.setdefault(origin, {})[reason] = rows
    duplicates = {origin: bins.total() for origin, bins in bins_of(left_out).items()}
    rows_of = close_accounts(read, by_stage, by_reason, duplicates)
    cuts = {origin: points for origin, points in cut_points.cuts.items() if origin in read}
    bins = bins_of(cut_points.cells)
    files = {name: written_files(job.spark, job.folder, name) for name in schemas}
    return RunManifest(
        run_id=job.run_id,
        created=now(),
        gaixie=version("gaixie"),
        spark=job.spark.version,
        signature=job.signature,
        settings=job.settings.model_dump(),
        limit=job.limit,
        inputs=[
            input_entry(one.settings.path, one.kind, one.files, one.left_out) for one in job.inputs
        ],
        rows=rows_of,
        earlier_runs=list(earlier_runs),
        stages=by_stage,
        quarantine=by_reason,
        cuts={o: [None if cut != cut else cut for cut in points] for o, points in cuts.items()},
        min_meaning={origin: cut_points.min_meaning[origin] for origin in cuts},
        quantiles={o: {s: quantile(counts, s) for s in QUANTILES} for o, counts in bins.items()},
        histograms=histograms(bins, tenths),
        seconds={},
        files={name: found for name, found in files.items() if found},
    )


def close_accounts(
    read: Mapping[str, int],
    scored: Mapping[str, Mapping[int, int]],
    quarantined: Mapping[str, Mapping[str, int]],
    duplicates: Mapping[str, int],
) -> dict[str, RunRows]:
    """Returns the accounts of each origin. Raises RuntimeError unless they close."""
    accounts = {}
    for origin in {**read, **scored, **quarantined, **duplicates}:
        accounts[origin] = rows = RunRows(
            read=read.get(origin, 0),
            scored=sum(scored.get(origin, {}).values()),
            quarantined=sum(quarantined.get(origin, {}).values()),
            duplicates=duplicates.get(origin, 0),
        )
        if rows.read != rows.scored + rows.quarantined + rows.duplicates:
            fault = f"the accounts do not close: {rows}; nothing was published"
            raise RuntimeError(f"origin {origin}: {fault}")
    return accounts


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
    found = {
        origin: {"spscore": [0] * BARS} | {name: [0] * TENTHS for name in JUDGEMENTS}
        for origin in bins
    }
    for origin, counts in bins.items():
        for index, pairs in counts.items():
            found[origin]["spscore"][min(index * BARS // SCORE_BINS, BARS - 1)] += pairs
    for (origin, _, *places), pairs in tenths.items():
        for name, place in zip(JUDGEMENTS, places, strict=True):
            found[origin][name][place] += pairs
    return found
