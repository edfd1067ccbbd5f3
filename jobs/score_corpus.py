"""Scores a corpus of sentence pairs with SPScore-zh and sorts it into the stages of the curriculum.

  spark-submit jobs/score_corpus.py --input pairs/ --origin parallel --output s3a://bucket/gaixie
  spark-submit jobs/score_corpus.py --config my.yaml --run-id monday --resume
  python jobs/score_corpus.py --input sample.csv --origin llm --output out --dry-run
  python jobs/score_corpus.py --input pairs/ --origin llm --output out --tier paper

Reads Parquet, JSON lines, CSV or TSV, and writes one run:

  OUTPUT/runs/RUN_ID/scored/origin=…/stage=…/*.parquet    pairs with features, judgements, score
  OUTPUT/runs/RUN_ID/quarantine/reason=…/*.parquet        pairs that cannot be scored, and why
  OUTPUT/runs/RUN_ID/report.html, report.png              what came out, to look at
  OUTPUT/runs/RUN_ID/manifest.json                        counts, settings; written last

A run without a manifest does not exist for readers. Killed at any moment, the job run again with
the same --run-id starts over, or with --resume goes on behind the last finished unit of input;
--clean deletes what runs that never came back left behind.
Exit codes: 0 done, 2 something to mend (one line says what), 1 anything else.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from importlib.metadata import version
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructType

from jobs.errors import JobError, run
from jobs.scoring.chunks import Units, divide, scored_rows
from jobs.scoring.clean import clean_runs
from jobs.scoring.inputs import (
    MALFORMED_LINE,
    InputFiles,
    inspect_inputs,
    read_files,
)
from jobs.scoring.report import Summary, print_summary, write_report
from jobs.scoring.settings import CONFIG, Input, ScoreSettings, load_settings
from jobs.scoring.tables import (
    Sample,
    close_accounts,
    sample_scored,
    write_partitioned,
    written_counts,
)
from jobs.spark.progress import progress
from jobs.spark.session import start_session
from jobs.spark.storage import Storage
from udfs.features import FEATURES
from udfs.io.on_disk import on_disk
from udfs.spark import score_columns
from udfs.spscore import JUDGEMENTS, OUTPUTS, TIERS, SPScore
from udfs.stages import ORIGINS, SCORE_BINS, STAGES, quantile
from udfs.text.segmenters import load_segmenter

SCORED_COLUMNS = ("pair_id", "source", "paraphrase", *FEATURES, *OUTPUTS)
"""Columns of scored files, before the input's own; origin and stage stand in the folder names."""

SETTINGS = set(ScoreSettings.model_fields) - {"inputs", "cuts", "read_from"}
"""Settings that have an option of their own."""

ROWS_A_PARTITION = 250_000
"""Rows that a task looks through for duplicates."""

INTERRUPTED = "the run can be resumed with --resume"

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    overrides = {name: value for name, value in vars(args).items() if name in SETTINGS}
    if args.input:
        overrides["inputs"] = [_input_from(args)]
    settings = load_settings(args.config, overrides, args.set)
    if not settings.output:
        raise JobError("nowhere to write: give --output, or output in the config file")
    if args.clean:
        clean_runs(settings.output, settings.run_id, args.older_than)
        return 0
    if not settings.inputs:
        raise JobError("nothing to read: give --input, or inputs in the config file")
    scorer = _load_scorer(settings)

    spark = start_session(
        "gaixie score_corpus", [settings.output, *(one.path for one in settings.inputs)]
    )
    storage = Storage(spark)
    run_id = settings.run_id or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = f"{settings.output.rstrip('/')}/runs/{run_id}"
    if storage.exists(f"{folder}/manifest.json"):
        if not args.resume:
            raise JobError(f"{folder}: run '{run_id}' is published; take another --run-id")
        print(f"run '{run_id}' is already published: nothing to do ({folder})")
        return 0

    inputs = inspect_inputs(spark, storage, settings.inputs, settings.on_corrupt_file)
    job = ScoreCorpus(spark, storage, settings, scorer, inputs, run_id, folder, args.limit)
    if args.dry_run:
        job.dry_run()
        return 0
    job.start(resume=args.resume)
    job.score_units()
    stages = job.find_stages()
    job.write_scored(stages)
    job.write_quarantine()
    job.publish(stages)
    return 0


