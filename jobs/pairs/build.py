"""Builds pairs by any method, from the lock of the output to its manifest.

  input -> checked      the items, each with its group, or with the reason why no pair can use it
        -> made         what the method makes of them: pairs, and leftovers with a reason
        -> pairs, quarantine
        -> manifest.json

checked, made, and the tables that a method adds are in _work. A killed building that is resumed
goes on after the last one that is finished.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from math import ceil
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus import files, inspection, parquet, reading, runs, session
from gaixie.jobs.corpus.markers import STARTED, WORK, Markers
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.pairs.method import Method, by_reason, check_columns
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage import storage, tables
from gaixie.udfs.storage.manifest import MANIFEST, PairsManifest, RunInput
from gaixie.udfs.storage.tables import MALFORMED_LINE, Form, Part

TABLES: tuple[Literal["pairs", "quarantine", "clusters"], ...] = ("pairs", "quarantine", "clusters")
"""Tables that an output may hold; only the method cluster has the last one."""

TRIED = 100
"""Rows that a dry run reads by default."""


def build_pairs(
    name: str, method: Method, limit: int | None, resume: bool, take_over: bool, dry_run: bool
) -> int:
    """Makes the pairs, publishes them, and returns the job's exit code.

    name: of the method. limit: maximum rows to read. resume: continue what a killed process left.
    take_over: take the lock of a process on another host. dry_run: only say what the first rows
    would give the method.
    """
    files.check_apart(method.folder, method.paths)
    found = None if method.lines else files.find_input(method.table())
    lines = [_lines_entry(path) for path in method.lines.values()]
    size = found.size if found else sum(one.bytes for one in lines)
    uris = [method.folder, *method.paths]
    with session.begin_session("gaixie build_pairs", uris, size < files.SMALL_BYTES) as wait:
        method.check()
        spark = wait()
    if dry_run:
        build = PairsBuild(spark, name, method, limit, lambda: None)
        build.open(found, lines)
        build.try_out()
        return 0
    with runs.run_locked(method.folder, take_over) as lock:
        if not _is_published(method.folder, resume):
            build = PairsBuild(spark, name, method, limit, lock.check)
            build.open(found, lines)
            build.start(resume)
            build.check()
            made, _ = build.keep("made", method.make(build, build.fit))
            build.write(made)
            build.publish(made)
    return 0


def _lines_entry(path: str) -> RunInput:
    found, _ = files.find_files(path)
    if len(found) != 1:
        raise UserError(f"{path}: {len(found)} files, expected one with a sentence a line")
    return parquet.input_entry(path, "lines", found)


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


@dataclass
class PairsBuild:
    """A building of pairs; its steps in the order in which build_pairs calls them."""

    spark: SparkSession
    name: str
    method: Method
    limit: int | None
    check_lock: Callable[[], None]
    """Raises UserError if another process holds the output."""
    figures: dict[str, int] = field(default_factory=dict)
    """The method's figures about its work, for the manifest."""
    started: float = field(default_factory=time.monotonic)

    @property
    def output(self) -> str:
        return self.method.folder

    @property
    def work(self) -> str:
        return f"{self.output}/{WORK}"

    @property
    def markers(self) -> Markers:
        return Markers(self.work)

    def open(self, found: files.FoundFiles | None, lines: list[RunInput]) -> None:
        """Opens the input: a table, or, if found is None, files of lines."""
        self.entries = lines
        if found:
            [table] = inspection.inspect_inputs(self.spark, [found])
            path, kind = table.settings.path, table.kind
            self.entries = [parquet.input_entry(path, kind, table.files, table.left_out)]
            self.rows = reading.read_files(self.spark, table, table.files)
            if kind == "jsonl" and table.settings.list_column:  # a list is the text of its JSON
                text = F.col("paraphrase")
                parsed = F.when(text.startswith("["), F.from_json(text, "array<string>"))
                self.rows = self.rows.withColumn("paraphrase", F.coalesce(parsed, F.array(text)))

    def start(self, resume: bool) -> None:
        """Deletes what a killed process left; with resume, everything except finished tables."""
        self.check_lock()
        for name in TABLES:
            if name != "clusters" or not resume:
                storage.delete(f"{self.output}/{name}")
        inputs = [entry.model_dump() for entry in self.entries]
        deciding = {"limit": self.limit, "inputs": inputs, "method": self.name}
        self.markers.start(self.method.deciding() | deciding, resume, self.output)

    def keep(
        self, name: str, table: DataFrame, counted: Observation | None = None
    ) -> tuple[DataFrame, dict[str, int]]:
        """Writes a table to _work and reads it back; a finished one is only read.

        Returns it with what was observed.
        """
        folder = self.output if name in TABLES else self.work

        def write() -> dict[str, int]:
            self.check_lock()
            with progress(self.spark, name, None):
                parquet.write_table(table, f"{folder}/{name}")
            return counted.get if counted else {}

        told = self.markers.once(name, write)
        return parquet.read_table(self.spark, f"{folder}/{name}", schema=table.schema), told

    def try_out(self) -> None:
        """Checks the first rows, and prints what the method would get; writes nothing."""
        if self.method.lines:
            self.rows = self.spark.createDataFrame(next(self._lines()))
        most = self.limit or TRIED
        self.checked = self._items(self.rows.limit(most)).cache()
        print(f"of the first {most:,} rows, {self.fit.count():,} items can be in a pair")
        for reason, count in sorted(by_reason(self.checked.where("reason IS NOT NULL")).items()):
            print(f"  {count:,} cannot: {reason}")
        self.method.show(self.fit)
        print("dry run: nothing was written")

    def check(self) -> None:
        """Reads the input once, and finds the items that can be in a pair."""
        counted, method = Observation(), self.method
        if method.lines:
            self.rows = self._lines_as_table()
        rows = self.rows if self.limit is None else self.rows.limit(self.limit)
        items = self._items(rows.observe(counted, F.count(F.lit(1)).alias("rows")))
        self.checked, told = self.keep("checked", items, counted)
        self.rows_read, self.items_read = told["rows"], self.checked.count()
        if not self.items_read:
            raise UserError(f"{method.paths[0]}: no rows, expected at least one")

    def _items(self, rows: DataFrame) -> DataFrame:
        """Returns the items of the input's rows; reason says why one cannot be in a pair."""
        method = self.method
        items = method.items(rows)
        check = check_columns(method.min_characters, method.max_characters, method.alone)
        items = items.withColumn("_checked", check("source", "paraphrase", "foreign"))
        reason = F.coalesce(reading.line_fault(), F.col("_checked.reason")).alias("reason")
        return items.select(reason, "_checked.group", *items.columns).drop("_checked")

    def _lines(self) -> Iterator[pa.Table]:
        """Yields tables of the lines with the same number, and an empty malformed_line.

        Raises UserError unless all files have equally many.
        """
        uris = [entry.listing[0].path for entry in self.entries]
        paths = dict(zip(self.method.lines, uris, strict=True))
        readers = [tables.read(Part(path), [name], Form("txt")) for name, path in paths.items()]
        try:
            for batches in zip(*readers, strict=True):
                columns = {name: batch[name] for name, batch in zip(paths, batches, strict=True)}
                yield pa.table(columns | {MALFORMED_LINE: batches[0][MALFORMED_LINE]})
        except tables.TableError as error:
            raise UserError(str(error)) from None
        except ValueError:  # also pyarrow's, of columns that differ in length
            named = ", ".join(map(files.shown, uris))
            raise UserError(f"{named}: expected files with equally many lines") from None

    def _lines_as_table(self) -> DataFrame:
        """Writes files of lines as Parquet, since lines correspond by their number."""
        path = f"{self.work}/lines"

        def write() -> dict[str, int]:
            for number, table in enumerate(self._lines()):
                self.check_lock()
                storage.write_table(f"{path}/{number:06d}.parquet", table)
            return {}

        self.markers.once("lines", write)
        return parquet.read_table(self.spark, path)

    @property
    def fit(self) -> DataFrame:
        """Returns the items that can be in a pair."""
        return self.checked.where("reason IS NULL").drop("reason", MALFORMED_LINE)

    def write(self, made: DataFrame) -> None:
        """Writes the pairs with their lineage, and the items in no pair by reason.

        made: what the method makes of the fit items, columns gaixie.jobs.pairs.method.MADE.
        """
        method = self.method
        model, model_version = method.lineage()
        common = json.dumps(method.parameters(), sort_keys=True, ensure_ascii=False)
        lineage = {"method": self.name, "model": model, "version": model_version}
        pairs = made.where("reason IS NULL").select(
            *("source", "paraphrase"),
            F.lit(method.origin).alias("origin"),
            "group",
            *[F.lit(value).cast("string").alias(name) for name, value in lineage.items()],
            F.coalesce("parameters", F.lit(common)).alias("parameters"),
        )
        self.check_lock()
        with progress(self.spark, "writing pairs", None):
            pairs = pairs.repartition(self._files("made"), "group")
            parquet.write_table(pairs, f"{self.output}/pairs")
        columns = ["source", "paraphrase", "foreign", MALFORMED_LINE, "reason"]
        unfit = self.checked.where("reason IS NOT NULL")
        if method.alone:
            unfit = unfit.withColumn("paraphrase", F.lit(None).cast("string"))
        left = made.where("reason IS NOT NULL AND NOT dropped")
        rows = unfit.unionByName(left, allowMissingColumns=True).select(columns)
        if by_reason(rows):
            rows = parquet.escape_undecodable(rows, columns[:-1])
            order = "reason", F.xxhash64("source", "foreign")
            self.check_lock()
            rows = rows.repartitionByRange(self._files("checked"), *order)
            parquet.write_table(rows, f"{self.output}/quarantine", ["reason"])

    def _files(self, name: str) -> int:
        """Returns the number of files for what is about as large as a table of _work."""
        size = sum(file.size for file in storage.list_files(f"{self.work}/{name}"))
        return ceil(size / (self.method.target_file_mb * 1e6))

    def publish(self, made: DataFrame) -> None:
        """Counts the written rows, closes the accounts, and writes the manifest."""
        pairs, method = parquet.read_table(self.spark, f"{self.output}/pairs"), self.method
        quarantine: Counter[str] = Counter()
        if storage.exists(f"{self.output}/quarantine"):
            quarantine = by_reason(parquet.read_table(self.spark, f"{self.output}/quarantine"))
        read, used, count = self.items_read, method.used(self, pairs), pairs.count()
        if read != used + quarantine.total():
            fault = f"{used} in pairs + {quarantine.total()} quarantined; nothing was published"
            raise RuntimeError(f"{read} items read, but {fault}")
        if not count and not method.may_be_empty:
            left = ", ".join(f"{reason} {n:,}" for reason, n in sorted(quarantine.items()))
            fault = f"made no pair from {read:,} items ({left}); nothing was published"
            raise UserError(f"{method.paths[0]}: {fault}")
        written = {n: parquet.written_files(self.spark, self.output, n) for n in TABLES}
        manifest = PairsManifest(
            method=self.name,
            created=runs.now(),
            gaixie=version("gaixie"),
            spark=self.spark.version,
            settings=method.model_dump(mode="json"),
            limit=self.limit,
            inputs=self.entries,
            rows=self.rows_read,
            read=read,
            used=used,
            quarantine=dict(sorted(quarantine.items())),
            groups=pairs.select("group").distinct().count(),
            pairs=count,
            dropped=dict(sorted(by_reason(made.where("dropped")).items())),
            figures=self.figures,
            seconds=round(time.monotonic() - self.started, 1),
            files={name: listed for name, listed in written.items() if listed},
        )
        self.check_lock()
        storage.write(f"{self.output}/{MANIFEST}", manifest.to_json())
        storage.delete(self.work)
        print(f"{manifest.rows:,} rows read: {read:,} items")
        lines = {"in pairs": used}
        lines |= {f"in quarantine: {reason}": n for reason, n in manifest.quarantine.items()}
        dropped = "further candidates left out"
        lines |= {f"{dropped}: {reason}": n for reason, n in manifest.dropped.items()}
        for text, n in lines.items():
            print(f"  {n:>12,} {text}")
        print(f"{count:,} pairs in {manifest.groups:,} groups ({manifest.seconds:.0f} s)")
        print(f"pairs: {self.output}/pairs\nmanifest: {self.output}/{MANIFEST}")
