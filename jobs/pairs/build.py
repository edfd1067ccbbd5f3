"""Builds pairs, from the lock of the output to its manifest."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from math import ceil
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.accounts import escape_undecodable, written_files
from gaixie.jobs.corpus.early import SMALL_BYTES, local_bytes
from gaixie.jobs.corpus.inputs import MALFORMED_LINE, line_fault
from gaixie.jobs.corpus.parquet import CHECKED, PARQUET, write_partitioned
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.publish import held, needs_spark, now
from gaixie.jobs.corpus.session import begin_session
from gaixie.jobs.corpus.settings import Input
from gaixie.jobs.corpus.steps import Steps
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.corpus.unreadable import SPARK_ERRORS
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.fitness import judge_columns
from gaixie.jobs.pairs.making import MADE, by_reason, make_pairs
from gaixie.jobs.pairs.method import Method
from gaixie.jobs.pairs.pieces import Pieces
from gaixie.jobs.pairs.read import Rows, open_input
from gaixie.jobs.pairs.settings import BuildSettings
from gaixie.jobs.pairs.translation import share_models
from gaixie.jobs.pairs.writing import Sentences, Settling
from gaixie.udfs.storage.manifest import NAME, PairsManifest
from gaixie.udfs.storage.progress import Progress

Table = Literal["pairs", "quarantine", "clusters", "references"]
PAIRS: Table = "pairs"
QUARANTINE: Table = "quarantine"
TABLES: tuple[Table, ...] = (PAIRS, QUARANTINE, "clusters", "references")
"""What an output may hold; the last two are the method cluster's."""
WORK = "_work"


def build_pairs(
    settings: BuildSettings,
    method: Method,
    limit: int | None,
    resume: bool,
    take_over: bool,
    dry_run: bool,
) -> int:
    """Makes the pairs, publishes them, and returns the job's exit code.

    limit: rows that are read. resume: go on with what a killed building left. take_over: take its
    lock too, from another host. dry_run: say what would become of the first rows, write nothing.
    """
    output = str(settings.output).rstrip("/")
    inputs = [Input(path=path, origin=settings.origin) for path in settings.paths]
    small = local_bytes(inputs) < SMALL_BYTES
    with begin_session("gaixie build_pairs", [output, *settings.paths], small) as wait:
        kind = _job_of(settings)  # while Java starts
        if isinstance(method, Sentences):
            method.check(dry_run)
        spark = wait()
    files = Storage(spark)
    if _is_published(files, output, resume):
        return 0
    if dry_run:
        from gaixie.jobs.pairs.dry_run import dry_run as try_first_rows

        try_first_rows(kind(spark, files, settings, method, limit))
        return 0
    with held(output, take_over, files if needs_spark(output) else None) as lock:
        if _is_published(files, output, resume):
            return 0
        job = kind(spark, files, settings, method, limit)
        job.check_lock = lock.check
        job.start(resume)
        job.judge()
        job.make()
        job.write_pairs()
        job.write_quarantine()
        job.publish()
    return 0


def row_count(name: str) -> Column:
    """Returns the number of rows, under a name."""
    return F.count(F.lit(1)).alias(name)


def _job_of(settings: BuildSettings) -> type[BuildPairs]:
    if settings.method != "cluster":
        return BuildPairs
    from gaixie.jobs.pairs.cluster.build import ClusterPairs

    return ClusterPairs


def _is_published(files: Storage, output: str, resume: bool) -> bool:
    """Returns whether nothing is left to do.

    Raises JobError where pairs are published otherwise, or where something lies that no killed
    building left.
    """
    if files.exists(f"{output}/{NAME}"):
        if resume:
            print(f"{output}: its pairs are published already: nothing to do")
            return True
        raise JobError(f"{output}: something is published there; take another --output")
    for name in TABLES:
        if files.exists(f"{output}/{name}") and not files.exists(f"{output}/{WORK}/started.json"):
            raise JobError(
                f"{output}/{name}: is there, and no building of pairs left it; take another "
                "--output"
            )
    return False


