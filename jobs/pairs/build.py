"""Builds pairs by any method, from the lock of the output to its manifest.

  input -> judged       the items, each with its group, or with the reason why no pair can use it
        -> made         what the method makes of them: pairs, and leftovers with a reason
        -> pairs, quarantine
        -> manifest.json

judged, made, and the tables that a method adds are in _work. A killed building that is resumed goes
on after the last one that is finished.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from math import ceil
from typing import Literal

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.accounts import escape_undecodable, observed, written_files
from gaixie.jobs.corpus.files import check_apart
from gaixie.jobs.corpus.inspection import SMALL_BYTES, find_inputs
from gaixie.jobs.corpus.markers import STARTED, WORK, Markers
from gaixie.jobs.corpus.parquet import read_table, write_partitioned, write_table
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.publish import held, now
from gaixie.jobs.corpus.reading import InputFiles, line_fault
from gaixie.jobs.corpus.session import begin_session
from gaixie.jobs.pairs.groups import by_reason, judge_columns
from gaixie.jobs.pairs.method import Method
from gaixie.jobs.pairs.read import lines_entries, open_table, read_lines
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, PairsManifest, RunInput
from gaixie.udfs.storage.tables import MALFORMED_LINE

TABLES: tuple[Literal["pairs", "quarantine", "clusters"], ...] = ("pairs", "quarantine", "clusters")
"""Tables that an output may hold; only the method cluster has the last one."""

FIGURES = "figures.json"
"""File of _work with the method's figures, so that a resumed building goes on counting."""

TRIED = 100
"""Rows that a dry run builds from by default."""


def build_pairs(
    name: str, method: Method, limit: int | None, resume: bool, take_over: bool, dry_run: bool
) -> int:
    """Makes the pairs, publishes them, and returns the job's exit code.

    name: of the method. limit: maximum rows to read. resume: continue what a killed process left.
    take_over: take the lock of a process on another host. dry_run: build from the first rows, show
    some pairs, and delete everything.
    """
    if dry_run:
        method = method.model_copy(update={"output": f"{method.folder}/_dry_run"})
        limit, resume = limit or TRIED, False
    output = method.folder
    check_apart(output, method.paths)
    found = None if method.lines else find_inputs([method.table()])[0]
    sizes = [file.size for file in found.files] if found else []
    lines = lines_entries(method.lines)
    small = sum(sizes) + sum(entry.bytes for entry in lines) < SMALL_BYTES
    with begin_session("gaixie build_pairs", [output, *method.paths], small) as wait:
        method.check()
        spark = wait()
    with held(output, take_over) as lock, _cleared(output if dry_run else None):
        if not _is_published(output, resume):
            build = PairsBuild(spark, name, method, limit, lock.check)
            build.start(found, lines, resume)
            build.judge()
            if not (dry_run and method.show_requests(build.fit)):
                build.make()
                build.write_pairs()
                build.write_quarantine()
                build.publish()
                if dry_run:
                    for row in read_table(spark, f"{output}/pairs").limit(3).collect():
                        print(f"  {row.source}\n  -> {row.paraphrase}")
    if dry_run:
        print("nothing was written")
    return 0


@contextmanager
def _cleared(folder: str | None) -> Iterator[None]:
    """Deletes what is in a folder, except its lock, when the block ends."""
    try:
        yield
    finally:
        for name in storage.children(folder) if folder else ():
            if name != "_lock":
                storage.delete(f"{folder}/{name}")


def _is_published(output: str, resume: bool) -> bool:
    """Returns whether nothing is left to do.

    Raises UserError if other pairs are published there, or if the folder has tables that no killed
    building left.
    """
    if storage.exists(f"{output}/{MANIFEST}"):
        if resume:
            print(f"{output}: already published: nothing to do")
            return True
        raise UserError(f"{output}: already published; use another --output")
    for name in TABLES if not storage.exists(f"{output}/{WORK}/{STARTED}") else ():
        if storage.exists(f"{output}/{name}"):
            raise UserError(f"{output}/{name}: not written by build_pairs; use another --output")
    return False