@dataclass(frozen=True)
class Scorer:
    """What decides a score: the model, the segmenter, and both in one line."""

    model: SPScore
    segmenter: str
    signature: str


def _load_scorer(settings: ScoreSettings) -> Scorer:
    try:
        with on_disk(None, settings.model) as (_, folder):
            model = SPScore.load(folder or settings.tier)
        if settings.tier not in (None, model.tier):
            raise ValueError(
                f"{settings.model}: a model of the tier {model.tier}, not {settings.tier}; "
                "leave out one of model and tier"
            )
        if model.tier == "full":
            model.read_from = settings.read_from
        signature = model.signature(load_segmenter(settings.segmenter))
    except (ValueError, OSError, ImportError) as error:
        raise JobError(str(error)) from error
    return Scorer(model, settings.segmenter, signature)


@dataclass(frozen=True)
class Stages:
    """What is known of the scored pairs before they are written."""

    cuts: dict[str, list[float]]
    bins: dict[str, Counter[int]]
    """Distinct pairs of each origin by score bin."""
    duplicates: dict[str, int]

    def counts(self) -> dict[tuple[str, int], int]:
        """Distinct pairs by origin and stage."""
        counts: Counter[tuple[str, int]] = Counter()
        for origin, bins in self.bins.items():
            for index, pairs in bins.items():
                reached = sum(_bin_of_cut(cut) <= index for cut in self.cuts[origin])
                counts[origin, reached] += pairs
        return dict(sorted(counts.items()))


