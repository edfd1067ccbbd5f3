"""The steps of a release, from published runs to its manifest, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import product
from secrets import token_hex
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from gaixie.jobs.corpus.input import LICENSE
from gaixie.jobs.corpus.parquet import data_files, digests, read_table
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.runs import now
from gaixie.jobs.corpus.session import set_shuffle_partitions, start_session
from gaixie.jobs.releases import rows, store
from gaixie.jobs.releases.card import card, croissant, cut_apart
from gaixie.jobs.releases.request import ReleaseRequest
from gaixie.udfs.command_line import UserError, say
from gaixie.udfs.reports import print_table
from gaixie.udfs.spark import score_bin_column
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS, STAGES, quantile
from gaixie.udfs.storage import manifest as manifests
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.published_files import THREADS
from gaixie.udfs.text.splits import SPLITS

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

ROWS_PER_PARTITION = 1_000_000
"""Rows that one task searches for duplicates; it sees only identities."""

LICENCES = 100
"""Maximum licences of inputs that are looked at: a licence may be any text."""

CARDS = {"README.md": card, "croissant.json": croissant}

Counts = Counter[tuple[str, int]]
"""Counts pairs by origin and stage."""


@dataclass(frozen=True)
class ReleaseBuild:
    """One release in the making."""

    spark: SparkSession
    request: ReleaseRequest
    runs: list[rows.SourceRun]
    folder: str

    @property
    def in_runs(self) -> Counts:
        return sum((run.rows for run in self.runs), Counter())

    def pairs(self) -> DataFrame:
        """Reads the pairs of all runs, with the run's number in run."""
        return rows.read_runs(self.spark, self.runs, self.request)

    def shards(self, expected: Counts) -> dict[tuple[str, int], int]:
        """Returns the number of files of each (split, stage). expected: pairs to write."""
        settings, by_stage = self.request.settings, Counter[int]()
        for (_, stage), pairs in expected.items():
            by_stage[stage] += pairs
        bytes_per_pair = sum(run.bytes for run in self.runs) / self.in_runs.total()
        each = settings.shards_mb * 1e6 / bytes_per_pair
        return {
            (split, stage): max(round(pairs * share / each), 1)
            for split, share in settings.split.items()
            for stage, pairs in sorted(by_stage.items())
            if share > 0
        }


def release(request: ReleaseRequest) -> None:
    """Checks the runs, drops duplicates, writes the shards, counts them, and publishes."""
    runs = _check(request)
    spark = start_session("gaixie release_dataset", [storage.spark_uri(request.root)])
    folder = storage.join(store.folder_of(request.root, request.version), f"build-{token_hex(4)}")
    build = ReleaseBuild(spark, request, runs, folder)
    licences = _declared_licences(build)
    _check_licences(request, licences)
    try:
        if not request.dry_run:  # a root without write permission must fail before the work
            note = {"version": request.version, "runs": request.runs}
            storage.write_json(storage.join(folder, store.STARTED), note)
        rows.check_digests(spark, runs)
        duplicates = count_duplicates(build)
        if request.dry_run:
            _print_dry_run(build, duplicates)
            return
        kinds = write_data(build, duplicates)
        manifest = describe(build, kinds, count_written(build, duplicates), duplicates, licences)
    except BaseException:
        with suppress(OSError):
            storage.delete(folder)
        raise
    publish(build, manifest, duplicates)


def _check(request: ReleaseRequest) -> list[rows.SourceRun]:
    """Returns the runs. Raises UserError if they cannot be released together, or the version is."""
    path = store.manifest_of(request.root, request.version)
    if storage.exists(path):
        raise UserError(f"{path}: release '{request.version}' is published; use another --version")
    find = partial(rows.find_run, stages=request.stages, keep=request.keep_columns)
    runs = [find(request.root, name) for name in request.runs]
    rows.check_alike(runs, request.keep_columns)
    if not any(run.rows for run in runs):
        stages = " ".join(map(str, request.stages))
        raise UserError(f"{runs[0].folder}: no pairs in stages {stages}")
    used = [run.manifest for run in runs if run.rows]
    licences = {
        one.get("license")
        for run in used
        for one, read in zip(run.settings.get("inputs", []), run.inputs, strict=False)
        if read.files
    }
    _check_licences(request, licences - {None})
    for origin in cut_apart([run.cuts for run in used]):
        say(f"warning: the runs have other cut points of {origin}; score_corpus.py --cuts-of")
    return runs


def _check_licences(request: ReleaseRequest, declared: Iterable[str]) -> None:
    """Raises UserError if a declared licence is not the release's, and no note says why."""
    given = request.license
    other = sorted(name for name in declared if name.lower() != given.lower())
    if other and not request.license_note:
        names = ", ".join(map(repr, other))
        hint = "release under that, or say with --license-note why this one may be given"
        raise UserError(f"--license {given}: inputs of the runs declare {names}; {hint}")


