"""The steps of one release, and what can be asked of releases that are published."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from importlib.metadata import version
from itertools import product
from secrets import token_hex

from pyspark.sql import DataFrame, SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from gaixie.jobs.corpus.progress import progress, timed
from gaixie.jobs.corpus.publish import now
from gaixie.jobs.corpus.session import set_shuffle_partitions, start_session
from gaixie.jobs.errors import JobError
from gaixie.jobs.releases.card import card
from gaixie.jobs.releases.croissant import croissant
from gaixie.jobs.releases.plots import draw_judgements, draw_lengths, draw_scores
from gaixie.jobs.releases.rows import (
    COLUMNS,
    LENGTH_BINS,
    RUN,
    Counts,
    Judged,
    SourceRun,
    check_digests,
    check_signatures,
    count_lineage,
    drop_duplicates,
    find_duplicates,
    find_run,
    judged,
    lineage_of,
    named_runs,
    read_release,
    read_runs,
    recount,
    shards_of,
    split_column,
    split_key,
    write_shards,
)
from gaixie.jobs.releases.store import (
    ReleaseRequest,
    folder_of,
    latest_of,
    manifest_of,
    move_latest,
    published,
    published_release,
    read_latest,
)
from gaixie.jobs.releases.trace import trace
from gaixie.jobs.releases.verify import describe_files, faults_of
from gaixie.udfs.command_line import say
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS, STAGES, quantile
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import (
    ReleaseLineage,
    ReleaseManifest,
    ReleaseRows,
    SourceRunEntry,
)
from gaixie.udfs.text.splits import GROUP, SPLITS

STARTED = "started.json"
"""First file of a build folder, gone before the release is published."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

ROWS_PER_PARTITION = 1_000_000
"""Rows that a task looks through for duplicates, of which it sees identities only."""


def session(root: str) -> SparkSession:
    return start_session("gaixie release_dataset", [storage.spark_uri(root)])


def list_releases(root: str) -> int:
    """Prints the published versions, the oldest first."""
    names = ("version", "created", "pairs", "stages", "licence", "runs", "")
    table = Table(*names, box=box.SIMPLE, show_edge=False, pad_edge=False)
    latest = read_latest(root)
    for manifest in published(root):
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
    """Prints each fault of a published release as a line that begins with the file."""
    manifest = published_release(root, name)
    faults = faults_of(root, manifest, lambda: session(root))
    for fault in faults:
        print(fault)
    print(
        f"release {name}: {len(manifest.files)} files, {manifest.pairs:,} pairs: "
        f"{len(faults) or 'no'} faults"
    )
    return 1 if faults else 0


def trace_pair(root: str, name: str | None, pair_id: str) -> int:
    """Prints where a pair of a release comes from. name: a version; by default the latest."""
    name = name or read_latest(root)
    if name is None:
        raise JobError(f"{root}: no published release")
    width = 12
    for what, value in trace(root, published_release(root, name), pair_id):
        print(f"{what:<{width}}{' '.join(value.splitlines())}")
    return 0


def release(request: ReleaseRequest) -> int:
    path = manifest_of(request.root, request.version)
    if storage.exists(path):
        raise JobError(f"{path}: release '{request.version}' is published; take another --version")
    stages, columns = request.stages, request.keep_columns
    runs = [find_run(request.root, name, stages, columns) for name in request.runs]
    check_signatures(runs)
    if not any(run.rows for run in runs):
        raise JobError(
            f"{runs[0].folder}: no pairs in stages {' '.join(map(str, stages))} of "
            f"{'this run' if len(runs) == 1 else 'these runs'}"
        )
    if any(GROUP in run.lineage for run in runs) and GROUP not in lineage_of(runs):
        lacking = next(run.run_id for run in runs if run.rows and GROUP not in run.lineage)
        say(f"run '{lacking}' has no column 'group': the release is split by source sentence")
    folder = storage.join(folder_of(request.root, request.version), f"build-{token_hex(4)}")
    try:
        if not request.dry_run:  # a root that may not be written shows itself before the work
            note = {"version": request.version, "runs": request.runs}
            storage.write_json(storage.join(folder, STARTED), note)
        spark = session(request.root)
        check_digests(spark, runs)
        job = Release(spark, request, runs, folder)
        job.find_duplicates()
        if request.dry_run:
            job.dry_run()
            return 0
        job.write_data()
        manifest = job.describe()
    except BaseException:
        with suppress(OSError):
            storage.delete(folder)
        raise
    manifest = job.publish(manifest)
    if not request.no_latest:
        print(f"{latest_of(request.root)}: {move_latest(request.root, manifest)}")
    return 0


