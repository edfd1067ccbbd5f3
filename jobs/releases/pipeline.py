"""The steps of one release, and what can be asked of releases that are published."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from contextlib import suppress
from importlib.metadata import version
from secrets import token_hex
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from gaixie.jobs.errors import JobError
from gaixie.jobs.releases.card import card
from gaixie.jobs.releases.croissant import croissant
from gaixie.jobs.releases.plots import draw_judgements, draw_lengths, draw_scores
from gaixie.jobs.releases.rows import (
    COLUMNS,
    LENGTH_BINS,
    SPLITS,
    Counts,
    Judged,
    SourceRun,
    check_signatures,
    find_run,
    judged,
    read_release,
    read_runs,
    recount,
    repeated,
    shards_of,
    split_column,
    without,
    write_shards,
)
from gaixie.jobs.releases.store import (
    as_json,
    folder_of,
    latest_of,
    manifest_of,
    move_latest,
    now,
    published,
    read_latest,
    read_manifest,
)
from gaixie.jobs.releases.verify import describe_files, faults_of
from gaixie.jobs.spark.progress import progress
from gaixie.jobs.spark.session import start_session
from gaixie.udfs.io import storage
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.stages import ORIGINS, STAGES, quantile

STARTED = "started.json"
"""First file of a build folder, gone before the release is published."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

ROWS_A_PARTITION = 1_000_000
"""Rows that a task looks through for duplicates, of which it sees identities only."""


def session(root: str) -> SparkSession:
    return start_session("gaixie release_dataset", [storage.spark_uri(root)])


def list_releases(root: str) -> int:
    """Prints the published versions, the oldest first."""
    names = ("version", "created", "pairs", "stages", "licence", "runs", "")
    table = Table(*names, box=box.SIMPLE, show_edge=False, pad_edge=False)
    latest = read_latest(root)
    for manifest in published(root):
        pairs = sum(rows["released"] for rows in manifest["rows"].values())
        table.add_row(
            manifest["version"],
            manifest["created"][:19],
            f"{pairs:,}",
            " ".join(map(str, manifest["settings"]["stages"])),
            manifest["license"],
            " ".join(run["run_id"] for run in manifest["runs"]),
            "latest" if manifest["version"] == latest else "",
        )
    if not table.row_count:
        raise JobError(f"{root}: no published release")
    Console(width=None if sys.stdout.isatty() else 110, highlight=False).print(table)
    return 0


def verify(root: str, name: str) -> int:
    """Prints each fault of a published release as a line that begins with the file."""
    manifest = read_manifest(root, name)
    faults = faults_of(root, manifest, lambda: session(root))
    for fault in faults:
        print(fault)
    files, pairs = len(manifest["files"]), sum(r["released"] for r in manifest["rows"].values())
    print(f"release {name}: {files} files, {pairs:,} pairs: {len(faults) or 'no'} faults")
    return 1 if faults else 0


def release(args: argparse.Namespace, settings: dict[str, Any]) -> int:
    if storage.exists(manifest_of(args.root, args.version)):
        raise JobError(
            f"{manifest_of(args.root, args.version)}: release '{args.version}' is published; "
            "take another --version"
        )
    runs = [find_run(args.root, name, args.stages, args.keep_columns) for name in args.runs]
    check_signatures(runs)
    if not any(run.rows for run in runs):
        raise JobError(
            f"{runs[0].folder}: no pairs in stages {' '.join(map(str, args.stages))} of "
            f"{'this run' if len(runs) == 1 else 'these runs'}"
        )
    folder = storage.join(folder_of(args.root, args.version), f"build-{token_hex(4)}")
    try:
        if not args.dry_run:  # a place that may not be written shows itself before the work
            note = {"version": args.version, "started": now(), "runs": args.runs}
            storage.write(storage.join(folder, STARTED), as_json(note))
        job = Release(session(args.root), args, settings, runs, folder)
        job.find_duplicates()
        if args.dry_run:
            job.dry_run()
            return 0
        job.write_data()
        job.describe()
    except BaseException:
        with suppress(OSError):
            storage.delete(folder)
        raise
    job.publish()
    if not args.no_latest:
        print(f"{latest_of(args.root)}: {move_latest(args.root, job.manifest)}")
    return 0


