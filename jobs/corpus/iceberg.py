"""Adds published runs to an Apache Iceberg table, each once: write, audit, publish.

A run's rows are first written as a staged snapshot, which readers of the table do not see. They are
counted there and compared with the run's manifest; only then is the snapshot published. The table's
own rows show whether a run is in the table, so snapshots may expire. A killed process leaves a
staged snapshot, from which the next process continues, or files that no snapshot names, which
Iceberg's remove_orphan_files deletes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.corpus.parquet import CHECKED
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.errors import JobError
from gaixie.udfs.command_line import cause
from gaixie.udfs.spark import FEATURE_FIELDS, OUTPUT_FIELDS
from gaixie.udfs.storage.manifest import RunManifest

OWN = ("run", "signature")
"""Columns that the table adds to those of a run."""
KEYS = ("origin", "stage")
"""Partition columns of the table."""
WAP = "write.wap.enabled"
"""Table property without which Iceberg stages nothing."""

Counts = Counter[tuple[str, int, str]]
"""Counts of rows by origin, stage and signature."""


class IcebergTable:
    """A table, which may not exist yet."""

    def __init__(self, spark: SparkSession, name: str):
        """Opens a table. name: CATALOG.DATABASE.TABLE. Raises JobError if Spark does not know the
        catalogue, the catalogue does not answer, or the table is not an Iceberg table."""
        jvm: Any = spark._jvm
        self._spark, self._jvm, self.name = spark, jvm, name
        catalog = name.partition(".")[0]
        key = f"spark.sql.catalog.{catalog}"
        if spark.conf.get(key, None) is None:
            raise JobError(
                f"--table {name}: Spark knows no catalogue '{catalog}': set {key} to "
                f"org.apache.iceberg.spark.SparkCatalog, and {key}.type (docs/operations.md)"
            )
        try:
            self._jvm.org.apache.spark.util.Utils.classForName(
                "org.apache.iceberg.spark.SparkCatalog", False, False
            )
        except Exception as error:
            raise JobError(
                f"--table {name}: this Spark has no Iceberg: start spark-submit with the packages "
                f"in conf/spark/iceberg-jars.conf"
            ) from error
        with self._explained():
            self._exists = bool(spark.catalog.tableExists(name))
            columns = spark.table(name).columns if self._exists else [*OWN, *KEYS]
            if self._exists:
                self._load()
        if lacking := [column for column in (*OWN, *KEYS) if column not in columns]:
            raise JobError(f"--table {name}: not a table of runs: no column '{lacking[0]}'")

    def check(self, run_id: str, extra: Iterable[StructField]) -> str:
        """Returns one sentence that says what adding a run would do to the table.

        extra: columns carried through from the inputs. Raises JobError if the table has rows of a
        run with that name, or columns of other types.
        """
        fields = {field.name: field for field in extra}
        if taken := [name for name in OWN if name in fields]:
            raise JobError(
                f"--table {self.name}: the table has a column '{taken[0]}' of its own; rename the "
                "input's column"
            )
        texts = [StructField(n, StringType()) for n in ("pair_id", "source", "paraphrase", *OWN)]
        keys = [StructField("origin", StringType()), StructField("stage", IntegerType())]
        schema = StructType([*texts, *FEATURE_FIELDS, *OUTPUT_FIELDS, *fields.values(), *keys])
        with self._explained():
            wanted = self._iceberg(schema)
            if not self._exists:
                return f"would create the table {self.name} and add the scored pairs to it"
            self._load().updateSchema().unionByNameWith(wanted).apply()
        if self.rows_of(run_id):
            raise JobError(
                f"--table {self.name}: already has rows of run '{run_id}'; use another --run-id"
            )
        known = self._spark.table(self.name).columns
        new = ", ".join(name for name in schema.names if name not in known)
        new = f" and the columns {new}" if new else ""
        return f"would add the scored pairs{new} to the table {self.name}"

    def add(
        self, manifest: RunManifest, folder: str, check_lock: Callable[[], None] = lambda: None
    ) -> None:
        """Adds a published run unless the table has it, and prints which.

        folder: the run's folder. check_lock: raises if another process holds the run. Raises
        JobError if the table cannot take the run. Raises RuntimeError, and publishes nothing, if
        the audit fails.
        """
        run_id, expected = manifest.run_id, counts_of(manifest)
        there = self.rows_of(run_id) if self._exists else Counter()
        if not expected or there == expected:
            what = f"has run '{run_id}'" if expected else f"run '{run_id}' has no scored pairs"
            print(f"table {self.name}: {what}: nothing to add")
            return
        if there:
            raise JobError(f"--table {self.name}: already has other rows of run '{run_id}'")
        rows = self._spark.read.options(**CHECKED).parquet(f"{folder}/scored")
        for name, value in zip(OWN, (run_id, manifest.signature), strict=True):
            rows = rows.withColumn(name, F.lit(value))
        check_lock()
        with self._explained():
            self._prepare(rows.schema)
        wap_id = f"{run_id} {manifest.created}"
        with progress(self._spark, f"adding to {self.name}", expected.total()):
            staged = self._staged(wap_id) or self._stage(rows, manifest, wap_id)
            self._audit(run_id, staged, expected)
            check_lock()
            self._publish(staged)
        print(f"table {self.name}: {expected.total():,} rows of run '{run_id}' added")

    def snapshot_with(self, runs: Iterable[RunManifest], tag: str) -> int:
        """Returns the snapshot that readers see. Raises JobError if it lacks one of the runs, or if
        another snapshot has the tag."""
        current = self._load().currentSnapshot() if self._exists else None
        snapshot = current.snapshotId() if current else 0
        for run in runs:
            if not current or self.rows_of(run.run_id, snapshot) != counts_of(run):
                raise JobError(
                    f"--table {self.name}: does not have run '{run.run_id}'; score_corpus.py "
                    f"--resume --run-id {run.run_id} --table {self.name} adds it"
                )
        self._check_tag(tag, snapshot)
        return snapshot

    def _check_tag(self, tag: str, snapshot: int) -> bool:
        """Returns whether a snapshot has the tag. Raises JobError if another snapshot has it."""
        if (given := self._load().refs().get(tag)) is None:
            return False
        if given.snapshotId() != snapshot:
            raise JobError(
                f"--table {self.name}: the tag '{tag}' is on snapshot {given.snapshotId()}, not on "
                f"the newest, {snapshot}; run ALTER TABLE {self.name} DROP TAG `{tag}`, or choose "
                "another --version"
            )
        return True

    def tag(self, tag: str, snapshot: int) -> None:
        """Tags a snapshot, so that it does not expire.

        Raises JobError if another snapshot has the tag.
        """
        if not self._check_tag(tag, snapshot):
            with self._explained():
                self._load().manageSnapshots().createTag(tag, snapshot).commit()
        print(f"table {self.name}: snapshot {snapshot} has the tag '{tag}'")

    def rows_of(self, run_id: str, snapshot: int | None = None) -> Counts:
        """Counts the rows of a run. snapshot: None for the one that readers see."""
        reader = self._spark.read
        if snapshot is not None:
            reader = reader.option("versionAsOf", str(snapshot))
        rows = reader.table(self.name).where(F.col(OWN[0]) == run_id)
        counts = interruptible(rows.groupBy(*KEYS, OWN[1]).count().collect)
        return Counter({(row[0], row[1], row[2]): row["count"] for row in counts})

    def _prepare(self, schema: StructType) -> None:
        """Creates the table, or adds the columns that it lacks."""
        if not self._exists:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.name.rpartition('.')[0]}")
            self._spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self.name} ({schema.toDDL()}) USING iceberg "
                f"PARTITIONED BY ({', '.join(KEYS)}) TBLPROPERTIES ('{WAP}' = 'true')"
            )
        table = self._load()
        if table.properties().get(WAP) != "true":
            table.updateProperties().set(WAP, "true").commit()
        change = table.updateSchema().unionByNameWith(self._iceberg(schema))
        if not change.apply().sameSchema(table.schema()):
            change.commit()
        self._exists = True

    def _stage(self, rows: DataFrame, manifest: RunManifest, wap_id: str) -> int:
        """Writes a snapshot that no reader sees, and returns its id."""
        target = self._spark.table(self.name).schema
        columns = [
            F.col(f"`{field.name}`")
            if field.name in rows.columns
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in target
        ]
        writer = rows.select(*columns).writeTo(self.name)
        for name, value in zip(OWN, (manifest.run_id, manifest.signature), strict=True):
            writer = writer.option(f"snapshot-property.gaixie.{name}", value)
        self._spark.conf.set("spark.wap.id", wap_id)
        try:
            interruptible(writer.append)
        finally:
            self._spark.conf.unset("spark.wap.id")
        staged = self._staged(wap_id)
        assert staged is not None
        return staged

    def _staged(self, wap_id: str) -> int | None:
        snapshots = self._spark.table(f"{self.name}.snapshots")
        found = snapshots.where(F.col("summary")["wap.id"] == wap_id).orderBy("committed_at")
        numbers = [row["snapshot_id"] for row in found.collect()]
        return numbers[-1] if numbers else None

    def _audit(self, run_id: str, staged: int, expected: Counts) -> None:
        """Deletes a staged snapshot and raises RuntimeError unless it has the rows of the run's
        manifest."""
        found = self.rows_of(run_id, staged)
        if found != expected:
            self._load().expireSnapshots().expireSnapshotId(staged).commit()
            key = next(key for key in {**expected, **found} if expected[key] != found[key])
            raise RuntimeError(
                f"table {self.name}: {found[key]:,} rows of origin {key[0]}, stage {key[1]} were "
                f"written, but the manifest of run '{run_id}' has {expected[key]:,}; nothing was "
                "published there"
            )

    def _publish(self, staged: int) -> None:
        """Shows a staged snapshot to readers, on top of what others have published meanwhile.

        Iceberg refuses it if the table's history already has the run.
        """
        with self._explained():
            self._load().manageSnapshots().cherrypick(staged).commit()
        self._spark.catalog.refreshTable(self.name)

    def _load(self) -> Any:
        """Returns Iceberg's own table object, freshly loaded."""
        load = self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        return load(self._spark._jsparkSession, self.name)

    def _iceberg(self, schema: StructType) -> Any:
        """Returns a schema as Iceberg's. Raises a Java error for a type that Iceberg lacks."""
        of_spark = self._spark._jsparkSession.parseDataType(schema.json())
        return self._jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(of_spark)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns errors of Iceberg or its catalogue into JobError."""
        try:
            yield
        except JobError:
            raise
        except Exception as error:
            raise JobError(f"--table {self.name}: {cause(error)}") from error


def counts_of(manifest: RunManifest) -> Counts:
    """Counts the scored rows that a run's manifest states."""
    return +Counter(
        {
            (origin, stage, manifest.signature): rows
            for origin, stages in manifest.stages.items()
            for stage, rows in stages.items()
        }
    )
