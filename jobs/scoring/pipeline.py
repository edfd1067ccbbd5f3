"""Takes one scoring run through its steps: score, find the stages, write, account, publish."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from math import ceil
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from gaixie.jobs.corpus.accounts import (
    close_accounts,
    escape_undecodable,
    input_entry,
    written_counts,
    written_files,
)
from gaixie.jobs.corpus.beside import beside
from gaixie.jobs.corpus.inputs import MALFORMED_LINE, InputFiles
from gaixie.jobs.corpus.parquet import write_partitioned, write_unshuffled
from gaixie.jobs.corpus.progress import progress, timed
from gaixie.jobs.corpus.publish import now
from gaixie.jobs.corpus.session import cores, set_shuffle_partitions
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring import metrics
from gaixie.jobs.scoring.cells import TENTHS, Cells, Stages, bins_of, by_origin, histograms
from gaixie.jobs.scoring.chunks import ChunkScorer, divide, find_duplicates, leave_out
from gaixie.jobs.scoring.drift import compare
from gaixie.jobs.scoring.gpus import Counts, gpu_profile
from gaixie.jobs.scoring.ledger import Ledger
from gaixie.jobs.scoring.report import Report, draw_report, print_summary, write_report
from gaixie.jobs.scoring.sample import Sample, sample_scored
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.command_line import say
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spark import held_back_column, score_bin_column, score_columns, stage_column
from gaixie.udfs.spscore import JUDGEMENTS, OUTPUTS, SPScore
from gaixie.udfs.spscore.stages import STAGES, quantile
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.manifest import NAME, RunFile, RunManifest, RunRows
from gaixie.udfs.text.segmenters import load_segmenter

SCORED_COLUMNS = ("pair_id", "source", "paraphrase", *FEATURES, *OUTPUTS)
"""Columns of scored files, before the input's own; folder names hold origin and stage."""

Table = Literal["scored", "quarantine"]
TABLES: tuple[Table, ...] = ("scored", "quarantine")
REPORT, WORK = ("report.html", "report.png", metrics.FILE), "_work"
"""What a run writes besides its manifest."""

UNIT_MB, UNIT_MB_A_CORE = 2048, 48
"""Input of a chunk in MB, and its minimum for each core, so that a large cluster gets enough
tasks."""

MIN_UNSHUFFLED = 256e6
"""Bytes from which a table of many files is written without a shuffle: smaller tables would get
uneven files."""

ROWS_PER_PARTITION = 250_000
"""Rows that one task searches for duplicates."""

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class Scorer:
    """What decides a score: the model, the segmenter, and the signature of both."""

    model: SPScore
    segmenter: str
    signature: str


def load_scorer(settings: ScoreSettings) -> Scorer:
    try:
        with local_copy(None, settings.model) as (_, folder):
            model = SPScore.load(folder or settings.tier)
        if settings.tier not in (None, model.tier):
            raise ValueError(
                f"{settings.model}: a model of tier {model.tier}, not {settings.tier}; "
                "give only one of model and tier"
            )
        if model.tier == "full":
            model.read_from = settings.read_from
        signature = model.signature(load_segmenter(settings.segmenter))
    except (ValueError, OSError, ImportError) as error:
        raise JobError(str(error)) from error
    return Scorer(model, settings.segmenter, signature)


