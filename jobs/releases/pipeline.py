"""Runs the steps of a release, and answers questions about published releases."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from itertools import product
from secrets import token_hex

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from gaixie.jobs.corpus.iceberg import IcebergTable
from gaixie.jobs.corpus.progress import progress, timed
from gaixie.jobs.corpus.publish import now
from gaixie.jobs.corpus.session import set_shuffle_partitions, start_session
from gaixie.jobs.errors import JobError
from gaixie.jobs.releases import plots, rows, store
from gaixie.jobs.releases.card import card
from gaixie.jobs.releases.counts import LENGTH_BINS, count_lineage, count_written, pairs_by
from gaixie.jobs.releases.croissant import croissant
from gaixie.jobs.releases.trace import trace
from gaixie.jobs.releases.verify import describe_files, faults_of
from gaixie.udfs.command_line import say
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS, STAGES, quantile
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ReleaseManifest, ReleaseRows, SourceRunEntry
from gaixie.udfs.text.splits import GROUP, SPLITS

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

ROWS_PER_PARTITION = 1_000_000
"""Rows that one task searches for duplicates; it sees only identities."""


def session(root: str, table: bool = False) -> SparkSession:
    return start_session("gaixie release_dataset", [storage.spark_uri(root)], table)


def list_releases(root: str) -> int:
    """Prints the published versions, oldest first."""
    table = _table("version", "created", "pairs", "stages", "licence", "runs", "")
    latest = store.read_latest(root)
    for manifest in store.published(root):
        table.add_row(
            manifest.version,
            manifest.created[:19],
            f"{manifest.pairs:,}",
            " ".join(map(str, manifest.settings.stages)),
            manifest.license,
            " ".join(run.run_id for run in manifest.runs),
            "latest" if manifest.version == latest else "",
        )
    if not table.row_count:
        raise JobError(f"{root}: no published release")
    _console().print(table)
    return 0


def verify(root: str, name: str) -> int:
    """Prints each fault of a published release, one a line; the line begins with the file."""
    manifest = store.published_release(root, name)
    faults = faults_of(root, manifest, lambda: session(root))
    for fault in faults:
        print(fault)
    print(
        f"release {name}: {len(manifest.files)} files, {manifest.pairs:,} pairs: "
        f"{len(faults) or 'no'} faults"
    )
    return 1 if faults else 0


def trace_pair(root: str, name: str | None, pair_id: str) -> int:
    """Prints where a pair of a release comes from. name: a version; None means the latest."""
    name = name or store.read_latest(root)
    if name is None:
        raise JobError(f"{root}: no published release")
    for what, value in trace(root, store.published_release(root, name), pair_id):
        print(f"{what:<12}{' '.join(value.splitlines())}")
    return 0


def release(request: store.ReleaseRequest) -> int:
    path = store.manifest_of(request.root, request.version)
    if storage.exists(path):
        raise JobError(f"{path}: release '{request.version}' is published; use another --version")
    runs = [
        rows.find_run(request.root, name, request.stages, request.keep_columns)
        for name in request.runs
    ]
    rows.check_signatures(runs)
    if not any(run.rows for run in runs):
        raise JobError(
            f"{runs[0].folder}: no pairs in stages {' '.join(map(str, request.stages))} of "
            f"{'this run' if len(runs) == 1 else 'these runs'}"
        )
    if any(GROUP in run.lineage for run in runs) and GROUP not in rows.lineage_of(runs):
        lacking = next(run.run_id for run in runs if run.rows and GROUP not in run.lineage)
        say(f"run '{lacking}' has no column 'group': the release is split by source sentence")
    folder = storage.join(store.folder_of(request.root, request.version), f"build-{token_hex(4)}")
    try:
        if not request.dry_run:  # a root without write permission must fail before the work
            note = {"version": request.version, "runs": request.runs}
            storage.write_json(storage.join(folder, store.STARTED), note)
        spark = session(request.root, bool(request.table))
        tag = _tag(spark, request, runs)
        rows.check_digests(spark, runs)
        job = Release(spark, request, runs, folder)
        job.find_duplicates()
        if request.dry_run:
            job.dry_run()
            return 0
        job.write_data()
        job.count()
        job.draw()
        manifest = job.describe()
    except BaseException:
        with suppress(OSError):
            storage.delete(folder)
        raise
    # Before the manifest: if two jobs make one version and tag different snapshots, one fails.
    tag()
    job.publish(manifest)
    return 0


def _tag(
    spark: SparkSession, request: store.ReleaseRequest, runs: list[rows.SourceRun]
) -> Callable[[], None]:
    """Returns a function that tags the table's snapshot with the runs, if there is a table."""
    if not request.table:
        return lambda: None
    table = IcebergTable(spark, request.table)
    snapshot = table.snapshot_with([run.manifest for run in runs], request.version)
    return lambda: table.tag(request.version, snapshot)