class Release:
    """The steps of one release, in the order in which release calls them."""

    def __init__(
        self, spark: SparkSession, request: ReleaseRequest, runs: list[SourceRun], folder: str
    ):
        self.spark, self.request, self.settings = spark, request, request.settings
        self.runs, self.folder = runs, folder
        self.rows: Counter[tuple[str, int]] = sum((run.rows for run in runs), Counter())
        """Pairs by origin and stage: of the runs, and what they are less the duplicates."""
        self.duplicates: Counter[tuple[str, int]] = Counter()
        self.columns: dict[str, str] = {}
        self.lineage: list[ReleaseLineage] = []
        self.seconds: dict[str, float] = {}

    def _pairs(self) -> DataFrame:
        return read_runs(self.spark, self.runs, self.settings.stages, self.settings.keep_columns)

    @timed("duplicates")
    def find_duplicates(self) -> None:
        """Counts the rows whose pair an earlier run has; a single run has each pair once."""
        set_shuffle_partitions(self.spark, self.rows.total() // ROWS_PER_PARTITION)
        if sum(bool(run.rows) for run in self.runs) > 1:
            with progress(self.spark, "finding duplicates", self.rows.total()):
                counts = find_duplicates(self._pairs()).groupBy("origin", "stage").count()
                for origin, stage, count in counts.collect():
                    self.duplicates[origin, stage] += count

    def _shards(self) -> dict[tuple[str, int], int]:
        size = sum(run.bytes_per_row * run.rows.total() for run in self.runs) / self.rows.total()
        return shards_of(self.rows - self.duplicates, self.settings, size)

    def dry_run(self) -> None:
        """Says what would be released."""
        _console().print(_counts_table(self.rows, self.duplicates, self.settings.stages))
        for (split, stage), files in self._shards().items():
            share = self.settings.split[split]
            print(f"{split} stage {stage}: {share:.2%} of its pairs, about {files} files")
        print(f"signature: {self.runs[0].manifest.signature}")
        path = manifest_of(self.request.root, self.request.version)
        print(f"would publish {path}; dry run: nothing written")

    @timed("write")
    def write_data(self) -> None:
        rows = self._pairs()
        if self.duplicates:
            rows = drop_duplicates(rows, find_duplicates(rows), self.duplicates.total())
        columns = [*COLUMNS.names, *self.settings.keep_columns, *lineage_of(self.runs), RUN]
        split = split_column(self.settings.split, self.settings.seed, split_key(columns))
        rows = named_runs(rows, self.runs).withColumn("split", split).select(*columns, "split")
        data = storage.join(self.folder, "data")
        with progress(self.spark, "writing shards", (self.rows - self.duplicates).total()):
            write_shards(rows, data, self._shards(), self.settings.seed)
        for file in storage.list_files(data):  # checksums and markers of Spark's file systems
            if file.uri.rpartition("/")[2].startswith((".", "_")):
                storage.delete(file.uri)
        self.columns = {f.name: f.dataType.simpleString() for f in rows.drop("split").schema}

    def describe(self) -> ReleaseManifest:
        """Counts what was written, closes the accounts, and writes card and plots."""
        counts, outputs = self._count()
        self._draw(counts, outputs)
        manifest = self._describe_files(counts, outputs)
        seconds = {step: round(value, 3) for step, value in self.seconds.items()}
        return manifest.model_copy(update={"seconds": seconds})

    @timed("count")
    def _count(self) -> tuple[Counts, Judged]:
        with progress(self.spark, "counting", (self.rows - self.duplicates).total()):
            counts = recount(read_release(self.spark, self.folder))
            outputs = judged(read_release(self.spark, self.folder))
            self.lineage = count_lineage(self.spark, self.folder, self.columns)
        self._close_accounts(counts)
        return counts, outputs

    @timed("pictures")
    def _draw(self, counts: Counts, outputs: Judged) -> None:
        for name, png in (
            ("scores.png", draw_scores(counts.bins)),
            ("judgements.png", draw_judgements(outputs.bins)),
            ("lengths.png", draw_lengths(counts.lengths, LENGTH_BINS)),
        ):
            storage.write(storage.join(self.folder, name), png)
        storage.delete(storage.join(self.folder, STARTED))

    @timed("files")
    def _describe_files(self, counts: Counts, outputs: Judged) -> ReleaseManifest:
        data = describe_files(self.folder, storage.list_files(storage.join(self.folder, "data")))
        manifest = self._manifest(counts, outputs).model_copy(update={"files": data})
        if sum(file.rows for file in manifest.data_files) != counts.rows.total():
            raise RuntimeError("the files' footers and their rows differ; nothing was published")
        storage.write(storage.join(self.folder, "README.md"), card(manifest))
        storage.write(storage.join(self.folder, "croissant.json"), croissant(manifest))
        files = storage.list_files(self.folder)
        others = [file for file in files if not file.uri.startswith(f"{self.folder}/data/")]
        return manifest.model_copy(update={"files": [*describe_files(self.folder, others), *data]})

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

    def _manifest(self, counts: Counts, outputs: Judged) -> ReleaseManifest:
        """The manifest but for its files and seconds."""
        nested: dict[str, dict[int, dict[str, int]]] = {}
        for split, stage, origin in product(SPLITS, STAGES, ORIGINS):
            if pairs := counts.rows[split, stage, origin]:
                nested.setdefault(split, {}).setdefault(stage, {})[origin] = pairs
        rows, quantiles = {}, {}
        for origin in ORIGINS:
            if in_runs := _of(self.rows, origin):
                duplicates = _of(self.duplicates, origin)
                rows[origin] = ReleaseRows(
                    in_runs=in_runs, duplicates=duplicates, released=in_runs - duplicates
                )
                bins = sum((c for (name, _), c in counts.bins.items() if name == origin), Counter())
                quantiles[origin] = {share: quantile(bins, share) for share in QUANTILES}
        means: dict[int, dict[str, float]] = {}
        for stage, name in product(STAGES, OUTPUTS):
            if (stage, name) in outputs.means:
                means.setdefault(stage, {})[name] = round(outputs.means[stage, name], 4)
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
            rows=rows,
            counts=nested,
            quantiles=quantiles,
            judgements=means,
            lineage=self.lineage,
            seconds={},
            files=[],
        )

    def publish(self, manifest: ReleaseManifest) -> ReleaseManifest:
        """Creates the manifest, which makes the release exist; who comes second has lost.

        Where the store never answers, the manifest may be there: then the build folder stays.
        Returns the manifest with the time of its publication.
        """
        manifest = manifest.model_copy(update={"created": now("microseconds")})
        path = manifest_of(self.request.root, manifest.version)
        try:
            storage.create(path, manifest.to_json())
        except FileExistsError:
            storage.delete(self.folder)
            raise JobError(
                f"{path}: someone else published release '{manifest.version}' in the meantime; "
                "nothing of this one was kept"
            ) from None
        _console().print(_counts_table(self.rows, self.duplicates, self.settings.stages))
        for split, stages in manifest.counts.items():
            print(f"{split}: {sum(sum(n.values()) for n in stages.values()):,} pairs")
        data = manifest.data_files
        print(f"{len(data)} Parquet files, {sum(file.bytes for file in data) / 1e6:,.1f} MB")
        print(f"signature: {manifest.signature}")
        print(f"manifest: {path}")
        print(f"card: {self.folder}/README.md")
        return manifest


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def _of(counts: Counter[tuple[str, int]], origin: str) -> int:
    """Pairs of an origin in all stages."""
    return sum(pairs for (name, _), pairs in counts.items() if name == origin)


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