def _bin_of_cut(cut: float) -> float:
    return cut * SCORE_BINS if cut == cut else float("inf")


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
    ):
        self.spark, self.storage = spark, storage
        self.settings, self.scorer, self.inputs = settings, scorer, inputs
        self.run_id, self.folder, self.limit = run_id, folder, limit
        self.score = score_columns(
            scorer.model, scorer.segmenter, settings.min_characters, settings.max_characters
        )
        self.units = Units(
            spark, storage, settings, self.score, scorer.signature, f"{folder}/_work"
        )
        self.schemas: dict[str, StructType] = {}
        """Of the tables that were written."""
        self.seconds: dict[str, float] = {}

    def dry_run(self, sample: int = 5_000) -> None:
        """Says what a run would do, from the first rows of each input; writes nothing."""
        for one in self.inputs:
            rows = sum(one.rows.values()) if one.format == "parquet" else None
            size = sum(file.size for file in one.files) / 1e6
            known = f"{rows:,} rows, " if rows is not None else ""
            print(
                f"{one.settings.path}: {len(one.files)} {one.format} files, {known}{size:,.1f} MB"
            )
            extra = ", ".join(column.name for column in one.extra_columns) or "none"
            print(f"  carried through: {extra}")
        for one in self.inputs:
            rows = read_files(self.spark, one, one.files).limit(sample)
            table = scored_rows(rows, self.score).toPandas()
            fit = table[table["reason"].isna()]
            print(f"{one.settings.path}: of the first {len(table):,} rows, {len(fit):,} are fit")
            for reason, count in table["reason"].value_counts().items():
                print(f"  quarantine {reason}: {count:,}")
            for origin, pairs in fit.groupby("origin"):
                points = pairs["spscore"].quantile([0.05, 0.25, 0.5, 0.75, 0.95]).round(3)
                cuts = self.settings.cuts[origin]
                print(f"  {origin}: score at 5/25/50/75/95 %: {points.tolist()}; cuts: {cuts}")
                means = [f"{name} {pairs[name].mean():.2f}" for name in JUDGEMENTS]
                print(f"  {origin}: mean {', '.join(means)}")
        print(f"signature: {self.scorer.signature}")
        print(f"would write {self.folder}; dry run: nothing was written")

    def start(self, resume: bool) -> None:
        """Clears away what a killed run left; with resume, all but its finished units."""
        if resume:
            for name in ("scored", "quarantine"):
                self.storage.delete(f"{self.folder}/{name}")
        elif self.storage.exists(self.folder):
            self.storage.delete(self.folder)
        # A folder that may not be written shows itself now, not after the first unit.
        note = {"host": platform.node(), "started": datetime.now(UTC).isoformat(timespec="seconds")}
        self.storage.write_json(f"{self.folder}/_work/started.json", note)

    def score_units(self) -> None:
        """Scores the input unit by unit into _work/."""
        started = time.monotonic()
        self.units.score(divide(self.inputs, self.settings.unit_mb), self.limit)
        self.seconds["score"] = time.monotonic() - started
        if not self.units.read.total():
            self.storage.delete(self.folder)
            raise JobError(f"{self.settings.inputs[0].path}: no rows, expected at least one")

    def scored_pairs(self) -> DataFrame:
        """The pairs that are fit, scored: what stages, duplicates and output are made from.

        Columns of jobs.scoring.chunks.scored_rows, and row_key. A scorer that is too slow for all of
        the input would look at them once more here.
        """
        return self.units.rows(fit=True)

    def find_stages(self) -> Stages:
        """Counts the distinct pairs by origin and score, and settles the cut points."""
        started = time.monotonic()
        rows, cores = self.units.read.total(), self.spark.sparkContext.defaultParallelism
        if not self.spark.sparkContext.getConf().contains("spark.sql.shuffle.partitions"):
            partitions = max(2 * cores, rows // ROWS_A_PARTITION)
            self.spark.conf.set("spark.sql.shuffle.partitions", partitions)
        scores = self.scored_pairs()
        distinct = scores.groupBy("pair_id").agg(
            F.first("origin").alias("origin"),
            F.first("spscore").alias("spscore"),
            F.count(F.lit(1)).alias("rows"),
        )
        score_bin = F.floor(F.col("spscore").cast("double") * SCORE_BINS + 0.5).cast("int")
        table = distinct.groupBy("origin", score_bin.alias("bin")).agg(
            F.count(F.lit(1)).alias("pairs"), F.sum("rows").alias("rows")
        )
        bins: dict[str, Counter[int]] = defaultdict(Counter)
        duplicates: Counter[str] = Counter()
        with progress(self.spark, "finding duplicates and stages", self.units.read.total()):
            for row in table.collect():
                bins[row.origin][row.bin] += row.pairs
                duplicates[row.origin] += row.rows - row.pairs
        cuts = {}
        for origin, points in self.settings.cuts.items():
            cuts[origin] = list(points.scores or ())
            if points.quantiles:
                cuts[origin] = [quantile(bins.get(origin, {}), q) for q in points.quantiles]
        self.seconds["stages"] = time.monotonic() - started
        return Stages(cuts, dict(bins), dict(duplicates))

    def write_scored(self, stages: Stages) -> None:
        """Writes the distinct pairs, a folder for each origin and stage."""
        started = time.monotonic()
        pairs = self.scored_pairs()
        if removed := sum(stages.duplicates.values()):
            pairs = pairs.join(self._duplicate_rows(pairs, removed), "row_key", "left_anti")
        pairs = pairs.withColumn("stage", _stage_column(stages.cuts))
        columns = [*SCORED_COLUMNS, *self._extra_columns(), "origin", "stage"]
        counts = stages.counts()
        if not counts:
            return
        with progress(self.spark, "writing scored pairs", sum(counts.values())):
            self._write(pairs.select(*columns), "scored", ("origin", "stage"), counts, "pair_id")
        self.seconds["write"] = time.monotonic() - started

    def _duplicate_rows(self, pairs: DataFrame, removed: int) -> DataFrame:
        """row_key of every row of a pair but one: the one whose other columns hash lowest."""
        parts = []
        for one in {c.name: c for i in self.inputs for c in i.extra_columns}.values():
            column = F.col(f"`{one.name}`")
            if isinstance(one.dataType, ArrayType | MapType | StructType):
                column = F.to_json(column)  # a map cannot be hashed
            parts += [column.isNull(), column]  # a hash passes over nulls
        tie = F.xxhash64(*parts) if parts else F.lit(0)
        ranked = pairs.select("pair_id", "row_key", tie.alias("tie"))
        rank = F.expr("row_number() OVER (PARTITION BY pair_id ORDER BY tie, row_key)")
        rows = ranked.withColumn("rank", rank).where("rank > 1").select("row_key")
        return F.broadcast(rows) if removed <= 2_000_000 else rows

    def write_quarantine(self) -> None:
        """Writes the rows that cannot be scored, a folder for each reason."""
        started = time.monotonic()
        rows = self.units.rows(fit=False)
        counts = {(row.reason,): row["count"] for row in rows.groupBy("reason").count().collect()}
        if not counts:
            return
        columns = [
            "source",
            "paraphrase",
            *self._extra_columns(),
            MALFORMED_LINE,
            "origin",
            "reason",
        ]
        if ("undecodable",) in counts:  # these alone take the way through Python
            undecodable = rows.where(F.col("reason") == "undecodable")
            for name in ("source", "paraphrase", MALFORMED_LINE):
                undecodable = undecodable.withColumn(
                    name, _escape_bytes(F.col(name).cast("binary"))
                )
            rows = rows.where(F.col("reason") != "undecodable").unionByName(undecodable)
        self._write(rows.select(*columns), "quarantine", ("reason",), counts, "source")
        self.seconds["quarantine"] = time.monotonic() - started

    def _write(
        self,
        rows: DataFrame,
        name: str,
        keys: tuple[str, ...],
        counts: dict[tuple[Any, ...], int],
        spread_by: str,
    ) -> None:
        rows_a_file = int(self.settings.target_file_mb * 1e6 / self.units.bytes_a_row())
        write_partitioned(
            rows, f"{self.folder}/{name}", keys, counts, max(rows_a_file, 1), spread_by
        )
        self.schemas[name] = rows.schema

    def publish(self, stages: Stages) -> None:
        """Counts what was written, closes the accounts, and writes report and manifest."""
        started = time.monotonic()
        read = self.units.read
        scored = self._written("scored", ("origin", "stage"))
        quarantined = self._written("quarantine", ("origin", "reason"))
        close_accounts(read, scored, quarantined, stages.duplicates)
        sample = Sample()
        if scored:
            path = f"{self.folder}/scored"
            sample = sample_scored(self.spark, self.storage, path, self.schemas["scored"], scored)
            segmenter = load_segmenter(self.scorer.segmenter)
            for pair in sample.examples:
                texts = pair["source"], pair["paraphrase"]
                pair["reasons"] = self.scorer.model.explain(*texts, segmenter)
        self.seconds["report"] = time.monotonic() - started
        summary = Summary(
            run_id=self.run_id,
            folder=self.folder,
            signature=self.scorer.signature,
            read=dict(read),
            scored={o: {s: scored.get((o, s), 0) for s in STAGES} for o in read},
            quarantined={
                o: {reason: n for (origin, reason), n in quarantined.items() if origin == o}
                for o in read
            },
            duplicates={o: stages.duplicates.get(o, 0) for o in read},
            bins={o: dict(bins) for o, bins in stages.bins.items()},
            cuts={o: stages.cuts[o] for o in read if o in stages.cuts},
            quantiles={
                o: {share: quantile(bins, share) for share in QUANTILES}
                for o, bins in stages.bins.items()
            },
            sample=sample,
            seconds=dict(self.seconds),
            pairs_per_s=read.total() / sum(self.seconds.values()),
        )
        write_report(summary, self.storage, self.folder)
        self.storage.delete(f"{self.folder}/_work")
        self.storage.write_json(f"{self.folder}/manifest.json", self._manifest(summary))
        print_summary(summary)

    def _written(self, name: str, keys: tuple[str, str]) -> Counter[tuple[Any, ...]]:
        if name not in self.schemas:
            return Counter()
        return written_counts(self.spark, f"{self.folder}/{name}", self.schemas[name], keys)

    def _extra_columns(self) -> list[str]:
        return list(dict.fromkeys(c.name for one in self.inputs for c in one.extra_columns))

    def _manifest(self, summary: Summary) -> dict[str, Any]:
        files = {
            name: [
                {
                    "path": file.path.rpartition(f"/runs/{self.run_id}/")[2],
                    "bytes": file.size,
                }
                for file in self.storage.list(f"{self.folder}/{name}")
            ]
            for name in ("scored", "quarantine")
            if self.storage.exists(f"{self.folder}/{name}")
        }
        quantiles = {o: {str(k): v for k, v in q.items()} for o, q in summary.quantiles.items()}
        return {
            "run_id": self.run_id,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "gaixie": version("gaixie"),
            "spark": self.spark.version,
            "signature": self.scorer.signature,
            "settings": self.settings.model_dump(),
            "limit": self.limit,
            "inputs": [
                {
                    "path": one.settings.path,
                    "format": one.format,
                    "files": len(one.files),
                    "bytes": sum(file.size for file in one.files),
                    "corrupt_files": one.corrupt,
                }
                for one in self.inputs
            ],
            "rows": {
                origin: {
                    "read": summary.read[origin],
                    "scored": sum(summary.scored[origin].values()),
                    "quarantined": sum(summary.quarantined[origin].values()),
                    "duplicates": summary.duplicates[origin],
                }
                for origin in summary.read
            },
            "stages": summary.scored,
            "quarantine": summary.quarantined,
            "cuts": {o: [None if c != c else c for c in cuts] for o, cuts in summary.cuts.items()},
            "quantiles": quantiles,
            "seconds": {step: round(value, 3) for step, value in summary.seconds.items()},
            "files": files,
        }


def _stage_column(cuts: dict[str, list[float]]) -> Column:
    """udfs.stages.stage as a column of spscore and origin."""
    stage = F.lit(0)
    for origin, points in cuts.items():
        reached = [(F.col("spscore") >= F.lit(cut).cast("float")).cast("int") for cut in points]
        stage = F.when(F.col("origin") == origin, reduce(Column.__add__, reached)).otherwise(stage)
    return stage


@F.udf(StringType(), useArrow=False)
def _escape_bytes(data):
    """Text whose undecodable bytes read \\xNN: nothing of the row is lost."""
    return None if data is None else bytes(data).decode("utf-8", "backslashreplace")


def _input_from(args: argparse.Namespace) -> Input:
    if bool(args.origin) == bool(args.origin_column):
        raise JobError(f"--input {args.input}: give --origin or --origin-column")
    if args.origin and args.origin not in ORIGINS:
        raise JobError(f"--origin {args.origin}: unknown, expected one of {', '.join(ORIGINS)}")
    return Input(
        path=args.input,
        origin=args.origin,
        origin_column=args.origin_column,
        format=args.format,
        source_column=args.source_column,
        paraphrase_column=args.paraphrase_column,
    )


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="score_corpus.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    read = parser.add_argument_group("what to read (several inputs: in the config file)")
    read.add_argument("--input", metavar="PATH", help="file, folder or glob; replaces the config's")
    read.add_argument("--origin", help=" | ".join(ORIGINS))
    read.add_argument("--origin-column", metavar="NAME", help="column that holds each row's origin")
    read.add_argument("--format", choices=["parquet", "jsonl", "csv", "tsv"], help="by its name")
    read.add_argument("--source-column", metavar="NAME", default="source")
    read.add_argument("--paraphrase-column", metavar="NAME", default="paraphrase")
    read.add_argument("--limit", metavar="N", type=int, help="only the first N rows")
    write = parser.add_argument_group("what to write")
    write.add_argument("--output", metavar="ROOT", help="root of the tables: a folder or a URI")
    write.add_argument("--run-id", metavar="ID", help="by default the time of the start, in UTC")
    write.add_argument("--resume", action="store_true", help="go on with a run that was killed")
    write.add_argument(
        "--clean",
        action="store_true",
        help="delete what killed runs left, no other work; with --run-id, of that run",
    )
    write.add_argument(
        "--older-than", metavar="HOURS", type=float, default=24, help="for --clean; default 24"
    )
    write.add_argument("--dry-run", action="store_true", help="check and score a sample, no output")
    write.add_argument("--target-file-mb", metavar="MB", type=float, help="size of output files")
    how = parser.add_argument_group("how to score")
    how.add_argument("--min-characters", metavar="N", type=int, help="shorter: to quarantine")
    how.add_argument("--max-characters", metavar="N", type=int, help="longer: to quarantine")
    how.add_argument("--tier", choices=TIERS, help="what SPScore-zh sees; by default core")
    how.add_argument("--model", metavar="PATH", help="folder of a fitted SPScore-zh")
    how.add_argument("--segmenter", metavar="SPEC", help="jieba | ltp:NAME_OR_FOLDER")
    how.add_argument("--on-corrupt-file", choices=["stop", "quarantine"])
    how.add_argument("--unit-mb", metavar="MB", type=float, help="input between two resume points")
    how.add_argument(
        "--config", metavar="YAML", default=str(CONFIG), help="by default conf/score.yaml"
    )
    how.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="any setting of the config"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("score_corpus", main, INTERRUPTED))
