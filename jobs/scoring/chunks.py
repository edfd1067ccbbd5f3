"""The units of a run: some files at a time are scored into its _work folder, and kept there.

Each unit is followed by a marker with what went into it and what came out. A run that is killed goes
on behind the last marker.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.inputs import (
    MALFORMED_LINE,
    NO_ORIGIN,
    InputFiles,
    corrupt_file,
    read_files,
)
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.jobs.spark.parquet import PARQUET
from gaixie.jobs.spark.progress import progress
from gaixie.jobs.spark.storage import File, Storage
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.stages import ORIGINS
from gaixie.udfs.validate import MALFORMED


@dataclass(frozen=True)
class Unit:
    """Some files of one input: what is scored, and kept, at a time."""

    number: int
    input: InputFiles
    files: list[File]

    @property
    def rows(self) -> int | None:
        known = [self.input.rows.get(file.path) for file in self.files]
        return None if None in known else sum(known)


def divide(inputs: list[InputFiles], unit_mb: float) -> list[Unit]:
    """Units of input: neighbouring files up to the given size, at least one file each."""
    units: list[Unit] = []
    for one in inputs:
        files: list[File] = []
        for file in one.files:
            if files and sum(f.size for f in files) + file.size > unit_mb * 1e6:
                units.append(Unit(len(units), one, files))
                files = []
            files.append(file)
        units.append(Unit(len(units), one, files))
    return units


class Units:
    """Scores units, and reads them back together."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        settings: ScoreSettings,
        score: Callable[..., Column],
        signature: str,
        folder: str,
    ):
        """score: score_columns of gaixie.udfs.spark; signature: what decides its scores; folder: _work."""
        self._spark, self._storage, self._settings = spark, storage, settings
        self._score, self._signature, self._folder = score, signature, folder
        self._schemas: dict[str, StructType] = {}
        self.read: Counter[str] = Counter()
        """Rows read, by origin."""

    def score(self, units: list[Unit], limit: int | None) -> None:
        """Scores unit by unit, each followed by a marker with its counts; limit: rows in all."""
        left = limit
        for unit in units:
            if left is not None and left <= 0:
                break
            path = self._path(unit)
            marker = {"fingerprint": self._fingerprint(unit, left)}
            if self._storage.exists(f"{path}.json"):
                found = self._storage.read_json(f"{path}.json")
                if found["fingerprint"] == marker["fingerprint"]:
                    self._keep(unit, found)
                    unit.input.corrupt.update(found["corrupt"])
                    print(f"{_title(unit, units)}: already scored", file=sys.stderr)
                    left = left - sum(found["rows"].values()) if left is not None else None
                    continue
                self._storage.delete(f"{path}.json")
            marker |= self._score_unit(unit, units, left)
            self._storage.write_json(f"{path}.json", marker)
            self._keep(unit, marker)
            left = left - sum(marker["rows"].values()) if left is not None else None

    def _keep(self, unit: Unit, marker: dict[str, Any]) -> None:
        self.read.update(marker["rows"])
        if marker["schema"]:
            self._schemas[self._path(unit)] = StructType.fromJson(marker["schema"])

    def _score_unit(self, unit: Unit, units: list[Unit], limit: int | None) -> dict[str, Any]:
        """Rows read by origin, files that turned out to be corrupt, and the schema written."""
        files, corrupt = list(unit.files), {}
        while files:
            observed = Observation()
            rows = read_files(self._spark, unit.input, files)
            if limit is not None:
                rows = rows.limit(limit)
            rows = self._spread(rows, unit, limit).observe(
                observed,
                *[
                    F.count_if(F.col("origin") == origin).alias(origin)
                    for origin in (*ORIGINS, NO_ORIGIN)
                ],
            )
            row_key = F.lit(unit.number << 53) + F.monotonically_increasing_id()
            scored = scored_rows(rows, self._score).withColumn("row_key", row_key)
            try:
                with progress(self._spark, _title(unit, units), unit.rows):
                    writer = scored.write.options(**PARQUET).partitionBy("fit")
                    writer.mode("overwrite").parquet(self._path(unit))
            except (PySparkException, Py4JJavaError) as error:
                file = corrupt_file(error, files)
                if file is None:
                    raise
                reason = "cannot be read to its end: corrupt"
                if "CSV header does not conform" in str(error):
                    reason = (
                        f"its header is not that of the other files of {unit.input.settings.path}"
                    )
                if self._settings.on_corrupt_file == "stop":
                    raise JobError(f"{file.path}: {reason}") from error
                corrupt[file.path] = reason
                unit.input.corrupt[file.path] = corrupt[file.path]
                files.remove(file)
                print(f"{file.path}: corrupt, set aside", file=sys.stderr)
                continue
            counts = {origin: count for origin, count in observed.get.items() if count}
            return {"rows": counts, "corrupt": corrupt, "schema": scored.schema.jsonValue()}
        return {"rows": {}, "corrupt": corrupt, "schema": None}

    def _spread(self, rows: DataFrame, unit: Unit, limit: int | None) -> DataFrame:
        """Spreads rows over the cores where the files cannot be read in enough pieces."""
        cores = self._spark.sparkContext.defaultParallelism
        pieces = 1 if limit is not None else unit.input.pieces(unit.files)
        size = sum(file.size for file in unit.files)
        if pieces < 2 * cores and size > 4_000_000:
            return rows.repartition(4 * cores)
        return rows

    def rows(self, fit: bool) -> DataFrame:
        """The rows of all units that are fit, or those that are not: a folder of each unit.

        Columns of scored_rows, and row_key, unique and stable.
        """
        units = [
            self._spark.read.schema(schema).parquet(path).where(F.col("fit") == fit)
            for path, schema in self._schemas.items()
        ]
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), units)

    def bytes_a_row(self) -> float:
        """What a row takes in Parquet."""
        size = sum(file.size for path in self._schemas for file in self._storage.list(path))
        return size / max(self.read.total(), 1)

    def _path(self, unit: Unit) -> str:
        return f"{self._folder}/unit-{unit.number:05d}"

    def _fingerprint(self, unit: Unit, left: int | None) -> str:
        """Changes with anything that the unit's result depends on."""
        parts = {
            "files": [[file.path, file.size, file.modified] for file in unit.files],
            "input": unit.input.settings.model_dump(),
            "signature": self._signature,
            "characters": [self._settings.min_characters, self._settings.max_characters],
            "limit": left,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def scored_rows(rows: DataFrame, score: Callable[..., Column]) -> DataFrame:
    """Adds the columns of gaixie.udfs.spark.SCORED_FIELDS to rows of read_files."""
    extra = [name for name in rows.columns if name not in ("source", "paraphrase", "origin")]
    scored = rows.withColumn("_scored", score("source", "paraphrase", "origin"))
    line = F.col(MALFORMED_LINE)
    broken = F.when(F.is_valid_utf8(line), F.lit(MALFORMED)).otherwise(F.lit("undecodable"))
    malformed = F.when(line.isNotNull(), broken)
    reason = F.coalesce(malformed, F.col("_scored.reason"))
    return scored.select(
        reason.isNull().alias("fit"),
        reason.alias("reason"),
        F.col("_scored.pair_id"),
        "source",
        "paraphrase",
        *[F.col(f"_scored.{name}") for name in (*FEATURES, *OUTPUTS)],
        "origin",
        *[F.col(f"`{name}`") for name in extra],
    )


def _title(unit: Unit, units: list[Unit]) -> str:
    return f"scoring unit {unit.number + 1} of {len(units)}"
