"""Describes a scoring run: its manifest, a summary on the console, and report.html."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.parquet import data_files, input_entry, read_table, written_files
from gaixie.jobs.corpus.reading import NO_ORIGIN
from gaixie.jobs.corpus.runs import now
from gaixie.jobs.scoring.sorting import SCORED_COLUMNS, Cells, CutPoints, bins_of
from gaixie.jobs.scoring.units import Job
from gaixie.udfs.features import FEATURES
from gaixie.udfs.reports import number, print_table, render
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import ORIGINS, SCORE_BINS, STAGES, quantile
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, RunManifest, RunRows
from gaixie.udfs.text.segmenters import load_segmenter
from gaixie.udfs.text.validate import MALFORMED

REPORT = "report.html"
TEMPLATE = Path(__file__).with_name("report.html.j2")

EXPLANATIONS = {
    "null": "a sentence is null",
    "undecodable": "a sentence is not UTF-8, or holds U+FFFD from an earlier failed decoding",
    "empty": "a sentence is empty after whitespace is stripped",
    "too_short": "a sentence has fewer characters than min_characters",
    "too_long": "a sentence has more characters than max_characters",
    "no_han": "a sentence has no Han character",
    "identical": "both sentences are the same after normalisation",
    MALFORMED: "the line could not be split into the input's columns",
}
"""Explains every reason of gaixie.udfs.text.validate in one line."""

EXAMPLES = 3
"""Pairs of each stage that a report shows."""
ROWS = 1_000
"""Rows among which they are chosen, from each origin: a hash decides which pairs share a file."""

NAMES = [f"stage {stage}" for stage in STAGES]

FEW_SHARE = 0.01
"""A stage with a smaller share of its origin's pairs gets a warning."""

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

BARS, TENTHS = 20, 10
"""Number of bins for the score and for a judgement in a manifest's histograms."""


class Table(NamedTuple):
    """A table of texts; the first cell of each row is its name."""

    head: list[str]
    rows: list[list[str]]
    total: list[str] | None = None


# The manifest


def make_manifest(
    job: Job,
    read: Counter[str],
    duplicate_cells: Cells,
    cut_points: CutPoints,
    schemas: Mapping[Any, StructType],
    earlier_runs: Sequence[str],
) -> RunManifest:
    """Returns the manifest of a run whose tables are written, without its times.

    read: rows by origin; duplicate_cells: of the duplicates. Raises RuntimeError unless read =
    scored + quarantined + duplicates for every origin, as counted from the written files.
    """

    def written(name: str, *keys: str | Column) -> Counter[Any]:
        if not storage.exists(job.path(name)):
            return Counter()
        rows = read_table(job.spark, job.path(name), schema=schemas[name]).groupBy(*keys).count()
        return Counter({tuple(row)[:-1]: row["count"] for row in rows.collect()})

    tenths = written("scored", "origin", "stage", *map(_tenth, JUDGEMENTS))
    by_stage = {origin: dict.fromkeys(STAGES, 0) for origin in read}
    by_reason: dict[str, dict[str, int]] = {origin: {} for origin in read}
    for (origin, stage, *_), pairs in tenths.items():
        by_stage.setdefault(origin, dict.fromkeys(STAGES, 0))[stage] += pairs
    for (origin, reason), rows in written("quarantine", "origin", "reason").items():
        by_reason.setdefault(origin, {})[reason] = rows
    duplicates = {origin: bins.total() for origin, bins in bins_of(duplicate_cells).items()}
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


# The console and the page


def print_summary(manifest: RunManifest, folder: str) -> None:
    """Prints the run's counts, quantiles, reasons, signature, time and paths."""
    names, reasons, _ = quarantine(manifest)
    tables = counts(manifest), quantiles(manifest), Table(names[:2], [row[:2] for row in reasons])
    for table in tables:
        if table.rows and len(table.head) > 1:
            print_table(*table)
            print()
    seconds = sum(manifest.seconds.values())
    steps = ", ".join(f"{step} {value:,.1f}" for step, value in manifest.seconds.items())
    rate = manifest.total.read / seconds if seconds else 0.0
    print(f"signature: {manifest.signature}")
    print(f"time: {seconds:,.1f} s ({steps}), {rate:,.0f} pairs/s")
    print(f"manifest: {folder}/{MANIFEST}")
    print(f"report: {folder}/{REPORT}")


def report_page(
    manifest: RunManifest, folder: str, examples: Sequence[dict[str, Any]], fault: str = ""
) -> str:
    """Returns report.html. examples: of pick_examples; fault: why the run is not published."""
    by_stage = [[pair for pair in examples if pair["stage"] == stage] for stage in STAGES]
    return render(
        TEMPLATE,
        manifest=manifest,
        folder=folder,
        fault=fault,
        counts=counts(manifest),
        stages=stages(manifest),
        quantiles=quantiles(manifest),
        quarantine=quarantine(manifest),
        examples=[pairs for pairs in reversed(by_stage) if pairs],
        judgements=JUDGEMENTS,
        features=FEATURES,
    )