class Release:
    """The steps of one release, in the order in which release calls them."""

    def __init__(
        self,
        spark: SparkSession,
        args: argparse.Namespace,
        settings: dict[str, Any],
        runs: list[SourceRun],
        folder: str,
    ):
        self.spark, self.args, self.settings = spark, args, settings
        self.runs, self.folder = runs, folder
        self.rows: Counter[tuple[str, int]] = sum((run.rows for run in runs), Counter())
        """Pairs by origin and stage: of the runs, and what they are less the duplicates."""
        self.duplicates: Counter[tuple[str, int]] = Counter()
        self.manifest: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}

    def _pairs(self) -> DataFrame:
        return read_runs(self.spark, self.runs, self.args.stages, self.args.keep_columns)

    def find_duplicates(self) -> None:
        """Counts the rows whose pair an earlier run has; a single run has each pair once."""
        started = time.monotonic()
        if not self.spark.sparkContext.getConf().contains("spark.sql.shuffle.partitions"):
            cores = self.spark.sparkContext.defaultParallelism
            partitions = max(2 * cores, self.rows.total() // ROWS_A_PARTITION)
            self.spark.conf.set("spark.sql.shuffle.partitions", partitions)
        if sum(bool(run.rows) for run in self.runs) > 1:
            with progress(self.spark, "finding duplicates", self.rows.total()):
                table = repeated(self._pairs()).groupBy("origin", "stage").count().collect()
            self.duplicates.update({(row.origin, row.stage): row["count"] for row in table})
        self.seconds["duplicates"] = time.monotonic() - started

    def _shards(self) -> dict[tuple[str, int], int]:
        size = sum(run.bytes_a_row * run.rows.total() for run in self.runs) / self.rows.total()
        args, shares = self.args, self.settings["split"]
        return shards_of(self.rows - self.duplicates, shares, size, args.shards_mb, args.shards)

    def dry_run(self) -> None:
        """Says what would be released."""
        console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
        console.print(_counts_table(self.rows, self.duplicates, self.args.stages))
        for (split, stage), files in self._shards().items():
            share = self.settings["split"][split]
            print(f"{split} stage {stage}: {share:.2%} of its pairs, about {files} files")
        print(f"signature: {self.runs[0].manifest['signature']}")
        print(
            f"would publish {manifest_of(self.args.root, self.args.version)}; dry run: nothing written"
        )

    def write_data(self) -> None:
        started = time.monotonic()
        rows = self._pairs()
        if self.duplicates:
            rows = without(rows, repeated(rows), self.duplicates.total())
        split = split_column(self.settings["split"], self.settings["seed"])
        columns = [*COLUMNS.names, *self.args.keep_columns]
        rows = rows.withColumn("split", split).select(*columns, "split")
        data = storage.join(self.folder, "data")
        with progress(self.spark, "writing shards", (self.rows - self.duplicates).total()):
            write_shards(rows, data, self._shards(), self.settings["seed"])
        for file in storage.list_files(data):  # checksums and markers of Spark's file systems
            if file.uri.rpartition("/")[2].startswith((".", "_")):
                storage.delete(file.uri)
        self.columns = {f.name: f.dataType.simpleString() for f in rows.drop("split").schema}
        self.seconds["write"] = time.monotonic() - started

    def describe(self) -> None:
        """Counts what was written, closes the accounts, and writes card and pictures."""
        started = time.monotonic()
        with progress(self.spark, "counting", (self.rows - self.duplicates).total()):
            counts = recount(read_release(self.spark, self.folder))
            found = judged(read_release(self.spark, self.folder))
        self._close_accounts(counts)
        self.seconds["count"] = time.monotonic() - started
        started = time.monotonic()
        storage.write(storage.join(self.folder, "scores.png"), draw_scores(counts.bins))
        judgements = draw_judgements(found.bins)
        storage.write(storage.join(self.folder, "judgements.png"), judgements)
        lengths = draw_lengths(counts.lengths, LENGTH_BINS)
        storage.write(storage.join(self.folder, "lengths.png"), lengths)
        storage.delete(storage.join(self.folder, STARTED))
        self.seconds["pictures"] = time.monotonic() - started
        started = time.monotonic()
        data = describe_files(storage.join(self.folder, "data"))
        data = [entry | {"path": f"data/{entry['path']}"} for entry in data]
        if sum(entry["rows"] for entry in data) != counts.rows.total():
            raise RuntimeError("the files' footers and their rows differ; nothing was published")
        record = self._record(counts, found)
        storage.write(storage.join(self.folder, "README.md"), card(record))
        storage.write(storage.join(self.folder, "croissant.json"), croissant(record, data))
        others = [
            f
            for f in storage.list_files(self.folder)
            if not f.uri.startswith(f"{self.folder}/data/")
        ]
        files = [
            {
                "path": file.uri.removeprefix(f"{self.folder}/"),
                "bytes": file.size,
                "sha256": storage.sha256(file.uri),
            }
            for file in others
        ]
        self.seconds["files"] = time.monotonic() - started
        seconds = {step: round(value, 3) for step, value in self.seconds.items()}
        self.manifest = {**record, "seconds": seconds, "files": [*files, *data]}

    def _close_accounts(self, counts: Counts) -> None:
        """Raises RuntimeError unless the runs' rows are what was written and the duplicates."""
        written: Counter[tuple[str, int]] = Counter()
        for (_, stage, origin), pairs in counts.rows.items():
            written[origin, stage] += pairs
        for key in {*self.rows, *written}:
            if self.rows[key] != written[key] + self.duplicates[key]:
                raise RuntimeError(
                    f"{key[0]}, stage {key[1]}: {self.rows[key]} rows in the runs, but "
                    f"{written[key]} written + {self.duplicates[key]} duplicates; "
                    "nothing was published"
                )

    def _record(self, counts: Counts, found: Judged) -> dict[str, Any]:
        """The manifest but for its files."""
        nested: dict[str, dict[str, dict[str, int]]] = {}
        for split in SPLITS:
            for stage in STAGES:
                for origin in ORIGINS:
                    if pairs := counts.rows[split, stage, origin]:
                        nested.setdefault(split, {}).setdefault(str(stage), {})[origin] = pairs
        rows, quantiles = {}, {}
        for origin in ORIGINS:
            if read := sum(n for (name, _), n in self.rows.items() if name == origin):
                twice = sum(n for (name, _), n in self.duplicates.items() if name == origin)
                rows[origin] = {"in_runs": read, "duplicates": twice, "released": read - twice}
                bins = sum((c for (name, _), c in counts.bins.items() if name == origin), Counter())
                quantiles[origin] = {str(share): quantile(bins, share) for share in QUANTILES}
        means: dict[str, dict[str, float]] = {}
        for stage in STAGES:
            for name in OUTPUTS:
                if (stage, name) in found.means:
                    means.setdefault(str(stage), {})[name] = round(found.means[stage, name], 4)
        return {
            "version": self.args.version,
            "name": f"gaixie-{self.args.version}",
            "title": self.args.title,
            "license": self.args.license,
            "created": now(),
            "gaixie": version("gaixie"),
            "spark": self.spark.version,
            "signature": self.runs[0].manifest["signature"],
            "build": self.folder.rpartition("/")[2],
            "moves_latest": not self.args.no_latest,
            "settings": self.settings,
            "runs": [
                {
                    "run_id": run.run_id,
                    "created": run.manifest["created"],
                    "manifest_sha256": run.digest,
                    "rows": run.rows.total(),
                }
                for run in self.runs
            ],
            "columns": self.columns,
            "rows": rows,
            "counts": nested,
            "quantiles": quantiles,
            "judgements": means,
        }

    def publish(self) -> None:
        """Creates the manifest, which makes the release exist; who comes second has lost.

        Where the store never answers, the manifest may be there: then the build folder stays.
        """
        self.manifest["created"] = now()
        path = manifest_of(self.args.root, self.args.version)
        try:
            storage.create(path, as_json(self.manifest))
        except FileExistsError:
            storage.delete(self.folder)
            raise JobError(
                f"{path}: someone else published release '{self.args.version}' in the meantime; "
                "nothing of this one was kept"
            ) from None
        console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
        console.print(_counts_table(self.rows, self.duplicates, self.args.stages))
        for split, stages in self.manifest["counts"].items():
            print(f"{split}: {sum(sum(n.values()) for n in stages.values()):,} pairs")
        data = [entry for entry in self.manifest["files"] if "rows" in entry]
        print(f"{len(data)} Parquet files, {sum(e['bytes'] for e in data) / 1e6:,.1f} MB")
        print(f"signature: {self.manifest['signature']}")
        print(f"manifest: {path}")
        print(f"card: {self.folder}/README.md")


def _counts_table(
    rows: Counter[tuple[str, int]], duplicates: Counter[tuple[str, int]], stages: list[int]
) -> Table:
    """Pairs to release by origin and stage, and the duplicates left out."""
    names = ["origin", "in the runs", "duplicates", *[f"stage {s}" for s in stages], "released"]
    table = Table(*names, box=box.SIMPLE, show_edge=False, pad_edge=False)
    for name in [*ORIGINS, "total"]:
        keys = [key for key in rows if name in (key[0], "total")]
        if not keys:
            continue
        by_stage = [sum(rows[k] - duplicates[k] for k in keys if k[1] == s) for s in stages]
        read, twice = sum(rows[k] for k in keys), sum(duplicates[k] for k in keys)
        table.add_row(name, *[f"{n:,}" for n in (read, twice, *by_stage, read - twice)])
    for column in table.columns[1:]:
        column.justify = "right"
    return table
