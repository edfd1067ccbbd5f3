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
from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.corpus.early import SMALL_BYTES, local_bytes
from gaixie.jobs.corpus.inputs import MALFORMED_LINE, line_fault
from gaixie.jobs.corpus.parquet import CHECKED, PARQUET, write_partitioned
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.publish import held, needs_spark, now
from gaixie.jobs.corpus.session import begin_session
from gaixie.jobs.corpus.settings import Input
from gaixie.jobs.corpus.steps import Steps
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.making import MADE, by_reason, judge_columns, make_pairs
from gaixie.jobs.pairs.method import Method
from gaixie.jobs.pairs.read import Rows, open_input
from gaixie.jobs.pairs.settings import BuildSettings
from gaixie.udfs.storage.manifest import NAME, PairsManifest
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.storage import File

Table = Literal["pairs", "quarantine", "clusters", "references"]
PAIRS: Table = "pairs"
QUARANTINE: Table = "quarantine"
TABLES: tuple[Table, ...] = (PAIRS, QUARANTINE, "clusters", "references")
"""Tables that an output may hold; only the method cluster has the last two."""
WORK = "_work"

SAMPLE = 10_000
"""Rows that a dry run reads."""
TRIED = 64
"""Maximum sentences on which a dry run tries a model."""
EXAMPLES = 3
"""Pairs that a dry run shows."""


def build_pairs(
    settings: BuildSettings,
    method: Method,
    limit: int | None,
    resume: bool,
    take_over: bool,
    dry_run: bool,
) -> int:
    """Makes the pairs, publishes them, and returns the job's exit code.

    limit: maximum rows to read. resume: continue what a killed process left. take_over: take the
    lock of a process on another host. dry_run: say what would become of the first rows; write
    nothing.
    """
    output = settings.folder
    inputs = [Input(path=path, origin=settings.origin) for path in settings.paths]
    small = local_bytes(inputs) < SMALL_BYTES
    with begin_session("gaixie build_pairs", [output, *settings.paths], small) as wait:
        builder = method.builder()  # while Java starts
        method.check(dry_run)
        spark = wait()
    files = Storage(spark)
    if _is_published(files, output, resume):
        return 0
    if dry_run:
        builder(spark, files, settings, method, limit).try_first_rows()
        return 0
    with held(output, take_over, files if needs_spark(output) else None) as lock:
        if not _is_published(files, output, resume):
            job = builder(spark, files, settings, method, limit)
            job.check_lock = lock.check
            job.start(resume)
            job.judge()
            job.make()
            job.write_pairs()
            job.write_quarantine()
            job.publish()
    return 0


def row_count(name: str) -> Column:
    """Returns a column that counts the rows, under a name."""
    return F.count(F.lit(1)).alias(name)


def _is_published(files: Storage, output: str, resume: bool) -> bool:
    """Returns whether nothing is left to do.

    Raises JobError if other pairs are published there, or if the folder has tables that no killed
    building left.
    """
    if files.exists(f"{output}/{NAME}"):
        if resume:
            print(f"{output}: already published: nothing to do")
            return True
        raise JobError(f"{output}: already published; use another --output")
    for name in TABLES:
        if files.exists(f"{output}/{name}") and not files.exists(f"{output}/{WORK}/started.json"):
            raise JobError(f"{output}/{name}: not written by build_pairs; use another --output")
    return False