class BuildPairs:
    """The steps, in the order in which build_pairs calls them."""

    carried: tuple[str, ...] = ()
    """Columns of the method's items that are judged along."""
    needs_pairs = True
    """Whether a building that makes no pair has failed."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        settings: BuildSettings,
        method: Method,
        limit: int | None,
    ):
        self.spark, self.storage, self.settings = spark, storage, settings
        self.method, self.limit = method, limit
        self.output = str(settings.output).rstrip("/")
        self.work = f"{self.output}/{WORK}"
        self.input: Rows = open_input(spark, storage, settings)
        self.check_lock: Callable[[], None] = lambda: None
        """Raises where another process has the output."""
        self.steps = Steps(storage, self.work)
        self.parameters = json.dumps(
            settings.parameters(method), sort_keys=True, ensure_ascii=False
        )
        self.figures: dict[str, Any] = {}
        """What the method says of its work, for the manifest."""
        self.started = time.monotonic()
        self.counts: dict[str, int] = {}
        """rows and items that were read, and how many of the items are fit."""

    def start(self, resume: bool) -> None:
        """Clears away what a killed process left; with resume, all but its finished steps."""
        self.check_lock()
        for name in (PAIRS, QUARANTINE):
            self.storage.delete(f"{self.output}/{name}")
        inputs = [entry.model_dump() for entry in self.input.entries]
        deciding = self.settings.deciding(self.method) | {"limit": self.limit, "inputs": inputs}
        self.steps.start(deciding, resume, self.output)

    def judge(self) -> None:
        """Reads the input once, and writes what can be in a pair apart from what cannot."""
        if counts := self.steps.done("judged"):
            self.counts = counts
            return
        if self.input.convert:
            with Progress("reading TMX"):
                self.input = replace(self.input, rows=self.input.convert(f"{self.work}/input"))
        rows, items = Observation(), Observation()
        fit = F.count_if(F.col("reason").isNull())
        judged = self.judged(self.limit, rows)
        judged = judged.observe(items, row_count("read"), fit.alias("fit"))
        try:
            self._write("judged", "reading", judged)
        except SPARK_ERRORS as error:
            self.input.blame(error)
            raise
        self.counts = {"rows": rows.get["rows"], **items.get}
        if not self.counts["read"]:
            raise JobError(f"{self.settings.paths[0]}: no rows, expected at least one")
        self.steps.finish("judged", self.counts)

    def judged(self, limit: int | None, observed: Observation) -> DataFrame:
        """Returns the items with reason and group; observed counts the rows."""
        settings, rows = self.settings, self.input.rows
        if limit is not None:
            rows = rows.limit(limit)
        items = self.method.items(rows.observe(observed, row_count("rows")))
        alone = self.method.alone
        judge = judge_columns(settings.min_characters, settings.max_characters, alone)
        items = items.withColumn("_judged", judge("source", "paraphrase", "foreign"))
        paraphrase = F.lit(None).cast("string") if alone else F.col("paraphrase")
        return items.select(
            F.coalesce(line_fault(), F.col("_judged.reason")).alias("reason"),
            "source",
            paraphrase.alias("paraphrase"),
            "foreign",
            F.col("_judged.group"),
            MALFORMED_LINE,
            *self.carried,
        )

    def make(self) -> None:
        """Makes the pairs of each group; a model's, piece by piece."""
        if isinstance(self.method, Sentences):
            pieces = self._pieces(self.method)
            if not self.steps.done("cut"):
                with progress(self.spark, "cutting pieces", None):
                    distinct = self.made_of(self._read("judged").where("fit")).drop("paraphrase")
                    pieces.cut(distinct, self.counts["fit"], self.settings.piece_sentences)
                self.steps.finish("cut", {})
            share_models(self.spark.sparkContext, self.method.models())
            self.figures = self.method.run(pieces)
        elif not self.steps.done("made"):
            self._write("made", "making pairs", self.made_of(self._read("judged").where("fit")))
            self.steps.finish("made", {})

    def made_of(self, fit: DataFrame) -> DataFrame:
        """Returns columns MADE of items that are fit."""
        return make_pairs(fit, self.method)

    def _pieces(self, method: Sentences) -> Pieces:
        settings = self.settings
        settling = Settling(
            settings.min_characters,
            settings.max_characters,
            settings.directions == "both",
            self.parameters,
        )
        arguments = self.spark, self.storage, self.work, settling, method.reads, self.check_lock
        return Pieces(*arguments)

    def _all_made(self) -> DataFrame:
        """Returns columns MADE and parameters: pairs, and what came into none."""
        if not isinstance(self.method, Sentences):
            return self._read("made").withColumn("parameters", F.lit(self.parameters))
        pieces = self._pieces(self.method)
        written = pieces.finished().where("NOT dropped").drop("dropped")
        return written.unionByName(pieces.repeated(), allowMissingColumns=True)

    def write_pairs(self) -> None:
        """Writes the pairs, with their lineage, in files of about one size."""
        settings = self.settings
        version = self.method.version() if isinstance(self.method, Sentences) else None
        lineage = {
            "method": settings.method,
            "model": settings.model or settings.translator,
            "version": settings.model_version or version,
        }
        pairs = (
            self._all_made()
            .where("reason IS NULL")
            .select(
                *("source", "paraphrase", F.lit(settings.origin).alias("origin"), "group"),
                *(F.lit(value).cast("string").alias(name) for name, value in lineage.items()),
                "parameters",
            )
        )
        self.check_lock()
        size = self._bytes("pieces" if isinstance(self.method, Sentences) else "made")
        files = max(round(size / (settings.target_file_mb * 1e6)), 1)
        with progress(self.spark, "writing pairs", None):
            spread = pairs.repartition(files, "group").write.options(**PARQUET)
            spread.mode("overwrite").parquet(f"{self.output}/{PAIRS}")

    def write_quarantine(self) -> None:
        """Writes what is in no pair, a folder for each reason."""
        columns = ["source", "paraphrase", "foreign", MALFORMED_LINE, "reason"]
        rows = self._read("judged").where("NOT fit").select(*columns)
        left = self._all_made().where("reason IS NOT NULL")
        rows = rows.unionByName(left.withColumn(MALFORMED_LINE, F.lit(None)).select(*columns))
        counts = by_reason(rows)
        if not counts:
            return
        rows = escape_undecodable(rows, columns[:-1])
        size = self.settings.target_file_mb * 1e6
        per_file = size / max(self._bytes("judged") / max(self.counts["read"], 1), 1)
        files = {(reason,): ceil(count / per_file) for reason, count in counts.items()}
        self.check_lock()
        path = f"{self.output}/{QUARANTINE}"
        write_partitioned(rows, path, ("reason",), files, F.xxhash64("source", "foreign"))

    def publish(self) -> None:
        """Counts what was written, closes the accounts, and writes the manifest."""
        pairs = self.published(PAIRS)
        quarantine: Counter[str] = Counter()
        if self.storage.exists(f"{self.output}/{QUARANTINE}"):
            quarantine = by_reason(self.published(QUARANTINE))
        dropped: Counter[str] = Counter()
        if isinstance(self.method, Sentences):
            dropped = by_reason(self._pieces(self.method).finished().where("dropped"))
        used, read = self.used(pairs), self.counts["read"]
        if read != used + quarantine.total():
            raise RuntimeError(
                f"{read} {self.method.unit} read, but {used} in pairs + {quarantine.total()} "
                "quarantined; nothing was published"
            )
        made = pairs.count()
        if not made and self.needs_pairs:
            left = ", ".join(f"{reason} {count:,}" for reason, count in sorted(quarantine.items()))
            raise JobError(
                f"{self.settings.paths[0]}: no pair was made of {read:,} {self.method.unit} "
                f"({left}); nothing was published"
            )
        manifest = PairsManifest(
            method=str(self.settings.method),
            created=now(),
            gaixie=version("gaixie"),
            spark=self.spark.version,
            settings=self.settings.model_dump(),
            limit=self.limit,
            inputs=self.input.entries,
            rows=self.counts["rows"],
            read=read,
            used=used,
            quarantine=dict(sorted(quarantine.items())),
            groups=pairs.select("group").distinct().count(),
            pairs=made,
            dropped=dict(sorted(dropped.items())),
            figures=self.figures,
            seconds=round(time.monotonic() - self.started, 1),
            files={
                name: files
                for name in TABLES
                if (files := written_files(self.spark, self.storage, self.output, name))
            },
        )
        self.check_lock()
        self.storage.write(f"{self.output}/{NAME}", manifest.to_json())
        self.storage.delete(self.work)
        self._print(manifest)

    def used(self, pairs: DataFrame) -> int:
        """Counts the items that are in a pair, as the written files have it."""
        texts = F.col("source"), F.col("paraphrase")
        if isinstance(self.method, Sentences) and self.method.reads == "source":
            return pairs.select("group").distinct().count()  # each sentence makes a group
        if self.method.alone and not isinstance(self.method, Sentences):
            items = pairs.select("group", F.explode(F.array(*texts)))
        else:
            items = pairs.select("group", F.least(*texts), F.greatest(*texts))
        return items.distinct().count()

    def _print(self, manifest: PairsManifest) -> None:
        print(f"{manifest.rows:,} rows read: {manifest.read:,} {self.method.unit}")
        print(f"  {manifest.used:>12,} in pairs")
        for reason, count in manifest.quarantine.items():
            print(f"  {count:>12,} in quarantine: {reason}")
        for reason, count in manifest.dropped.items():
            print(f"  {count:>12,} further candidates left out: {reason}")
        print(f"{manifest.pairs:,} pairs in {manifest.groups:,} groups ({manifest.seconds:.0f} s)")
        print(f"pairs: {self.output}/{PAIRS}")
        print(f"manifest: {self.output}/{NAME}")

    def _write(self, name: str, title: str, table: DataFrame) -> None:
        """Writes a table of _work, those that are fit (without a reason) apart."""
        table = table.withColumn("fit", F.col("reason").isNull())
        self.check_lock()
        with progress(self.spark, title, None):
            writer = table.write.options(**PARQUET).partitionBy("fit").mode("overwrite")
            writer.parquet(f"{self.work}/{name}")

    def _read(self, name: str) -> DataFrame:
        """Reads a table of _work, with fit as a boolean: one of its sides may be empty."""
        schema = f"{MADE}, {MALFORMED_LINE} string, fit boolean"
        return self.read(f"{self.work}/{name}", schema)

    def read(self, path: str, schema: str | StructType | None = None) -> DataFrame:
        """Reads Parquet files."""
        reader = self.spark.read.options(**CHECKED)
        return (reader.schema(schema) if schema else reader).parquet(path)

    def published(self, name: Table) -> DataFrame:
        """Reads a table of the output."""
        return self.read(f"{self.output}/{name}")

    def _bytes(self, name: str) -> int:
        path = f"{self.work}/{name}"
        files = self.storage.list_files(path) if self.storage.exists(path) else []
        return sum(file.size for file in files)
