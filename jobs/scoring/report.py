"""Reports a scoring run: a summary on the console, and report.html with some of its pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.jobs.corpus.written import data_files
from gaixie.jobs.scoring.units import Job
from gaixie.udfs.features import FEATURES
from gaixie.udfs.reports import number, print_table, render
from gaixie.udfs.spscore import JUDGEMENTS, OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS, STAGES
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, RunManifest
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

COLUMNS = ["pair_id", "source", "paraphrase", *FEATURES, *OUTPUTS]

NAMES = [f"stage {stage}" for stage in STAGES]


class Table(NamedTuple):
    """A table of texts; the first cell of each row is its name."""

    head: list[str]
    rows: list[list[str]]
    total: list[str] | None = None


def print_summary(manifest: RunManifest, folder: str) -> None:
    """Prints the run's counts, quantiles, reasons, signature, time and paths."""
    reasons = quarantine(manifest)
    reasons = Table(reasons.head[:2], [row[:2] for row in reasons.rows])
    for table in (counts(manifest), quantiles(manifest), reasons):
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


def report_page(manifest: RunManifest, folder: str, examples: Sequence[dict[str, Any]]) -> str:
    """Returns report.html. examples: of pick_examples."""
    by_stage = [[pair for pair in examples if pair["stage"] == stage] for stage in STAGES]
    return render(
        TEMPLATE,
        manifest=manifest,
        folder=folder,
        counts=counts(manifest),
        stages=stages(manifest),
        quantiles=quantiles(manifest),
        quarantine=quarantine(manifest),
        histograms=histograms(manifest),
        examples=[pairs for pairs in reversed(by_stage) if pairs],
        judgements=JUDGEMENTS,
        features=FEATURES,
    )


def origins_of(manifest: RunManifest) -> list[str]:
    """Returns the origins that have rows."""
    return [name for name in ORIGINS if name in manifest.rows and manifest.rows[name].read]


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
    """Returns a row for each origin: its score at given shares of its pairs."""
    shares = sorted({share for points in manifest.quantiles.values() for share in points})
    rows = []
    for origin in origins_of(manifest):
        points = manifest.quantiles.get(origin, {})
        rows.append([origin, *(number(points.get(share)) for share in shares)])
    return Table(["score at", *(f"{100 * share:g} %" for share in shares)], rows)


def quarantine(manifest: RunManifest) -> Table:
    """Returns the quarantined rows by reason, largest count first."""
    total: Counter[str] = Counter()
    for reasons in manifest.quarantine.values():
        total.update(reasons)
    rows = [[name, f"{rows:,}", EXPLANATIONS.get(name, "")] for name, rows in total.most_common()]
    return Table(["quarantined", "rows", "what it means"], rows)


def histograms(manifest: RunManifest) -> dict[str, dict[str, list[float]]]:
    """Returns by origin and output the height of each bar, 1 for the highest of its histogram."""
    return {
        origin: {
            output: [bar / max(*bars, 1) for bar in bars]
            for output, bars in manifest.histograms.get(origin, {}).items()
        }
        for origin in origins_of(manifest)
    }


def pick_examples(job: Job, stages: Mapping[str, Mapping[int, int]]) -> list[dict[str, Any]]:
    """Returns some pairs of each stage, the best stage and the best pair first, as dictionaries:
    COLUMNS (None where missing), origin, stage and reasons.

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
        explain = job.metric.explain
        pair["reasons"] = explain(pair["source"], pair["paraphrase"], segmenter)
    return examples


def _first_rows(folder: str) -> list[dict[str, Any]]:
    with storage.open_file(data_files(folder)[0].uri) as file:
        batches = pq.ParquetFile(file).iter_batches(ROWS, columns=COLUMNS)
        return pa.Table.from_batches([next(batches)]).to_pylist()