def _declared_licences(build: ReleaseBuild) -> list[str]:
    """Returns the licences in the pairs' own column."""
    pairs = build.pairs()
    if LICENSE not in pairs.columns:
        return []
    found = pairs.select(LICENSE).where(F.col(LICENSE).isNotNull()).distinct()
    return sorted(name for [name] in found.limit(LICENCES).collect())


def count_duplicates(build: ReleaseBuild) -> Counts:
    """Counts the rows whose pair an earlier run has; a single run has each pair once."""
    in_runs = build.in_runs.total()
    set_shuffle_partitions(build.spark, in_runs // ROWS_PER_PARTITION)
    if sum(bool(run.rows) for run in build.runs) < 2:
        return Counter()
    with progress(build.spark, "finding duplicates", in_runs):
        counts = rows.find_duplicates(build.pairs()).groupBy("origin", "stage").count()
        return Counter({(origin, stage): pairs for origin, stage, pairs in counts.collect()})


def write_data(build: ReleaseBuild, duplicates: Counts) -> dict[str, str]:
    """Writes the shards, and returns the types of their columns."""
    pairs, settings = build.pairs(), build.request.settings
    if duplicates:
        twice = rows.find_duplicates(pairs)
        pairs = rows.drop_duplicates(pairs, twice, duplicates.total()).select(*pairs.columns)
    pairs = rows.named_runs(pairs, build.runs)
    split = rows.split_column([*settings.split.values()], settings.seed, pairs.columns)
    data, expected = storage.join(build.folder, "data"), build.in_runs - duplicates
    with progress(build.spark, "writing shards", expected.total()):
        shards = build.shards(expected)
        rows.write_shards(pairs.withColumn("split", split), data, shards, settings.seed)
    written = {file.uri for file in data_files(data)}
    for file in storage.list_files(build.folder):  # checksums and markers of Spark, and STARTED
        if file.uri not in written:
            storage.delete(file.uri)
    return {field.name: field.dataType.simpleString() for field in pairs.schema}


def count_written(build: ReleaseBuild, duplicates: Counts) -> pd.DataFrame:
    """Counts the written rows, reading them once: columns split, stage, origin, bin (of the score),
    pairs, and for each of OUTPUTS the sum of its values.

    Raises RuntimeError unless the runs' rows equal those written plus the duplicates, each in the
    folder of its stage.
    """
    keys = "split", "subset", "stage", "origin", score_bin_column().alias("bin")
    sums = [F.sum(F.col(output).cast("double")).alias(output) for output in OUTPUTS]
    folders = [StructField(name, StringType()) for name in ("split", "subset")]
    schema, in_runs = StructType([*rows.COLUMNS, *folders]), build.in_runs
    with progress(build.spark, "counting", in_runs.total()):
        written = read_table(build.spark, storage.join(build.folder, "data"), schema=schema)
        table = written.groupBy(*keys).agg(F.count(F.lit(1)).alias("pairs"), *sums).toPandas()
    counts = table[table.pop("subset") == "stage-" + table["stage"].astype(str)]
    found = pairs_by(counts, "origin", "stage")
    for key in {*in_runs, *found}:
        if in_runs[key] != found[key] + duplicates[key]:
            fault = f"{found[key]} written + {duplicates[key]} duplicates; nothing was published"
            raise RuntimeError(f"{key[0]}, stage {key[1]}: {in_runs[key]} in the runs, but {fault}")
    return counts


def pairs_by(counts: pd.DataFrame, *keys: str) -> Counter[Any]:
    """Sums the pairs of a table of counts by one or more keys."""
    by: Any = [*keys] if len(keys) > 1 else keys[0]
    return Counter(counts.groupby(by)["pairs"].sum().to_dict())


def describe(
    build: ReleaseBuild,
    kinds: dict[str, str],
    counts: pd.DataFrame,
    duplicates: Counts,
    licences: Sequence[str],
) -> manifests.ReleaseManifest:
    """Writes the cards, and returns the manifest with all files.

    Raises RuntimeError if the footers of the files do not match their rows.
    """
    data = _describe_files(build, storage.list_files(storage.join(build.folder, "data")))
    manifest = _manifest(build, kinds, counts, duplicates)
    manifest = manifest.model_copy(update={"input_licenses": licences, "files": data})
    if sum(file.rows for file in manifest.data_files) != counts["pairs"].sum():
        raise RuntimeError("the files' footers do not match their rows; nothing was published")
    for name, text_of in CARDS.items():
        storage.write(storage.join(build.folder, name), text_of(manifest))
    cards = [f for f in storage.list_files(build.folder) if f.uri.rpartition("/")[2] in CARDS]
    return manifest.model_copy(update={"files": [*_describe_files(build, cards), *data]})


def _describe_files(build: ReleaseBuild, files: list[storage.File]) -> list[manifests.ReleaseFile]:
    """Describes files of a release for its manifest.

    The executors read the files; the driver reads the Parquet footers.
    """
    sums = digests(build.spark, [file.uri for file in files])

    def describe_one(file: storage.File) -> manifests.ReleaseFile:
        path = file.uri.removeprefix(f"{build.folder}/")
        entry = manifests.ReleaseFile(path=path, bytes=file.size, sha256=sums[file.uri])
        if not path.endswith(".parquet"):
            return entry
        with storage.open_file(file.uri) as opened:
            return manifests.DataFile(**dict(entry), rows=pq.read_metadata(opened).num_rows)

    with ThreadPoolExecutor(THREADS) as pool:
        return [*pool.map(describe_one, files)]


def _manifest(
    build: ReleaseBuild, kinds: dict[str, str], counts: pd.DataFrame, duplicates: Counts
) -> manifests.ReleaseManifest:
    """Returns the manifest without its files."""
    request, in_runs, left_out = build.request, by_origin(build.in_runs), by_origin(duplicates)
    by_folder = pairs_by(counts, "split", "stage", "origin")
    by_split: dict[str, dict[int, dict[str, int]]] = {}
    for split, stage, origin in product(SPLITS, STAGES, ORIGINS):
        if pairs := by_folder[split, stage, origin]:
            by_split.setdefault(split, {}).setdefault(stage, {})[origin] = int(pairs)
    bins = {origin: pairs_by(counts[counts["origin"] == origin], "bin") for origin in in_runs}
    sums = counts.groupby("stage")[["pairs", *OUTPUTS]].sum()
    means = sums[[*OUTPUTS]].div(sums["pairs"], axis=0).round(4)
    runs = [
        manifests.SourceRunEntry(
            run_id=run.run_id,
            created=run.manifest.created,
            manifest_sha256=run.digest,
            rows=run.rows.total(),
            cuts=run.manifest.cuts,
        )
        for run in build.runs
    ]
    accounts = {
        origin: manifests.ReleaseRows(
            in_runs=pairs, duplicates=left_out[origin], released=pairs - left_out[origin]
        )
        for origin, pairs in in_runs.items()
    }
    return manifests.ReleaseManifest(
        **request.model_dump(include={"version", "title", "license", "license_note"}),
        name=f"gaixie-{request.version}",
        created=now("microseconds"),
        gaixie=version("gaixie"),
        spark=build.spark.version,
        signature=build.runs[0].manifest.signature,
        build=build.folder.rpartition("/")[2],
        settings=request.settings,
        runs=runs,
        columns=kinds,
        rows=accounts,
        counts=by_split,
        quantiles={o: {s: quantile(of, s) for s in QUANTILES} for o, of in bins.items()},
        judgements={int(n): means.loc[n].to_dict() for n in means.index.to_numpy()},
        files=[],
    )


def publish(build: ReleaseBuild, manifest: manifests.ReleaseManifest, duplicates: Counts) -> None:
    """Creates the manifest, which makes the release exist; of several processes, only one can.

    If the store never answers, the manifest may exist: then the build folder stays.
    """
    root = build.request.root
    path = store.manifest_of(root, manifest.version)
    try:
        storage.create(path, manifest.to_json())
    except FileExistsError:
        storage.delete(build.folder)
        fault = f"another process published release '{manifest.version}' in the meantime"
        raise UserError(f"{path}: {fault}; this one was deleted") from None
    store.set_latest(root, manifest.version)
    _print_counts(build, duplicates)
    for split in manifest.counts:
        print(f"{split}: {manifest.pairs_of(split):,} pairs")
    size = sum(file.bytes for file in manifest.data_files) / 1e6
    print(f"{len(manifest.data_files)} Parquet files, {size:,.1f} MB")
    print(f"signature: {manifest.signature}")
    print(f"manifest: {path}")
    print(f"card: {build.folder}/README.md")
    print(f"{store.latest_of(root)}: {manifest.version}")


def _print_dry_run(build: ReleaseBuild, duplicates: Counts) -> None:
    """Prints what would be released."""
    _print_counts(build, duplicates)
    print(f"signature: {build.runs[0].manifest.signature}")
    path = store.manifest_of(build.request.root, build.request.version)
    print(f"would publish {path}; dry run: nothing was written")


def _print_counts(build: ReleaseBuild, duplicates: Counts) -> None:
    """Prints the pairs to release by origin and stage, and the number of duplicates."""
    stages, left_out = build.request.stages, by_origin(duplicates)
    released = build.in_runs - duplicates
    rows_of = {
        origin: [pairs, left_out[origin], *(released[origin, stage] for stage in stages)]
        for origin, pairs in by_origin(build.in_runs).items()
    }
    rows_of["total"] = [sum(column) for column in zip(*rows_of.values(), strict=True)]
    table = [[name, *[f"{n:,}" for n in (*row, sum(row[2:]))]] for name, row in rows_of.items()]
    names = [f"stage {stage}" for stage in stages]
    print_table(["origin", "in the runs", "duplicates", *names, "released"], table)


def by_origin(counts: Counts) -> Counter[str]:
    """Sums the counts of each origin that has pairs."""
    sums: Counter[str] = Counter()
    for (origin, _), pairs in sorted(counts.items(), key=lambda item: ORIGINS.index(item[0][0])):
        sums[origin] += pairs
    return +sums
