"""One building of pairs, from its lock to its manifest."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from math import ceil
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.accounts import escape_undecodable, written_files
from gaixie.jobs.corpus.early import SMALL_BYTES, local_bytes
from gaixie.jobs.corpus.inputs import MALFORMED_LINE, line_fault
from gaixie.jobs.corpus.parquet import CHECKED, PARQUET, write_partitioned
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.publish import held, needs_spark
from gaixie.jobs.corpus.session import begin_session
from gaixie.jobs.corpus.settings import Input
from gaixie.jobs.corpus.steps import Steps
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.corpus.unreadable import SPARK_ERRORS
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.back_translation import BackTranslation
from gaixie.jobs.pairs.fitness import judge_columns
from gaixie.jobs.pairs.llm.method import Llm
from gaixie.jobs.pairs.making import MADE, by_reason, make_pairs
from gaixie.jobs.pairs.method import Method
from gaixie.jobs.pairs.parallel import Parallel, Translated
from gaixie.jobs.pairs.pieces import Pieces
from gaixie.jobs.pairs.read import Rows, open_input
from gaixie.jobs.pairs.settings import BuildSettings
from gaixie.jobs.pairs.simplify import Simplify
from gaixie.jobs.pairs.translation import share_models
from gaixie.jobs.pairs.versions import Versions
from gaixie.jobs.pairs.writing import Sentences, Settling
from gaixie.udfs.storage.manifest import NAME, PairsManifest
from gaixie.udfs.storage.progress import Progress

Table = Literal["pairs", "quarantine", "clusters", "references"]
PAIRS: Table = "pairs"
QUARANTINE: Table = "quarantine"
BESIDE: tuple[Table, ...] = ("clusters", "references")
"""Further tables of a method."""
WORK = "_work"


def build_pairs(
    settings: BuildSettings, limit: int | None, resume: bool, take_over: bool, dry_run: bool
) -> int:
    """Makes the pairs and publishes them; the job's exit code.

    limit: rows that are read. resume: go on with what a killed building left. take_over: its lock too,
    from another host. dry_run: say what would become of the first rows, and write nothing.
    """
    assert settings.output is not None
    output = settings.output.rstrip("/")
    inputs = [Input(path=path, origin=settings.origin) for path in settings.paths]
    small = local_bytes(inputs) < SMALL_BYTES
    with begin_session("gaixie build_pairs", [output, *settings.paths], small) as wait:
        method = _method(settings, False)  # while Java starts
        if isinstance(method, Sentences):
            method.check()
        spark = wait()
    files = Storage(spark)
    if _published(files.exists, output, resume):
        return 0
    if dry_run:
        _kind(settings)(spark, files, settings, output, limit).dry_run()
        return 0
    with held(output, take_over, files if needs_spark(output) else None) as lock:
        if _published(files.exists, output, resume):
            return 0
        job = _kind(settings)(spark, files, settings, output, limit)
        job.check_lock = lock.check
        job.start(resume)
        job.judge()
        job.make()
        job.write_pairs()
        job.write_quarantine()
        job.publish()
    return 0


def _published(exists: Callable[[str], bool], output: str, resume: bool) -> bool:
    """Whether there is nothing left to do.

    Raises JobError where pairs are published otherwise, or lie that this job did not leave unfinished.
    """
    if exists(f"{output}/{NAME}"):
        if resume:
            print(f"{output}: its pairs are published already: nothing to do")
            return True
        raise JobError(f"{output}: something is published there; take another --output")
    for name in (PAIRS, QUARANTINE, *BESIDE):
        if exists(f"{output}/{name}") and not exists(f"{output}/{WORK}/started.json"):
            raise JobError(
                f"{output}/{name}: is there, and no building of pairs left it; take another --output"
            )
    return False


class BuildPairs:
    """The steps, in the order in which build_pairs calls them."""

    carried: tuple[str, ...] = ()
    """Columns of the method's items that are judged along."""

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
        self.steps = Steps(storage, f"{output}/{WORK}")
        self.pieces: Pieces | None = None
        """Of a method whose pairs a model writes, from make on."""
        self.figures: dict[str, Any] = {}
        """What the method says of its work, for the manifest."""
        self.started = time.monotonic()
        self.rows = self.read = self.fit = 0

    def start(self, resume: bool) -> None:
        """Clears away what a killed process left; with resume, all but its finished steps."""
        self.check_lock()
        for name in (PAIRS, QUARANTINE):
            self.storage.delete(f"{self.output}/{name}")
        deciding = self.settings.deciding() | {"limit": self.limit}
        deciding["inputs"] = [entry.model_dump() for entry in self.input.entries]
        self.steps.start(deciding, resume, self.output)

    def judge(self) -> None:
        """Reads the input once, and writes what can be in a pair apart from what cannot."""
        if counts := self.steps.done("judged"):
            self.rows, self.read, self.fit = counts["rows"], counts["read"], counts["fit"]
            return
        if self.input.convert:
            with Progress("reading TMX"):
                converted = self.input.convert(f"{self.output}/{WORK}/input")
            self.input = replace(self.input, rows=converted)
        rows, items = Observation(), Observation()
        judged = self.judged(self.limit, rows).observe(
            items,
            F.count(F.lit(1)).alias("count"),
            F.count_if(F.col("reason").isNull()).alias("fit"),
        )
        try:
            with progress(self.spark, "reading", None):
                self._write(judged.withColumn("fit", F.col("reason").isNull()), "judged", "fit")
        except SPARK_ERRORS as error:
            self.input.blame(error)
            raise
        self.rows, self.read = rows.get["count"], items.get["count"]
        self.fit = items.get["fit"]
        if not self.read:
            raise JobError(f"{self.settings.paths[0]}: no rows, expected at least one")
        self.steps.finish("judged", {"rows": self.rows, "read": self.read, "fit": self.fit})

    def judged(self, limit: int | None, observed: Observation | None) -> DataFrame:
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
            *self.carried,
        )

    def make(self) -> None:
        """Makes the pairs of each group; a model's, piece by piece."""
        fit = self._read("judged").where("fit")
        if isinstance(self.method, Sentences):
            self.pieces = self._pieces(self.method)
            if not self.steps.done("cut"):
                with progress(self.spark, "cutting pieces", None):
                    distinct = make_pairs(fit, self.method).drop("paraphrase")
                    self.pieces.cut(distinct, self.fit, self.settings.piece_sentences)
                self.steps.finish("cut", {})
            share_models(self.spark.sparkContext, self.method.models())
            self.figures = self.method.run(self.pieces)
        elif not self.steps.done("made"):
            with progress(self.spark, "making pairs", None):
                made = make_pairs(fit, self.method).withColumn("fit", F.col("reason").isNull())
                self._write(made, "made", "fit")
            self.steps.finish("made", {})

    def _pieces(self, method: Sentences) -> Pieces:
        settings = self.settings
        settling = Settling(
            settings.min_characters,
            settings.max_characters,
            settings.directions == "both",
            json.dumps(settings.parameters(), sort_keys=True, ensure_ascii=False),
        )
        work = f"{self.output}/{WORK}"
        return Pieces(self.spark, self.storage, work, settling, method.reads, self.check_lock)

    def _all_made(self) -> DataFrame:
        """Columns MADE, fit and parameters: pairs, and what came into none."""
        if self.pieces is None:
            parameters = json.dumps(self.settings.parameters(), sort_keys=True)
            return self._read("made").withColumn("parameters", F.lit(parameters))
        written = self.pieces.finished().where("NOT dropped").drop("dropped")
        made = written.unionByName(self.pieces.repeated(), allowMissingColumns=True)
        return made.withColumn("fit", F.col("reason").isNull())

    def write_pairs(self) -> None:
        pairs = self._all_made().where("fit")
        lineage = {
            "origin": self.settings.origin,
            "group": None,
            "method": self.settings.method,
            "model": self.settings.model or self.settings.translator,
            "version": self._version(),
            "parameters": None,
        }
        columns: dict[str, Column] = {
            name: F.lit(value).cast("string").alias(name) for name, value in lineage.items()
        } | {"group": F.col("group"), "parameters": F.col("parameters")}
        pairs = pairs.select("source", "paraphrase", *columns.values())
        self.check_lock()
        size = self._bytes("pieces" if self.pieces else "made")
        files = max(round(size / (self.settings.target_file_mb * 1e6)), 1)
        spread = pairs.repartition(files, "group")
        with progress(self.spark, "writing pairs", None):
            spread.write.options(**PARQUET).mode("overwrite").parquet(f"{self.output}/{PAIRS}")

    def _version(self) -> str | None:
        version = self.method.version() if isinstance(self.method, Sentences) else None
        return self.settings.model_version or version

    def write_quarantine(self) -> None:
        """Writes what is in no pair, a folder for each reason."""
        columns = ["source", "paraphrase", "foreign", MALFORMED_LINE, "reason"]
        rows = self._read("judged").where("NOT fit").select(*columns)
        left = self._all_made().where("NOT fit")
        left = left.withColumn(MALFORMED_LINE, F.lit(None).cast("string")).select(*columns)
        rows = rows.unionByName(left)
        counts = by_reason(rows)
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
            dropped=self._dropped(),
            figures=self.figures,
            seconds=round(time.monotonic() - self.started, 1),
            files={
                name: files
                for name in (PAIRS, QUARANTINE, *BESIDE)
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
        if isinstance(self.method, Sentences) and self.method.reads == "source":
            return pairs.select("group").distinct().count()  # each sentence makes a group
        if self.method.alone and self.pieces is None:
            items = pairs.select("group", F.explode(F.array(*texts)))
        else:
            items = pairs.select("group", F.least(*texts), F.greatest(*texts))
        return items.distinct().count()

    def _dropped(self) -> dict[str, int]:
        if self.pieces is None:
            return {}
        return dict(sorted(by_reason(self.pieces.finished().where("dropped")).items()))

    def _quarantined(self) -> Counter[str]:
        path = f"{self.output}/{QUARANTINE}"
        if not self.storage.exists(path):
            return Counter()
        return by_reason(self.spark.read.options(**CHECKED).parquet(path))

    def _print(self, manifest: PairsManifest) -> None:
        unit = self.method.unit
        print(f"{manifest.rows:,} rows read: {manifest.read:,} {unit}")
        print(f"  {manifest.used:>12,} in pairs")
        for reason, count in manifest.quarantine.items():
            print(f"  {count:>12,} in quarantine: {reason}")
        for reason, count in manifest.dropped.items():
            print(f"  {count:>12,} further candidates left out: {reason}")
        print(f"{manifest.pairs:,} pairs in {manifest.groups:,} groups ({manifest.seconds:.0f} s)")
        print(f"pairs: {self.output}/{PAIRS}")
        print(f"manifest: {self.output}/{NAME}")

    def dry_run(self) -> None:
        """Says what would become of the first rows."""
        from gaixie.jobs.pairs import dry_run

        dry_run.dry_run(self)

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
        if not self.storage.exists(path):
            return 0
        return sum(file.size for file in self.storage.list_files(path))


def _kind(settings: BuildSettings) -> type[BuildPairs]:
    if settings.method != "cluster":
        return BuildPairs
    from gaixie.jobs.pairs.cluster.build import ClusterPairs

    return ClusterPairs


def _method(settings: BuildSettings, json_lists: bool) -> Method:
    both = settings.directions == "both"
    if settings.method == "versions":
        return Versions(both, settings.max_pairs, settings.seed, json_lists)
    if settings.method == "back-translation":
        return BackTranslation.of(settings)
    if settings.method == "llm":
        return Llm.of(settings)
    if settings.method == "simplify":
        return Simplify.of(settings)
    if settings.translator:
        return Translated.of(settings)
    return Parallel(both)