class Release:
    """The steps of one release, in the order in which release calls them."""

    def __init__(
        self,
        spark: SparkSession,
        request: store.ReleaseRequest,
        runs: list[rows.SourceRun],
        folder: str,
    ):
        self.spark, self.request, self.settings = spark, request, request.settings
        self.runs, self.folder = runs, folder
        self.in_runs: Counter[tuple[str, int]] = sum((run.rows for run in runs), Counter())
        """Pairs by origin and stage."""
        self.duplicates: Counter[tuple[str, int]] = Counter()
        self.seconds: dict[str, float] = {}

    @property
    def expected(self) -> Counter[tuple[str, int]]:
        """Counts the pairs to release, by origin and stage."""
        return self.in_runs - self.duplicates

    def _pairs(self) -> DataFrame:
        return rows.read_runs(
            self.spark, self.runs, self.settings.stages, self.settings.keep_columns
        )

    @timed("duplicates")
    def find_duplicates(self) -> None:
        """Counts the rows whose pair an earlier run has; a single run has each pair once."""
        set_shuffle_partitions(self.spark, self.in_runs.total() // ROWS_PER_PARTITION)
        if sum(bool(run.rows) for run in self.runs) > 1:
            with progress(self.spark, "finding duplicates", self.in_runs.total()):
                counts = rows.find_duplicates(self._pairs()).groupBy("origin", "stage").count()
                for origin, stage, count in counts.collect():
                    self.duplicates[origin, stage] += count

    def _shards(self) -> dict[tuple[str, int], int]:
        size = sum(run.bytes_per_row * run.rows.total() for run in self.runs)
        return rows.shards_of(self.expected, self.settings, size / self.in_runs.total())

    def dry_run(self) -> None:
        """Prints what would be released."""
        self._print_counts()
        for (split, stage), files in self._shards().items():
            share = self.settings.split[split]
            print(f"{split} stage {stage}: {share:.2%} of its pairs, about {files} files")
        print(f"signature: {self.runs[0].manifest.signature}")
        path = store.manifest_of(self.request.root, self.request.version)
        print(f"would publish {path}; dry run: nothing was written")

    @timed("write")
    def write_data(self) -> None:
        pairs, settings = self._pairs(), self.settings
        if self.duplicates:
            duplicates = rows.find_duplicates(pairs)
            pairs = rows.drop_duplicates(pairs, duplicates, self.duplicates.total())
        lineage = rows.lineage_of(self.runs)
        columns = [*rows.COLUMNS.names, *settings.keep_columns, *lineage, rows.RUN]
        split = rows.split_column(settings.split, settings.seed, rows.split_key(columns))
        pairs = rows.named_runs(pairs, self.runs).withColumn("split", split)
        pairs = pairs.select(*columns, "split")
        data = storage.join(self.folder, "data")
        with progress(self.spark, "writing shards", self.expected.total()):
            rows.write_shards(pairs, data, self._shards(), settings.seed)
        for file in storage.list_files(data):  # includes checksums and markers of Spark
            if file.uri.rpartition("/")[2].startswith((".", "_")):
                storage.delete(file.uri)
        schema = pairs.drop("split").schema
        self.columns = {field.name: field.dataType.simpleString() for field in schema}

    @timed("count")
    def count(self) -> None:
        """Counts the written rows.

        Raises RuntimeError unless the runs' rows equal those written plus the duplicates.
        """
        with progress(self.spark, "counting", self.expected.total()):
            written = rows.read_release(self.spark, self.folder)
            self.scores, self.lengths, self.judgements = count_written(written)
            self.lineage = count_lineage(self.spark, self.folder, self.columns)
        counts = pairs_by(self.scores, "origin", "stage")
        for key in {*self.in_runs, *counts}:
            if self.in_runs[key] != counts[key] + self.duplicates[key]:
                raise RuntimeError(
                    f"{key[0]}, stage {key[1]}: {self.in_runs[key]} rows in the runs, but "
                    f"{counts[key]} written + {self.duplicates[key]} duplicates; "
                    "nothing was published"
                )

    @timed("pictures")
    def draw(self) -> None:
        for name, png in (
            ("scores.png", plots.draw_scores(self.scores)),
            ("judgements.png", plots.draw_judgements(self.judgements)),
            ("lengths.png", plots.draw_lengths(self.lengths, LENGTH_BINS)),
        ):
            storage.write(storage.join(self.folder, name), png)
        storage.delete(storage.join(self.folder, store.STARTED))

    @timed("files")
    def describe(self) -> ReleaseManifest:
        """Writes the card, and returns the manifest without its seconds."""
        shards = storage.list_files(storage.join(self.folder, "data"))
        data = describe_files(self.spark, self.folder, shards)
        manifest = self._manifest().model_copy(update={"files": data})
        if sum(file.rows for file in manifest.data_files) != self.scores["pairs"].sum():
            raise RuntimeError("the files' footers do not match their rows; nothing was published")
        storage.write(storage.join(self.folder, "README.md"), card(manifest))
        storage.write(storage.join(self.folder, "croissant.json"), croissant(manifest))
        files = storage.list_files(self.folder)
        others = [file for file in files if not file.uri.startswith(f"{self.folder}/data/")]
        described = describe_files(self.spark, self.folder, others)
        return manifest.model_copy(update={"files": [*described, *data]})

    def _manifest(self) -> ReleaseManifest:
        """Returns the manifest without its files and seconds."""
        by_folder = pairs_by(self.scores, "split", "stage", "origin")
        counts: dict[str, dict[int, dict[str, int]]] = {}
        for split, stage, origin in product(SPLITS, STAGES, ORIGINS):
            if pairs := by_folder[split, stage, origin]:
                counts.setdefault(split, {}).setdefault(stage, {})[origin] = int(pairs)
        origins, quantiles = {}, {}
        for origin in ORIGINS:
            if in_runs := _of(self.in_runs, origin):
                twice = _of(self.duplicates, origin)
                origins[origin] = ReleaseRows(
                    in_runs=in_runs, duplicates=twice, released=in_runs - twice
                )
                scores = self.scores[self.scores["origin"] == origin]
                bins = pairs_by(scores, "bin")
                quantiles[origin] = {share: quantile(bins, share) for share in QUANTILES}
        request = self.request
        return ReleaseManifest(
            version=request.version,
            name=f"gaixie-{request.version}",
            title=request.title,
            license=request.license,
            created=now("microseconds"),
            gaixie=version("gaixie"),
            spark=self.spark.version,
            signature=self.runs[0].manifest.signature,
            build=self.folder.rpartition("/")[2],
            moves_latest=not request.no_latest,
            settings=self.settings,
            runs=[
                SourceRunEntry(
                    run_id=run.run_id,
                    created=run.manifest.created,
                    manifest_sha256=run.digest,
                    rows=run.rows.total(),
                )
                for run in self.runs
            ],
            columns=self.columns,
            rows=origins,
            counts=counts,
            quantiles=quantiles,
            judgements=_means(self.judgements),
            lineage=self.lineage,
            seconds={},
            files=[],
        )

    def publish(self, manifest: ReleaseManifest) -> None:
        """Creates the manifest, which makes the release exist; only the first process can.

        If the store never answers, the manifest may exist: then the build folder stays.
        """
        seconds = {step: round(value, 3) for step, value in self.seconds.items()}
        stamp = {"created": now("microseconds"), "seconds": seconds}
        manifest = manifest.model_copy(update=stamp)
        root = self.request.root
        path = store.manifest_of(root, manifest.version)
        try:
            storage.create(path, manifest.to_json())
        except FileExistsError:
            storage.delete(self.folder)
            raise JobError(
                f"{path}: another process published release '{manifest.version}' in the meantime; "
                "this one was deleted"
            ) from None
        self._print_counts()
        for split in manifest.counts:
            print(f"{split}: {manifest.pairs_of(split):,} pairs")
        data = manifest.data_files
        print(f"{len(data)} Parquet files, {sum(file.bytes for file in data) / 1e6:,.1f} MB")
        print(f"signature: {manifest.signature}")
        print(f"manifest: {path}")
        print(f"card: {self.folder}/README.md")
        if manifest.moves_latest:
            print(f"{store.latest_of(root)}: {store.move_latest(root, manifest)}")

    def _print_counts(self) -> None:
        """Prints the pairs to release by origin and stage, and the number of duplicates."""
        stages = self.settings.stages
        table = _table(
            "origin", "in the runs", "duplicates", *[f"stage {s}" for s in stages], "released"
        )
        for name in [*ORIGINS, "total"]:
            origin = None if name == "total" else name
            if in_runs := _of(self.in_runs, origin):
                by_stage = [_of(self.expected, origin, stage) for stage in stages]
                numbers = (in_runs, _of(self.duplicates, origin), *by_stage, sum(by_stage))
                table.add_row(name, *[f"{number:,}" for number in numbers])
        for column in table.columns[1:]:
            column.justify = "right"
        _console().print(table)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def _table(*names: str) -> Table:
    return Table(*names, box=box.SIMPLE, show_edge=False, pad_edge=False)


def _of(
    counts: Counter[tuple[str, int]], origin: str | None = None, stage: int | None = None
) -> int:
    """Counts the pairs of an origin and a stage; None covers all of them."""
    return sum(
        pairs
        for (one, two), pairs in counts.items()
        if origin in (None, one) and stage in (None, two)
    )


def _means(judgements: pd.DataFrame) -> dict[int, dict[str, float]]:
    """Returns the mean of each output by stage. judgements: see Counts."""
    sums = judgements.groupby(["stage", "output"])[["sum", "pairs"]].sum()
    means = (sums["sum"] / sums["pairs"]).round(4).to_dict()
    return {
        stage: {name: means[stage, name] for name in OUTPUTS}
        for stage in STAGES
        if (stage, OUTPUTS[0]) in means
    }