class ScoreCorpus:
    """The steps of one run, in the order in which main calls them."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        settings: ScoreSettings,
        scorer: Scorer,
        inputs: list[InputFiles],
        run_id: str,
        folder: str,
        limit: int | None,
        ledger: Ledger,
        baseline: RunManifest | None,
    ):
        """baseline: the run to compare with for drift."""
        self.spark, self.storage = spark, storage
        self.settings, self.scorer, self.inputs = settings, scorer, inputs
        self.run_id, self.folder, self.limit = run_id, folder, limit
        tier, lengths = scorer.model.tier, (settings.min_characters, settings.max_characters)
        self.profile = gpu_profile(spark, tier)
        counter = spark.sparkContext.accumulator(Counter(), Counts())
        self.read_by = counter if tier == "full" else None
        """Counts pairs by what read them."""
        self.score = score_columns(scorer.model, scorer.segmenter, *lengths, self.read_by)
        work = f"{folder}/{WORK}"
        self.chunks = ChunkScorer(
            spark, storage, settings, self.score, scorer.signature, work, self.profile
        )
        self.ledger, self.baseline = ledger, baseline
        self.duplicates: DataFrame | None = None
        """The rows to leave out: see find_duplicates."""
        self.schemas: dict[str, StructType] = {}
        """Schemas of the written tables."""
        self.seconds: dict[str, float] = {}
        self.check_lock: Callable[[], None] = lambda: None
        """Raises if another process holds this run: called before each step that deletes or
        publishes."""

    def run(self, resume: bool) -> RunManifest:
        """Runs all steps in order."""
        self.start(resume)
        self.score_chunks()
        stages = self.find_stages()
        self.write_tables(stages)
        return self.publish(stages)

    def start(self, resume: bool) -> None:
        """Deletes what a killed run left; with resume, everything except its finished chunks."""
        self._delete(*TABLES, *REPORT)
        deciding = {
            "signature": self.scorer.signature,
            "min_characters": self.settings.min_characters,
            "max_characters": self.settings.max_characters,
            "limit": self.limit,
            "inputs": [
                source.settings.model_dump()
                | {"files": len(source.files), "bytes": sum(file.size for file in source.files)}
                for source in self.inputs
            ],
        }
        self.chunks.steps.start(deciding, resume, f"run '{self.run_id}'", by_step=True)

    def _delete(self, *names: str) -> None:
        self.check_lock()
        for name in names:
            self.storage.delete(f"{self.folder}/{name}")

    @timed("score")
    def score_chunks(self) -> None:
        """Scores the input chunk by chunk into _work/."""
        unit_mb = self.settings.unit_mb or max(UNIT_MB, UNIT_MB_A_CORE * cores(self.spark))
        self.chunks.score(divide(self.inputs, unit_mb), self.limit, self.check_lock)
        for device, pairs in self.read_by.value.items() if self.read_by else ():
            say(f"tier full: {pairs:,} pairs read by {device}")
        if not self.chunks.read.total():
            self._delete(WORK)
            raise JobError(f"{self.settings.inputs[0].path}: no rows, expected at least one")

    @timed("stages")
    def find_stages(self) -> Stages:
        """Counts the distinct pairs by origin and score, and sets the thresholds."""
        rows = self.chunks.read.total()
        set_shuffle_partitions(self.spark, rows // ROWS_PER_PARTITION)
        given = self.settings.thresholds
        min_meaning = {origin: points.min_meaning for origin, points in given.items()}
        columns = [F.col("origin"), score_bin_column(), held_back_column(min_meaning)]

        def cells_of(pairs: DataFrame) -> Cells:
            counted = pairs.groupBy(*columns).count().collect()
            return Counter({(origin, index, held): n for origin, index, held, n in counted})

        with progress(self.spark, "finding duplicates and stages", rows):
            pairs = self.chunks.rows(fit=True)
            with beside(partial(cells_of, pairs)) as of_all:
                left_out, known = self._find_duplicates(pairs, rows, cells_of)
            cells = of_all.result()
        cells.subtract(left_out)
        duplicates = by_origin(left_out)
        if not duplicates:
            self.duplicates = None
        bins = bins_of(cells)
        thresholds = {}
        for origin, points in given.items():
            thresholds[origin] = list(points.scores or ())
            if points.quantiles:
                thresholds[origin] = [quantile(bins.get(origin, {}), q) for q in points.quantiles]
        return Stages(thresholds, min_meaning, cells, duplicates, by_origin(known))

    def _find_duplicates(
        self, pairs: DataFrame, rows: int, cells_of: Callable[[DataFrame], Cells]
    ) -> tuple[Cells, Cells]:
        """Finds the rows to leave out, and counts (all of them, those whose pair an earlier run
        has)."""
        known = self.ledger.known_pairs(self.spark, pairs, rows)
        of_known: Cells = Counter()
        if known:
            of_known = cells_of(known)
            pairs = leave_out(pairs, known, of_known.total())
        again = find_duplicates(pairs, rows, self._extra_columns().values())
        of_both = of_known + (cells_of(again) if again else Counter())
        self.duplicates = known.unionAll(again) if known and again else known or again
        return of_both, of_known

    @timed("write")
    def write_tables(self, stages: Stages) -> None:
        """Writes both tables at the same time."""
        with beside(self._write_quarantine):
            self._write_scored(stages)

    def _write_scored(self, stages: Stages) -> None:
        """Writes the distinct pairs, one folder for each origin and stage."""
        pairs = self.chunks.rows(fit=True)
        if self.duplicates:
            pairs = leave_out(pairs, self.duplicates, sum(stages.duplicates.values()))
        pairs = pairs.withColumn("stage", stage_column(stages.thresholds, stages.min_meaning))
        columns = [*SCORED_COLUMNS, *self._extra_columns(), "origin", "stage"]
        counts = stages.counts()
        if not counts:
            return
        pairs = pairs.select(*columns)
        with progress(self.spark, "writing scored pairs", sum(counts.values())):
            if split := self._split(counts):
                self.check_lock()
                write_unshuffled(pairs, f"{self.folder}/scored", ("origin", "stage"), *split)
                self.schemas["scored"] = pairs.schema
            else:
                self._write(pairs, "scored", ("origin", "stage"), counts, "pair_id")

    def _split(self, counts: dict[tuple[str, int], int]) -> tuple[int, int] | None:
        """Returns (bytes a task, rows a file) so that tasks that write what they read make files of
        about target_file_mb, or half of it if that keeps more cores busy. Returns None for too
        little input."""
        sizes, target = self.chunks.sizes, self.settings.target_file_mb * 1e6
        tasks = sum(sizes) / (target * len(counts))
        if tasks < 1 or sum(sizes) < MIN_UNSHUFFLED:
            return None
        a_wave = cores(self.spark)
        tasks = min(ceil(tasks / a_wave) * a_wave, round(2 * tasks))
        largest = max(counts.values()) / tasks
        files = max(ceil(largest * self.chunks.bytes_per_row() / target - 0.25), 1)
        return ceil(sum(sizes) / tasks) + max(sizes), ceil(1.2 * largest / files)

    def _write_quarantine(self) -> None:
        """Writes the rows that cannot be scored, one folder for each reason."""
        counts = {(reason,): rows for reason, rows in self.chunks.unfit.items()}
        if not counts:
            return
        rows = self.chunks.rows(fit=False)
        own = (MALFORMED_LINE, "origin", "reason")
        columns = ["source", "paraphrase", *self._extra_columns(), *own]
        if ("undecodable",) in counts:
            rows = escape_undecodable(rows, ("source", "paraphrase", MALFORMED_LINE))
        self._write(rows.select(*columns), "quarantine", ("reason",), counts, "source")

    def _write(
        self,
        rows: DataFrame,
        name: str,
        keys: tuple[str, ...],
        counts: dict[tuple[Any, ...], int],
        spread_by: str,
    ) -> None:
        rows_per_file = int(self.settings.target_file_mb * 1e6 / self.chunks.bytes_per_row())
        files = {
            values: max(round(count / max(rows_per_file, 1)), 1) for values, count in counts.items()
        }
        self.check_lock()
        write_partitioned(rows, f"{self.folder}/{name}", keys, files, F.xxhash64(spread_by))
        self.schemas[name] = rows.schema

    def publish(self, stages: Stages) -> RunManifest:
        """Counts the written rows, closes the accounts, and writes report and manifest."""
        started = time.monotonic()
        tenths = self._written("scored", ("origin", "stage", *map(_tenth, JUDGEMENTS)))
        scored: Counter[tuple[Any, ...]] = Counter()
        for (origin, number, *_), pairs in tenths.items():
            scored[origin, number] += pairs
        quarantined = self._written("quarantine", ("origin", "reason"))
        close_accounts(self.chunks.read, scored, quarantined, stages.duplicates)
        manifest = self._manifest(stages, scored, quarantined)
        manifest.histograms.update(histograms(stages.bins, tenths))
        if self.baseline:
            manifest = manifest.model_copy(update={"drift": compare(self.baseline, manifest)})
        with beside(self._files) as files:
            report = Report(manifest, self.folder, stages.bins, self._sample(scored))
            png = draw_report(report)
        manifest.files.update(files.result())
        self.seconds["report"] = time.monotonic() - started
        manifest.seconds.update({step: round(value, 3) for step, value in self.seconds.items()})
        write_report(report, png, self.storage, self.folder)
        self.storage.write(f"{self.folder}/{metrics.FILE}", metrics.exposition(manifest))
        self._delete(WORK)
        self.check_lock()
        self.storage.write(f"{self.folder}/{NAME}", manifest.to_json())
        print_summary(report)
        return manifest

    def _files(self) -> dict[Table, list[RunFile]]:
        """Lists the written files with digests."""
        files = {n: written_files(self.spark, self.storage, self.folder, n) for n in TABLES}
        return {name: found for name, found in files.items() if found}

    def _sample(self, scored: Counter[tuple[Any, ...]]) -> Sample:
        """Samples scored pairs, including the examples with the reasons for their scores."""
        if not scored:
            return Sample()
        path = f"{self.folder}/scored"
        sample = sample_scored(self.spark, self.storage, path, self.schemas["scored"], scored)
        segmenter = load_segmenter(self.scorer.segmenter)
        for pair in sample.examples:
            texts = pair["source"], pair["paraphrase"]
            pair["reasons"] = self.scorer.model.explain(*texts, segmenter)
        return sample

    def _written(self, name: str, keys: Sequence[str | Column]) -> Counter[tuple[Any, ...]]:
        if name not in self.schemas:
            return Counter()
        return written_counts(self.spark, f"{self.folder}/{name}", self.schemas[name], keys)

    def _extra_columns(self) -> dict[str, StructField]:
        """Returns the carried columns of the inputs, by name."""
        return {c.name: c for source in self.inputs for c in source.extra_columns}

    def _manifest(
        self,
        stages: Stages,
        scored: Counter[tuple[Any, ...]],
        quarantined: Counter[tuple[Any, ...]],
    ) -> RunManifest:
        """Returns the manifest without files and times."""
        read = self.chunks.read
        by_stage = {o: {s: scored[o, s] for s in STAGES} for o in read}
        by_reason: dict[str, dict[str, int]] = {o: {} for o in read}
        for (origin, reason), rows in quarantined.items():
            by_reason[origin][reason] = rows
        known = [origin for origin in read if origin in stages.thresholds]
        return RunManifest(
            run_id=self.run_id,
            created=now(),
            gaixie=version("gaixie"),
            spark=self.spark.version,
            signature=self.scorer.signature,
            settings=self.settings.model_dump(by_alias=True),
            limit=self.limit,
            inputs=[input_entry(source) for source in self.inputs],
            rows={
                origin: RunRows(
                    read=rows,
                    scored=sum(by_stage[origin].values()),
                    quarantined=sum(by_reason[origin].values()),
                    duplicates=stages.duplicates[origin],
                )
                for origin, rows in read.items()
            },
            known_pairs=stages.known,
            earlier_runs=[run.run_id for run in self.ledger.runs],
            rescored=list(
                dict.fromkeys(
                    name for run in self.ledger.rescored for name in (*run.rescored, run.run_id)
                )
            ),
            stages=by_stage,
            quarantine=by_reason,
            cuts={o: [None if c != c else c for c in stages.thresholds[o]] for o in known},
            min_meaning={o: stages.min_meaning[o] for o in known},
            quantiles={
                o: {share: quantile(bins, share) for share in QUANTILES}
                for o, bins in stages.bins.items()
            },
            histograms={},
            seconds={},
            files={},
        )


def _tenth(name: str) -> Column:
    """Returns the tenth of 0 to 1 that a column's value falls in."""
    return F.least(F.floor(F.col(name) * TENTHS), F.lit(TENTHS - 1)).cast("int").alias(f"_{name}")
