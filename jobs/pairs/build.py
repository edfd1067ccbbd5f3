"""One building of pairs, from its lock to its manifest."""

from __future__ import annotations

import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from math import ceil
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.judge import judge_columns
from gaixie.jobs.pairs.method import Method
from gaixie.jobs.pairs.parallel import Parallel
from gaixie.jobs.pairs.read import Rows, open_input
from gaixie.jobs.pairs.settings import BuildSettings
from gaixie.jobs.pairs.versions import Versions
from gaixie.jobs.scoring.accounts import escape_undecodable, written_files
from gaixie.jobs.scoring.early import local_bytes
from gaixie.jobs.scoring.inputs import MALFORMED_LINE, line_fault
from gaixie.jobs.scoring.run import SMALL_BYTES
from gaixie.jobs.scoring.run_lock import held, needs_spark
from gaixie.jobs.scoring.settings import Input
from gaixie.jobs.scoring.unreadable import SPARK_ERRORS
from gaixie.jobs.spark.parquet import CHECKED, PARQUET, write_partitioned
from gaixie.jobs.spark.progress import progress
from gaixie.jobs.spark.session import begin_session
from gaixie.jobs.spark.storage import Storage
from gaixie.udfs.io.manifest import NAME, PairsManifest

Table = Literal["pairs", "quarantine"]
PAIRS: Table = "pairs"
QUARANTINE: Table = "quarantine"
WORK = "_work"

SAMPLE = 10_000
"""Rows that a dry run looks at."""

BATCH = 10_000
"""Pairs that go back to Spark at once."""

MADE = "reason string, source string, paraphrase string, foreign string, group string"


def build_pairs(settings: BuildSettings, limit: int | None, take_over: bool, dry_run: bool) -> int:
    """Makes the pairs and publishes them; the job's exit code.

    limit: rows that are read. take_over: the lock too, from another host. dry_run: say what would become
    of the first rows, and write nothing.
    """
    assert settings.output is not None
    output = settings.output.rstrip("/")
    inputs = [Input(path=path, origin=settings.origin) for path in settings.paths]
    small = local_bytes(inputs) < SMALL_BYTES
    with begin_session("gaixie build_pairs", [output, *settings.paths], small) as wait:
        spark = wait()
    files = Storage(spark)
    check_unpublished(files.exists, output)
    if dry_run:
        BuildPairs(spark, files, settings, output, limit).dry_run()
        return 0
    with held(output, take_over, files if needs_spark(output) else None) as lock:
        check_unpublished(files.exists, output)
        lock.on_lost = spark.sparkContext.cancelAllJobs
        job = BuildPairs(spark, files, settings, output, limit)
        job.check_lock = lock.check
        job.start()
        job.judge()
        job.make()
        job.write_pairs()
        job.write_quarantine()
        job.publish()
    return 0


def check_unpublished(exists: Callable[[str], bool], output: str) -> None:
    """Raises JobError where pairs are published, or lie that this job did not leave unfinished."""
    if exists(f"{output}/{NAME}"):
        raise JobError(f"{output}: something is published there; take another --output")
    for name in (PAIRS, QUARANTINE):
        if exists(f"{output}/{name}") and not exists(f"{output}/{WORK}/started.json"):
            raise JobError(
                f"{output}/{name}: is there, and no building of pairs left it; take another --output"
            )