class PairsBuild:
    """A building of pairs; its steps in the order in which build_pairs calls them."""

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        method: Method,
        limit: int | None,
        check_lock: Callable[[], None],
    ):
        """check_lock: raises if another process holds the output."""
        self.spark, self.name, self.method, self.limit = spark, name, method, limit
        self.check_lock = check_lock
        self.output = method.folder
        self.work = f"{self.output}/{WORK}"
        self.markers = Markers(self.work)
        self.figures: dict[str, int] = {}
        """The method's figures about its work, for the manifest."""
        self.started = time.monotonic()

    def start(self, found: InputFiles | None, lines: list[RunInput], resume: bool) -> None:
        """Opens the input, and deletes what a killed process left; with resume, everything except
        finished tables.

        found: the files of the table to read, or None if the files of lines are read.
        """
        self.entries = lines
        if found:
            self.rows, self.entries = open_table(self.spark, found)
        self.check_lock()
        for name in TABLES:
            if name != "clusters" or not resume:
                storage.delete(f"{self.output}/{name}")
        inputs = [entry.model_dump() for entry in self.entries]
        deciding = self.method.deciding() | {"limit": self.limit, "inputs": inputs}
        self.markers.start(deciding | {"method": self.name}, resume, self.output)
        if storage.exists(f"{self.work}/{FIGURES}"):
            self.figures |= storage.read_json(f"{self.work}/{FIGURES}")

    def keep(
        self, name: str, table: DataFrame, *counted: Observation, folder: str | None = None
    ) -> tuple[DataFrame, dict[str, int]]:
        """Writes a table to _work, or to a folder, and reads it back; a finished one is only read.

        Returns it with its counts: rows, and what the observations counted.
        """
        path = f"{folder or self.work}/{name}"

        def write() -> dict[str, int]:
            self.check_lock()
            rows = Observation()
            with progress(self.spark, name, None):
                write_table(table.observe(rows, F.count(F.lit(1)).alias("rows")), path)
            counts = [observed(observation) for observation in (*counted, rows)]
            return {key: value for some in counts for key, value in some.items()}

        counts = self.markers.once(name, write)
        return read_table(self.spark, path, schema=table.schema), counts

    def judge(self) -> None:
        """Reads the input once, and finds the items that can be in a pair."""
        rows, method = Observation(), self.method
        if method.lines:
            self.rows = self._lines_as_table()
        limited = self.rows if self.limit is None else self.rows.limit(self.limit)
        items = method.items(limited.observe(rows, F.count(F.lit(1)).alias("rows_read")))
        judge = judge_columns(method.min_characters, method.max_characters, method.alone)
        items = items.withColumn("_judged", judge("source", "paraphrase", "foreign"))
        reason = F.coalesce(line_fault(), F.col("_judged.reason")).alias("reason")
        items = items.select(reason, "_judged.group", *items.columns).drop("_judged")
        self.judged, counts = self.keep("judged", items, rows)
        self.rows_read, self.items_read = counts["rows_read"], counts["rows"]
        if not self.items_read:
            raise UserError(f"{method.paths[0]}: no rows, expected at least one")

    def _lines_as_table(self) -> DataFrame:
        """Writes files of lines as Parquet, since lines correspond by their number."""
        path = f"{self.work}/lines"

        def write() -> dict[str, int]:
            count = 0
            files = [entry.listing[0].path for entry in self.entries]
            named = dict(zip(self.method.lines, files, strict=True))
            for number, table in enumerate(read_lines(named)):
                self.check_lock()
                storage.write_table(f"{path}/{number:06d}.parquet", table)
                count += len(table)
            if not count:
                raise UserError(f"{self.method.paths[0]}: no lines, expected at least one")
            return {"rows": count}

        self.markers.once("lines", write)
        return read_table(self.spark, path)

    @property
    def fit(self) -> DataFrame:
        """Returns the items that can be in a pair."""
        return self.judged.where("reason IS NULL").drop("reason", MALFORMED_LINE)

    def make(self) -> None:
        """Lets the method make pairs of the items that are fit."""
        self.made, _ = self.keep("made", self.method.make(self, self.fit))

    def write_pairs(self) -> None:
        """Writes the pairs, with their lineage, in files of about equal size."""
        method = self.method
        model, model_version = method.lineage()
        common = json.dumps(method.parameters(), sort_keys=True, ensure_ascii=False)
        lineage = {"method": self.name, "model": model, "version": model_version}
        pairs = self.made.where("reason IS NULL").select(
            "source",
            "paraphrase",
            F.lit(method.origin).alias("origin"),
            "group",
            *[F.lit(value).cast("string").alias(name) for name, value in lineage.items()],
            F.coalesce("parameters", F.lit(common)).alias("parameters"),
        )
        self.check_lock()
        files = max(round(self._bytes("made") / (method.target_file_mb * 1e6)), 1)
        with progress(self.spark, "writing pairs", None):
            write_table(pairs.repartition(files, "group"), f"{self.output}/pairs")

    def write_quarantine(self) -> None:
        """Writes the items in no pair, one folder for each reason."""
        columns = ["source", "paraphrase", "foreign", MALFORMED_LINE, "reason"]
        unfit = self.judged.where("reason IS NOT NULL")
        if self.method.alone:
            unfit = unfit.withColumn("paraphrase", F.lit(None).cast("string"))
        left = self.made.where("reason IS NOT NULL AND NOT dropped")
        left = left.withColumn(MALFORMED_LINE, F.lit(None).cast("string"))
        rows = unfit.select(*columns).unionByName(left.select(*columns))
        counts = by_reason(rows)
        if not counts:
            return
        rows = escape_undecodable(rows, columns[:-1])
        a_row = self._bytes("judged") / self.items_read
        per_file = self.method.target_file_mb * 1e6 / max(a_row, 1)
        files = {(reason,): ceil(count / per_file) for reason, count in counts.items()}
        self.check_lock()
        path = f"{self.output}/quarantine"
        write_partitioned(rows, path, ("reason",), files, F.xxhash64("source", "foreign"))

    def publish(self) -> None:
        """Counts the written rows, closes the accounts, and writes the manifest."""
        pairs, method = read_table(self.spark, f"{self.output}/pairs"), self.method
        quarantine: Counter[str] = Counter()
        if storage.exists(f"{self.output}/quarantine"):
            quarantine = by_reason(read_table(self.spark, f"{self.output}/quarantine"))
        used, made = method.used(self, pairs).distinct().count(), pairs.count()
        self._check_accounts(used, made, quarantine)
        written = {n: written_files(self.spark, self.output, n) for n in TABLES}
        manifest = PairsManifest(
            method=self.name,
            created=now(),
            gaixie=version("gaixie"),
            spark=self.spark.version,
            settings=method.model_dump(mode="json"),
            limit=self.limit,
            inputs=self.entries,
            rows=self.rows_read,
            read=self.items_read,
            used=used,
            quarantine=dict(sorted(quarantine.items())),
            groups=pairs.select("group").distinct().count(),
            pairs=made,
            dropped=dict(sorted(by_reason(self.made.where("dropped")).items())),
            figures=self.figures,
            seconds=round(time.monotonic() - self.started, 1),
            files={name: files for name, files in written.items() if files},
        )
        self.check_lock()
        storage.write(f"{self.output}/{MANIFEST}", manifest.to_json())
        storage.delete(self.work)
        self._print(manifest)

    def _check_accounts(self, used: int, made: int, quarantine: Counter[str]) -> None:
        read, unit = self.items_read, self.method.unit
        if read != used + quarantine.total():
            raise RuntimeError(
                f"{read} {unit} read, but {used} in pairs + {quarantine.total()} quarantined; "
                "nothing was published"
            )
        if not made and not self.method.may_be_empty:
            left = ", ".join(f"{reason} {count:,}" for reason, count in sorted(quarantine.items()))
            raise UserError(
                f"{self.method.paths[0]}: made no pair from {read:,} {unit} ({left}); "
                "nothing was published"
            )

    def _print(self, manifest: PairsManifest) -> None:
        print(f"{manifest.rows:,} rows read: {manifest.read:,} {self.method.unit}")
        print(f"  {manifest.used:>12,} in pairs")
        for reason, count in manifest.quarantine.items():
            print(f"  {count:>12,} in quarantine: {reason}")
        for reason, count in manifest.dropped.items():
            print(f"  {count:>12,} further candidates left out: {reason}")
        print(f"{manifest.pairs:,} pairs in {manifest.groups:,} groups ({manifest.seconds:.0f} s)")
        print(f"pairs: {self.output}/pairs")
        print(f"manifest: {self.output}/{MANIFEST}")

    def _bytes(self, name: str) -> int:
        """Returns the size of a table of _work."""
        return sum(file.size for file in storage.list_files(f"{self.work}/{name}"))