class BuildPairs:
    """The steps of a building of pairs, in the order in which build_pairs calls them."""

    carried: tuple[str, ...] = ()
    """Further columns of the method's items to keep when they are judged."""
    needs_pairs = True
    """Whether a building fails if it makes no pair."""
    made = "made"
    """The table of _work that holds the pairs."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        settings: BuildSettings,
        method: Any,
        limit: int | None,
    ):
        """method: a Method of the kind that this class builds."""
        self.spark, self.storage, self.method, self.limit = spark, storage, method, limit
        self.settings = self.prepared(settings)
        self.output = settings.folder
        self.work = f"{self.output}/{WORK}"
        self.input: Rows = open_input(spark, storage, self.settings)
        self.check_lock: Callable[[], None] = lambda: None
        """Raises if another process holds the output."""
        self.steps = Steps(storage, self.work)
        self.parameters = json.dumps(
            self.settings.parameters(method), sort_keys=True, ensure_ascii=False
        )
        self.figures: dict[str, Any] = {}
        """The method's figures about its work, for the manifest."""
        self.started = time.monotonic()
        self.counts: dict[str, int] = {}
        """Numbers of rows and items read, and of items that are fit."""

    def prepared(self, settings: BuildSettings) -> BuildSettings:
        """Returns the settings with the values that only a subclass knows."""
        return settings

    def start(self, resume: bool) -> None:
        """Deletes what a killed process left; with resume, everything except its finished steps."""
        self.check_lock()
        for name in (PAIRS, QUARANTINE):
            self.storage.delete(f"{self.output}/{name}")
        inputs = [entry.model_dump() for entry in self.input.entries]
        deciding = self.settings.deciding(self.method) | {"limit": self.limit, "inputs": inputs}
        self.steps.start(deciding, resume, self.output)

    def judge(self) -> None:
        """Reads the input once, and separates the items that can be in a pair from those that
        cannot."""
        self.counts = self.steps.once("judged", self._judge)

    def _judge(self) -> dict[str, int]:
        if self.input.convert:
            with Progress("reading TMX"):
                self.input = replace(self.input, rows=self.input.convert(f"{self.work}/input"))
        rows, items = Observation(), Observation()
        fit = F.count_if(F.col("reason").isNull()).alias("fit")
        judged = self.judged(self.limit, rows).observe(items, row_count("read"), fit)
        with self.input.blamed():
            self.write_work("judged", "reading", judged)
        counts = {"rows": rows.get["rows"], **items.get}
        if not counts["read"]:
            raise JobError(f"{self.settings.paths[0]}: no rows, expected at least one")
        return counts

    def judged(self, limit: int | None, observed: Observation) -> DataFrame:
        """Returns the items with reason and group; observed counts the rows."""
        settings, rows, alone = self.settings, self.input.rows, self.method.alone
        if limit is not None:
            rows = rows.limit(limit)
        items = self.method.items(rows.observe(observed, row_count("rows")))
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
        """Makes the pairs of each group."""
        self.steps.once("made", self._make)

    def _make(self) -> dict[str, Any]:
        made = self.made_of(self.read_work("judged").where("fit"))
        self.write_work("made", "making pairs", made)
        return {}

    def made_of(self, fit: DataFrame) -> DataFrame:
        """Returns columns MADE for the items that are fit."""
        return make_pairs(fit, self.method)

    def all_made(self) -> DataFrame:
        """Returns columns MADE and parameters: pairs, and items in no pair."""
        return self.read_work("made").withColumn("parameters", F.lit(self.parameters))

    def write_pairs(self) -> None:
        """Writes the pairs, with their lineage, in files of about equal size."""
        settings = self.settings
        lineage = {
            "method": settings.method,
            "model": settings.model or settings.translator,
            "version": settings.model_version or self.method.version(),
        }
        known = [F.lit(value).cast("string").alias(name) for name, value in lineage.items()]
        origin = F.lit(settings.origin).alias("origin")
        pairs = self.all_made().where("reason IS NULL")
        pairs = pairs.select("source", "paraphrase", origin, "group", *known, "parameters")
        self.check_lock()
        size = sum(file.size for file in self.files_of(self.made))
        files = max(round(size / (settings.target_file_mb * 1e6)), 1)
        with progress(self.spark, "writing pairs", None):
            spread = pairs.repartition(files, "group").write.options(**PARQUET)
            spread.mode("overwrite").parquet(f"{self.output}/{PAIRS}")

    def write_quarantine(self) -> None:
        """Writes the items in no pair, one folder for each reason."""
        columns = ["source", "paraphrase", "foreign", MALFORMED_LINE, "reason"]
        rows = self.read_work("judged").where("NOT fit").select(*columns)
        left = self.all_made().where("reason IS NOT NULL")
        rows = rows.unionByName(left.withColumn(MALFORMED_LINE, F.lit(None)).select(*columns))
        counts = by_reason(rows)
        if not counts:
            return
        rows = escape_undecodable(rows, columns[:-1])
        a_row = sum(file.size for file in self.files_of("judged")) / max(self.counts["read"], 1)
        per_file = self.settings.target_file_mb * 1e6 / max(a_row, 1)
        files = {(reason,): ceil(count / per_file) for reason, count in counts.items()}
        self.check_lock()
        path = f"{self.output}/{QUARANTINE}"
        write_partitioned(rows, path, ("reason",), files, F.xxhash64("source", "foreign"))

    def publish(self) -> None:
        """Counts the written rows, closes the accounts, and writes the manifest."""
        pairs = self.published(PAIRS)
        quarantine: Counter[str] = Counter()
        if self.storage.exists(f"{self.output}/{QUARANTINE}"):
            quarantine = by_reason(self.published(QUARANTINE))
        used, read, made = self.used(pairs), self.counts["read"], pairs.count()
        self._check_accounts(read, used, made, quarantine)
        written = {n: written_files(self.spark, self.output, n) for n in TABLES}
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
            dropped=dict(sorted(self.dropped().items())),
            figures=self.figures,
            seconds=round(time.monotonic() - self.started, 1),
            files={name: files for name, files in written.items() if files},
        )
        self.check_lock()
        self.storage.write(f"{self.output}/{NAME}", manifest.to_json())
        self.storage.delete(self.work)
        self._print(manifest)

    def _check_accounts(self, read: int, used: int, made: int, quarantine: Counter[str]) -> None:
        unit = self.method.unit
        if read != used + quarantine.total():
            raise RuntimeError(
                f"{read} {unit} read, but {used} in pairs + {quarantine.total()} quarantined; "
                "nothing was published"
            )
        if not made and self.needs_pairs:
            left = ", ".join(f"{reason} {count:,}" for reason, count in sorted(quarantine.items()))
            raise JobError(
                f"{self.settings.paths[0]}: made no pair from {read:,} {unit} ({left}); "
                "nothing was published"
            )

    def used(self, pairs: DataFrame) -> int:
        """Counts the items that are in a pair, according to the written files."""
        texts = F.col("source"), F.col("paraphrase")
        each, both = [F.explode(F.array(*texts))], [F.least(*texts), F.greatest(*texts)]
        return pairs.select("group", *(each if self.method.alone else both)).distinct().count()

    def dropped(self) -> Counter[str]:
        """Counts further candidates that make no pair, of sentences that are already accounted
        for."""
        return Counter()

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

    def try_first_rows(self) -> None:
        """Prints counts, examples and, for a model, an estimate; writes nothing."""
        observed, limit = Observation(), self.limit or SAMPLE
        judged = self.judged(min(limit, SAMPLE), observed).cache()
        with self.input.blamed():
            made = self.made_of(judged.where("reason IS NULL")).cache()
            fit = made.where("reason IS NULL")
            counts = by_reason(judged.unionByName(made, True).where("reason IS NOT NULL"))
            pairs, groups = fit.count(), fit.select("group").distinct().count()
            first = interruptible(fit.limit(TRIED).toArrow).to_pylist()
        rows, items = observed.get["rows"], judged.count()
        what = self.what(groups)
        print(f"the first {rows:,} rows: {items:,} {self.method.unit}, {pairs:,} {what}")
        for reason, count in sorted(counts.items()):
            print(f"  {count:>12,} in quarantine: {reason}")
        self.show(first, pairs, rows)
        print("nothing was written")
        self.spark.catalog.clearCache()

    def what(self, groups: int) -> str:
        """Returns a noun phrase for what a dry run counts."""
        return f"pairs in {groups:,} groups"

    def show(self, first: list[dict[str, str]], fit: int, rows: int) -> None:
        """Prints examples. first: rows MADE. fit: number of such rows in the sample of rows."""
        for row in first[:EXAMPLES]:
            print(f"  {row['source']}\n  -> {row['paraphrase']}")

    def write_work(self, name: str, title: str, table: DataFrame) -> None:
        """Writes a table of _work; the rows that are fit (without a reason) go to their own
        folder."""
        table = table.withColumn("fit", F.col("reason").isNull())
        self.check_lock()
        with progress(self.spark, title, None):
            writer = table.write.options(**PARQUET).partitionBy("fit").mode("overwrite")
            writer.parquet(f"{self.work}/{name}")

    def read_work(self, name: str) -> DataFrame:
        """Reads a table of _work, with fit as a boolean; either of its two folders may be
        missing."""
        schema = f"{MADE}, {MALFORMED_LINE} string, fit boolean"
        return self.read(f"{self.work}/{name}", schema)

    def read(self, path: str, schema: str | StructType | None = None) -> DataFrame:
        """Reads Parquet files."""
        reader = self.spark.read.options(**CHECKED)
        return (reader.schema(schema) if schema else reader).parquet(path)

    def published(self, name: Table) -> DataFrame:
        """Reads a table of the output."""
        return self.read(f"{self.output}/{name}")

    def files_of(self, name: str) -> list[File]:
        """Lists the files of a table of _work."""
        path = f"{self.work}/{name}"
        return self.storage.list_files(path) if self.storage.exists(path) else []