class BuildPairs:
    """The steps, in the order in which build_pairs calls them."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        settings: BuildSettings,
        output: str,
        limit: int | None,
    ):
        self.spark, self.storage, self.settings = spark, storage, settings
        self.output, self.limit = output, limit
        self.input: Rows = open_input(spark, storage, settings)
        self.method = _method(settings, self.input.json_lists)
        self.check_lock: Callable[[], None] = lambda: None
        """Raises where another process has the output."""
        self.started = time.monotonic()
        self.rows = self.read = 0

    def start(self) -> None:
        """Clears away what a killed process left."""
        self.check_lock()
        for name in (PAIRS, QUARANTINE, f"{WORK}/judged", f"{WORK}/made"):
            self.storage.delete(f"{self.output}/{name}")
        note = {"host": platform.node(), "started": datetime.now(UTC).isoformat(timespec="seconds")}
        self.storage.write_json(f"{self.output}/{WORK}/started.json", note)

    def judge(self) -> None:
        """Reads the input once, and writes what can be in a pair apart from what cannot."""
        rows, items = Observation(), Observation()
        judged = self._judged(self.limit, rows).observe(items, F.count(F.lit(1)).alias("count"))
        try:
            with progress(self.spark, "reading", None):
                self._write(judged.withColumn("fit", F.col("reason").isNull()), "judged", "fit")
        except SPARK_ERRORS as error:
            self.input.blame(error)
            raise
        self.rows, self.read = rows.get["count"], items.get["count"]
        if not self.read:
            raise JobError(f"{self.settings.paths[0]}: no rows, expected at least one")

    def _judged(self, limit: int | None, observed: Observation | None) -> DataFrame:
        """Items with reason and group."""
        settings, rows = self.settings, self.input.rows
        if limit is not None:
            rows = rows.limit(limit)
        if observed is not None:
            rows = rows.observe(observed, F.count(F.lit(1)).alias("count"))
        alone = self.method.alone
        judge = judge_columns(settings.min_characters, settings.max_characters, alone)
        items = self.method.items(rows)
        items = items.withColumn("_judged", judge("source", "paraphrase", "foreign"))
        paraphrase = F.lit(None).cast("string") if alone else F.col("paraphrase")
        return items.select(
            F.coalesce(line_fault(), F.col("_judged.reason")).alias("reason"),
            "source",
            paraphrase.alias("paraphrase"),
            "foreign",
            F.col("_judged.group"),
            MALFORMED_LINE,
        )

    def make(self) -> None:
        """Makes the pairs of each group."""
        fit = self._read("judged").where("fit")
        with progress(self.spark, "making pairs", None):
            made = _made(fit, self.method).withColumn("fit", F.col("reason").isNull())
            self._write(made, "made", "fit")

    def write_pairs(self) -> None:
        pairs = self._read("made").where("fit")
        lineage = {
            "origin": self.settings.origin,
            "group": None,
            "method": self.settings.method,
            "model": self.settings.model,
            "version": self.settings.model_version,
            "parameters": json.dumps(self.settings.parameters(), sort_keys=True),
        }
        columns: dict[str, Column] = {
            name: F.lit(value).cast("string").alias(name) for name, value in lineage.items()
        } | {"group": F.col("group")}
        pairs = pairs.select("source", "paraphrase", *columns.values())
        self.check_lock()
        size = sum(file.size for file in self.storage.list_files(f"{self.output}/{WORK}/made"))
        files = max(round(size / (self.settings.target_file_mb * 1e6)), 1)
        spread = pairs.repartition(files, "group")
        with progress(self.spark, "writing pairs", None):
            spread.write.options(**PARQUET).mode("overwrite").parquet(f"{self.output}/{PAIRS}")

    def write_quarantine(self) -> None:
        """Writes what is in no pair, a folder for each reason."""
        columns = ["source", "paraphrase", "foreign", MALFORMED_LINE, "reason"]
        rows = self._read("judged").where("NOT fit").select(*columns)
        left = self._read("made").where("NOT fit")
        left = left.withColumn(MALFORMED_LINE, F.lit(None).cast("string")).select(*columns)
        rows = rows.unionByName(left)
        counts = _by_reason(rows)
        if not counts:
            return
        rows = escape_undecodable(rows, columns[:-1])
        size = self.settings.target_file_mb * 1e6
        per_file = size / max(self._bytes("judged") / max(self.read, 1), 1)
        files = {(reason,): ceil(count / per_file) for reason, count in counts.items()}
        self.check_lock()
        path = f"{self.output}/{QUARANTINE}"
        write_partitioned(rows, path, ("reason",), files, F.xxhash64("source", "foreign"))

    def publish(self) -> None:
        """Counts what was written, closes the accounts, and writes the manifest."""
        pairs = self.spark.read.options(**CHECKED).parquet(f"{self.output}/{PAIRS}")
        quarantine = self._quarantined()
        used = self._used(pairs)
        left = quarantine.total()
        if self.read != used + left:
            raise RuntimeError(
                f"{self.read} {self.method.unit} read, but {used} in pairs + {left} quarantined; "
                "nothing was published"
            )
        manifest = PairsManifest(
            method=str(self.settings.method),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            gaixie=version("gaixie"),
            spark=self.spark.version,
            settings=self.settings.model_dump(),
            limit=self.limit,
            inputs=self.input.entries,
            rows=self.rows,
            read=self.read,
            used=used,
            quarantine=dict(sorted(quarantine.items())),
            groups=pairs.select("group").distinct().count(),
            pairs=pairs.count(),
            seconds=round(time.monotonic() - self.started, 1),
            files={
                name: files
                for name in (PAIRS, QUARANTINE)
                if (files := written_files(self.spark, self.storage, self.output, name))
            },
        )
        self.check_lock()
        self.storage.write(f"{self.output}/{NAME}", manifest.to_json())
        self.storage.delete(f"{self.output}/{WORK}")
        self._print(manifest)

    def _used(self, pairs: DataFrame) -> int:
        """Items that are in a pair, as the written files have it."""
        texts = F.col("source"), F.col("paraphrase")
        if self.method.alone:
            items = pairs.select("group", F.explode(F.array(*texts)))
        else:
            items = pairs.select("group", F.least(*texts), F.greatest(*texts))
        return items.distinct().count()

    def _quarantined(self) -> Counter[str]:
        path = f"{self.output}/{QUARANTINE}"
        if not self.storage.exists(path):
            return Counter()
        return _by_reason(self.spark.read.options(**CHECKED).parquet(path))

    def _print(self, manifest: PairsManifest) -> None:
        unit = self.method.unit
        print(f"{manifest.rows:,} rows read: {manifest.read:,} {unit}")
        print(f"  {manifest.used:>12,} in pairs")
        for reason, count in manifest.quarantine.items():
            print(f"  {count:>12,} in quarantine: {reason}")
        print(f"{manifest.pairs:,} pairs in {manifest.groups:,} groups ({manifest.seconds:.0f} s)")
        print(f"pairs: {self.output}/{PAIRS}")
        print(f"manifest: {self.output}/{NAME}")

    def dry_run(self) -> None:
        """Says what would become of the first rows."""
        rows = Observation()
        judged = self._judged(min(self.limit or SAMPLE, SAMPLE), rows).cache()
        try:
            counts = _by_reason(judged.where("reason IS NOT NULL"))
            made = _made(judged.where("reason IS NULL"), self.method).cache()
            counts += _by_reason(made.where("reason IS NOT NULL"))
            pairs = made.where("reason IS NULL").count()
        except SPARK_ERRORS as error:
            self.input.blame(error)
            raise
        items = judged.count()
        print(
            f"the first {rows.get['count']:,} rows: {items:,} {self.method.unit}, {pairs:,} pairs"
        )
        for reason, count in sorted(counts.items()):
            print(f"  {count:>12,} in quarantine: {reason}")
        print("nothing written")
        judged.unpersist()
        made.unpersist()

    def _write(self, table: DataFrame, name: str, key: str) -> None:
        self.check_lock()
        writer = table.write.options(**PARQUET).partitionBy(key).mode("overwrite")
        writer.parquet(f"{self.output}/{WORK}/{name}")

    def _read(self, name: str) -> DataFrame:
        """A table of _work, with fit as a boolean: one of its sides may be empty."""
        schema = MADE + (f", {MALFORMED_LINE} string" if name == "judged" else "") + ", fit boolean"
        path = f"{self.output}/{WORK}/{name}"
        return self.spark.read.options(**CHECKED).schema(schema).parquet(path)

    def _bytes(self, name: str) -> int:
        path = f"{self.output}/{WORK}/{name}"
        return sum(file.size for file in self.storage.list_files(path))


def _method(settings: BuildSettings, json_lists: bool) -> Method:
    both = settings.directions == "both"
    if settings.method == "versions":
        return Versions(both, settings.max_pairs, settings.seed, json_lists)
    return Parallel(both)


def _by_reason(rows: DataFrame) -> Counter[str]:
    return Counter({row.reason: row["count"] for row in rows.groupBy("reason").count().collect()})


def _made(fit: DataFrame, method: Method) -> DataFrame:
    """Columns MADE: what the method makes of each group of items that are fit."""
    members = F.collect_list(F.struct("source", "paraphrase")).alias("members")
    groups = fit.groupBy("group").agg(F.min("foreign").alias("foreign"), members)

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = []
        for batch in batches:
            for group in batch.to_pylist():
                texts = [(text["source"], text["paraphrase"]) for text in group["members"]]
                for reason, source, paraphrase in method.make(texts):
                    made.append((reason, source, paraphrase, group["foreign"], group["group"]))
                    if len(made) == BATCH:
                        yield _batch(made)
                        made = []
        yield _batch(made)

    return groups.mapInArrow(make, MADE)


def _batch(made: Sequence[tuple[str | None, ...]]) -> pa.RecordBatch:
    columns = zip(*made, strict=True) if made else [()] * 5
    names = ["reason", "source", "paraphrase", "foreign", "group"]
    return pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], names)