def origins_of(manifest: RunManifest) -> list[str]:
    """Returns the origins that have rows; malformed lines may have none that is known."""
    names = (*ORIGINS, NO_ORIGIN)
    return [name for name in names if name in manifest.rows and manifest.rows[name].read]


def counts(manifest: RunManifest) -> Table:
    """Returns the accounts: rows read, pairs by stage, and what was left out, by origin."""
    table = []
    for origin in origins_of(manifest):
        rows = manifest.rows[origin]
        by_stage = [manifest.stages.get(origin, {}).get(stage, 0) for stage in STAGES]
        table.append([rows.read, *by_stage, rows.quarantined, rows.duplicates])
    sums = [sum(column) for column in zip(*table, strict=True)]
    named = zip([*origins_of(manifest), "total"], [*table, sums], strict=True)
    *rows_of, total = [[name, *(f"{count:,}" for count in row)] for name, row in named]
    return Table(["origin", "read", *NAMES, "quarantined", "duplicates"], rows_of, total)


def stages(manifest: RunManifest) -> Table:
    """Returns the share of the origin's pairs in each stage, and where the stages begin."""
    rows = []
    for origin in origins_of(manifest):
        by_stage = manifest.stages.get(origin, {})
        pairs = max(sum(by_stage.values()), 1)
        shares = [f"{by_stage.get(stage, 0) / pairs:.1%}" for stage in STAGES]
        cuts = [number(cut) for cut in manifest.cuts.get(origin, [])]
        least = number(manifest.min_meaning.get(origin, 0.0), 2)
        rows.append([origin, *shares, " / ".join(cuts), least])
    return Table(["origin", *NAMES, "stages 1 / 2 / 3 begin at", "least meaning in 2 and 3"], rows)


def quantiles(manifest: RunManifest) -> Table:
    """Returns a row for each origin with pairs: its score at given shares of them."""
    shares = sorted({share for points in manifest.quantiles.values() for share in points})
    rows = []
    for origin in origins_of(manifest):
        if points := manifest.quantiles.get(origin):
            rows.append([origin, *(number(points.get(share)) for share in shares)])
    return Table(["score at", *(f"{100 * share:g} %" for share in shares)], rows)


def quarantine(manifest: RunManifest) -> Table:
    """Returns the quarantined rows by reason, largest count first."""
    total: Counter[str] = Counter()
    for reasons in manifest.quarantine.values():
        total.update(reasons)
    rows = [[name, f"{rows:,}", EXPLANATIONS.get(name, "")] for name, rows in total.most_common()]
    return Table(["quarantined", "rows", "what it means"], rows)


def pick_examples(job: Job, stages: Mapping[str, Mapping[int, int]]) -> list[dict[str, Any]]:
    """Returns some pairs of each stage, the best stage and the best pair first, as dictionaries:
    SCORED_COLUMNS (None where missing), origin, stage and reasons.

    stages: scored pairs by origin and stage.
    """
    segmenter = load_segmenter(job.settings.segmenter)
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
        pair["reasons"] = job.metric.explain(pair["source"], pair["paraphrase"], segmenter)
    return examples


def _first_rows(folder: str) -> list[dict[str, Any]]:
    with storage.open_file(data_files(folder)[0].uri) as file:
        batches = pq.ParquetFile(file).iter_batches(ROWS, columns=[*SCORED_COLUMNS])
        return pa.Table.from_batches([next(batches)]).to_pylist()


def warnings_of(
    stages: Mapping[str, Mapping[int, int]], quarantine: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    """Yields a line for each origin of which most rows are in quarantine, and for each stage of
    training that holds almost nothing.

    stages: pairs by origin and stage. quarantine: rows by origin and reason.
    """
    for origin, reasons in quarantine.items():
        rows, scored = sum(reasons.values()), sum(stages.get(origin, {}).values())
        if rows > scored:
            most = max(reasons, key=reasons.__getitem__)
            hint = {"too_short": "; --min-characters", "too_long": "; --max-characters"}
            yield (
                f"{rows:,} rows of {origin} are in quarantine, and {scored:,} pairs are scored; "
                f"{reasons[most]:,} are {most}{hint.get(most, '')}"
            )
    for origin, counts in stages.items():
        total = sum(counts.values())
        for stage in STAGES[1:]:
            pairs = counts.get(stage, 0)
            if pairs < max(1, FEW_SHARE * total) and total:
                yield (
                    f"stage {stage} of {origin} holds {pairs:,} of {total:,} pairs: "
                    f"cuts.{origin} (scores, quantiles, min_meaning) decides"
                )
