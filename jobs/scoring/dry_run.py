"""Predicts the results and cost of a run by scoring the first rows of each input."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil, isnan
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.corpus.inputs import read_files
from gaixie.jobs.scoring.chunks import scored_rows
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.command_line import in_time
from gaixie.udfs.spark import score_batch
from gaixie.udfs.spscore import JUDGEMENTS, SPScore
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter

if TYPE_CHECKING:
    from gaixie.jobs.scoring.pipeline import ScoreCorpus

SAMPLE = 5_000
"""Rows read from each input."""

BATCH = 1_000
"""Pairs scored at a time; the first batch of an input is a warm-up and is not measured."""

MOVING = 13.5
"""Core time of a pair besides scoring, to read it, pass it to Python and back, and write it: a
multiple of the time in which one thread writes it as Parquet (docs/performance.md)."""
WRITES = 12
"""Times the sample is written to measure that; the fastest counts."""
START_S = 15.0
"""Seconds before the first pair and after the last."""


@dataclass(frozen=True)
class Measured:
    """Figures from the first rows of an input."""

    rows: float
    """Rows of the whole input; an estimate if its files do not say."""
    core_s: float
    """Seconds to score a pair on a core like this one; NaN if the sample is too small."""
    moving_s: float
    """Seconds of core time of a pair besides scoring."""
    text_bytes: float
    """Bytes of a pair as read."""
    kept_bytes: float
    """Bytes of a pair as written."""


def measure(
    sample: pa.Table, rows: float, model: SPScore, segmenter: Segmenter, limits: tuple[int, int]
) -> Measured:
    """Scores a sample in this process.

    sample: columns of gaixie.jobs.scoring.chunks.scored_rows, at least one row. rows: of the whole
    input. limits: minimum and maximum characters of a sentence.
    """
    texts = sample.select(["source", "paraphrase", "origin"]).combine_chunks()
    spent = []
    for batch in texts.to_batches(max_chunksize=BATCH):
        source, paraphrase, origin = batch.columns
        started = time.process_time()
        score_batch(source, paraphrase, origin, model, segmenter, *limits)
        spent.append((time.process_time() - started) / len(batch))
    # The first batch is a warm-up, and the last one may be small.
    core_s = median(spent[1:]) if len(texts) >= 2 * BATCH else float("nan")
    written = []
    for _ in range(WRITES):
        started, sink = time.process_time(), pa.BufferOutputStream()
        pq.write_table(sample, sink, compression="zstd")
        written.append((time.process_time() - started) / len(sample))
    moving_s, kept = MOVING * min(written), sink.tell() / len(sample)
    return Measured(rows, core_s, moving_s, texts.nbytes / len(texts), kept)


@dataclass(frozen=True)
class Cluster:
    """The cluster for which a run is estimated."""

    cores: int
    """Tasks that fit at once: cores, or GPUs for tier full."""
    pairs: int | None = None
    """Pairs of all inputs, in the mix of the samples; None: as many as there are."""
    pairs_per_second: float | None = None
    """Pairs a second that one core reads, scores and writes; None: as measured here."""
    price: float | None = None
    """Price of one core for an hour, in any currency."""


def dry_run(job: ScoreCorpus, cluster: Cluster, on_table: str) -> None:
    """Prints what a run would do and take; writes nothing.

    on_table: what would happen to a table.
    """
    segmenter = load_segmenter(job.scorer.segmenter)
    limits = job.settings.min_characters, job.settings.max_characters
    samples = []
    for source in filter(attrgetter("files"), job.inputs):
        size, rows = sum(file.size for file in source.files), sum(source.rows.values())
        known = f"{rows:,} rows, " if rows else ""
        print(
            f"{source.settings.path}: {len(source.files)} {source.format} files, "
            f"{known}{size / 1e6:,.1f} MB"
        )
        extra = ", ".join(column.name for column in source.extra_columns) or "none"
        print(f"  carried through: {extra}")
        first = read_files(job.spark, source, source.files).limit(SAMPLE)
        table = interruptible(scored_rows(first, job.score).toArrow)
        known_columns = ["origin", "reason", "spscore", *JUDGEMENTS]
        _print_sample(table.select(known_columns).to_pandas(), job.settings)
        if len(table):
            measured = measure(table, rows, job.scorer.model, segmenter, limits)
            samples.append(replace(measured, rows=rows or size / measured.text_bytes))
    if samples:
        print_estimate(samples, cluster, job.settings.target_file_mb)
        if job.profile and not cluster.pairs_per_second:
            print("  measured on this CPU; give the rate of a GPU with --pairs-per-second")
    print(f"signature: {job.scorer.signature}")
    if on_table:
        print(on_table)
    print(f"would write {job.folder}; dry run: nothing was written")


def _print_sample(table: pd.DataFrame, settings: ScoreSettings) -> None:
    fit = table[table["reason"].isna()]
    print(f"  of the first {len(table):,} rows, {len(fit):,} are fit")
    for reason, count in table["reason"].value_counts().items():
        print(f"  quarantine {reason}: {count:,}")
    quantiles = [0.05, 0.25, 0.5, 0.75, 0.95]
    for origin, pairs in fit.groupby("origin"):
        points = ", ".join(f"{own:.3f}" for own in pairs["spscore"].quantile(quantiles))
        print(f"  {origin}: 5, 25, 50, 75 and 95 % score below {points}")
        print(f"  {origin}: {settings.thresholds[str(origin)].in_words()}")
        means = [f"{name} {pairs[name].mean():.2f}" for name in JUDGEMENTS]
        print(f"  {origin}: mean {', '.join(means)}")


def print_estimate(samples: Iterable[Measured], cluster: Cluster, target_file_mb: float) -> None:
    """Prints a run's time, price and space."""
    table = pd.DataFrame([vars(sample) for sample in samples])
    of_a_pair = table.mul(table["rows"], axis=0).sum(skipna=False) / table["rows"].sum()
    scoring, moving, texts, kept = of_a_pair[["core_s", "moving_s", "text_bytes", "kept_bytes"]]
    rate, price = cluster.pairs_per_second, cluster.price
    if isnan(scoring) and not rate:
        print(f"no estimate of time and space: each input needs at least {2 * BATCH:,} rows")
        return
    count = cluster.pairs or round(table["rows"].sum())
    spent = count * (1 / rate if rate else scoring + moving)
    took = START_S + spent / cluster.cores
    output = count * kept
    about, cores = "" if cluster.pairs else "about ", f"{cluster.cores} cores"
    print(f"estimate for {about}{count:,} pairs on {cores}{'' if rate else ' like this one'}:")
    if rate:
        print(f"  {rate:,.0f} pairs/s per core, as given, for all steps")
    else:
        print(
            f"  a pair of {texts:,.0f} bytes: {1e6 * scoring:.1f} µs to score, "
            f"{1e6 * moving:.1f} µs to read, move and write, measured on one core here"
        )
    print(
        f"  {in_time(spent, 'core-')}; {in_time(took)}, "
        "if every core always has a task and storage keeps up"
    )
    if price:
        paid = took * cluster.cores / 3600 * price
        print(
            f"  {paid:,.4f} in all, {1e6 * paid / count:,.4f} per million pairs, at {price:g} per "
            "core-hour for all cores from start to end; storage and requests not included"
        )
    print(
        f"  about {_size(output)} of output in at least "
        f"{ceil(output / (target_file_mb * 1e6)):,} files, and as much again in _work until the end"
    )


def _size(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
