"""Scores a run in chunks of files: each chunk goes to the run's _work folder and stays there.

A marker after each chunk records what went in and what came out. A killed run continues after the
last marker. On the terminal, in file names and in the settings a chunk is called a "unit".
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

from pyspark.resource import ResourceProfile
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from gaixie.jobs.corpus.inputs import NO_ORIGIN, InputFiles, check_encoding, line_fault, read_files
from gaixie.jobs.corpus.parquet import CHECKED, PARQUET
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.session import cores
from gaixie.jobs.corpus.steps import Steps
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.corpus.unreadable import without_corrupt
from gaixie.jobs.scoring.gpus import with_profile
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage.storage import File
from gaixie.udfs.text.validate import MALFORMED, REASONS


@dataclass(frozen=True)
class Chunk:
    """Some files of one input, scored and stored together."""

    number: int
    input: InputFiles
    files: list[File]

    @property
    def name(self) -> str:
        return f"unit-{self.number:05d}"

    @property
    def rows(self) -> int | None:
        """Returns the rows of the files; None if their footers do not say."""
        counts = [self.input.rows.get(file.uri) for file in self.files]
        return None if None in counts else sum(filter(None, counts))


def divide(inputs: list[InputFiles], chunk_mb: float) -> list[Chunk]:
    """Divides the inputs into chunks: neighbouring files up to a size, at least one file each."""
    chunks: list[Chunk] = []
    for source in inputs:
        size = chunk_mb * 1e6  # so that each input begins a chunk
        for file in source.files:
            size += file.size
            if size > chunk_mb * 1e6:
                chunks.append(Chunk(len(chunks), source, []))
                size = file.size
            chunks[-1].files.append(file)
    return chunks


class ChunkScorer:
    """Scores chunks, and reads them back together."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        settings: ScoreSettings,
        score: Callable[..., Column],
        signature: str,
        folder: str,
        profile: ResourceProfile | None = None,
    ):
        """score: score_columns of gaixie.udfs.spark; signature: decides its scores; folder: _work;
        profile: resources of the tasks that score."""
        self._profile = profile
        self._spark, self._storage, self._settings = spark, storage, settings
        self._score, self._signature, self._folder = score, signature, folder
        self._schemas: dict[str, StructType] = {}
        self.steps = Steps(storage, folder)
        self.read: Counter[str] = Counter()
        """Rows read, by origin."""
        self.unfit: Counter[str] = Counter()
        """Rows that cannot be scored, by reason."""

    def score(self, chunks: list[Chunk], limit: int | None, check_lock: Callable[[], None]) -> None:
        """Scores the chunks one by one, and leaves a marker with counts after each. limit: rows in
        all.

        check_lock: raises if another process holds the run.
        """
        for chunk in chunks:
            check_lock()
            left = None if limit is None else limit - self.read.total()
            if left is not None and left <= 0:
                break
            title = f"scoring unit {chunk.number + 1} of {len(chunks)}"
            fingerprint = self._fingerprint(chunk, left)
            work = partial(self._score_chunk, chunk, title, left)
            marker = self.steps.once(chunk.name, work, fingerprint)
            chunk.input.corrupt.update(marker["corrupt"])
            self.read.update(marker["rows"])
            self.unfit.update(marker["unfit"])
            if marker["schema"]:
                schema = StructType.fromJson(marker["schema"])
                self._schemas[f"{self._folder}/{chunk.name}"] = schema

    def _score_chunk(self, chunk: Chunk, title: str, limit: int | None) -> dict[str, Any]:
        """Returns rows by origin, unfit rows by reason, corrupt files, and the schema written."""
        corrupt: dict[str, str] = {}

        def write(files: list[File]) -> dict[str, Any]:
            read, unfit = Observation(), Observation()
            rows = read_files(self._spark, chunk.input, files)
            if limit is not None:
                rows = rows.limit(limit)
            rows = self._spread(rows, chunk, limit)
            rows = rows.observe(read, *_counts_by("origin", (*ORIGINS, NO_ORIGIN)))
            row_key = F.lit(chunk.number << 53) + F.monotonically_increasing_id()
            scored = scored_rows(with_profile(rows, self._profile), self._score)
            scored = scored.withColumn("row_key", row_key)
            scored = scored.observe(unfit, *_counts_by("reason", (*REASONS, MALFORMED)))
            with progress(self._spark, title, chunk.rows):
                writer = scored.write.options(**PARQUET).partitionBy("fit").mode("overwrite")
                writer.parquet(f"{self._folder}/{chunk.name}")
            sizes = [file.size for file in files]
            share = unfit.get["undecodable"] / max(sum(read.get.values()), 1)
            if share > min(sizes) / sum(sizes) / 4:  # these may be all rows of one file
                check_encoding(self._spark, chunk.input, files)
            counts = {"rows": +Counter(read.get), "unfit": +Counter(unfit.get)}
            return counts | {"schema": scored.schema.jsonValue()}

        read = partial(read_files, self._spark, chunk.input)
        on_corrupt_file = self._settings.on_corrupt_file
        counts = without_corrupt(write, chunk.files, read, corrupt, on_corrupt_file)
        return (counts or {"rows": {}, "unfit": {}, "schema": None}) | {"corrupt": corrupt}

    def _spread(self, rows: DataFrame, chunk: Chunk, limit: int | None) -> DataFrame:
        """Spreads rows over the cores if the files cannot be read in enough pieces."""
        available = cores(self._spark)
        pieces = 1 if limit is not None else chunk.input.pieces(chunk.files)
        size = sum(file.size for file in chunk.files)
        if pieces < 2 * available and size > 4_000_000:
            return rows.repartition(4 * available)
        return rows

    def rows(self, fit: bool) -> DataFrame:
        """Reads the rows of all chunks that are fit, or those that are not.

        Columns are those of scored_rows, and row_key, which is unique and stable.
        """
        reader = self._spark.read.options(**CHECKED)
        parts = [
            reader.schema(schema).parquet(path).where(F.col("fit") == fit)
            for path, schema in self._schemas.items()
        ]
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)

    @cached_property
    def sizes(self) -> list[int]:
        """Returns the size of each file of the chunks in bytes, once all are scored."""
        return [file.size for path in self._schemas for file in self._storage.list_files(path)]

    def bytes_per_row(self) -> float:
        """Returns the mean bytes of a row in Parquet."""
        return sum(self.sizes) / max(self.read.total(), 1)

    def _fingerprint(self, chunk: Chunk, left: int | None) -> str:
        """Returns a digest of everything that decides the chunk's result. left: rows left of the
        limit."""
        parts = {
            "files": [
                [file.uri, file.size, round(file.modified.timestamp() * 1000)]
                for file in chunk.files
            ],
            "input": chunk.input.settings.model_dump(),
            "signature": self._signature,
            "characters": [self._settings.min_characters, self._settings.max_characters],
            "limit": left,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def scored_rows(rows: DataFrame, score: Callable[..., Column]) -> DataFrame:
    """Adds the columns of gaixie.udfs.spark.SCORED_FIELDS to rows of read_files."""
    extra = [name for name in rows.columns if name not in ("source", "paraphrase", "origin")]
    scored = rows.withColumn("_scored", score("source", "paraphrase", "origin"))
    reason = F.coalesce(line_fault(), F.col("_scored.reason"))
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


def _counts_by(name: str, values: Iterable[str]) -> list[Column]:
    """Counts the rows that hold each of the values in a column."""
    return [F.count_if(F.col(name) == value).alias(value) for value in values]


# Which rows are left out: all but one of each pair

MAX_BROADCAST = 2_000_000
"""Maximum rows whose keys are sent to every executor; the keys take 16 MB and more."""

KEPT = ("row_key", "origin", "spscore", "meaning")


FEW = 250_000
"""Rows up to which all are compared: a narrow pass would not pay off."""


def find_duplicates(pairs: DataFrame, count: int, extra: Iterable[StructField]) -> DataFrame | None:
    """Finds the rows to leave out, with the columns KEPT; returns None if there are certainly none.

    pairs: columns pair_id, KEPT and extra. count: their number, or more. Of the rows of a pair, it
    keeps the one whose extra columns hash lowest, and among equals the one with the lowest row_key,
    whatever order they were read in.

    If there are more than FEW rows, a narrow pass first finds the hashes of pair_id that occur
    twice, 8 bytes a row. Only rows with one of these hashes are then compared: true duplicates, and
    a collision in 10^12 pairs of rows. No row is sent twice for this: if the hashes are too many
    for every executor, a row's hash decides the task in which it meets its like.
    """
    parts = []
    for field in extra:
        column = F.col(f"`{field.name}`")
        if isinstance(field.dataType, ArrayType | MapType | StructType):
            column = F.to_json(column)  # maps cannot be hashed
        parts += [column.isNull(), column]  # a hash skips nulls
    tie = (F.xxhash64(*parts) if parts else F.lit(0)).alias("tie")
    alike, key = pairs.select("pair_id", *KEPT, tie), "pair_id"
    if count > FEW:
        hashed = F.xxhash64("pair_id").alias("hash")
        hashes = pairs.groupBy(hashed).count().where("count > 1").select("hash").persist()
        if not (twice := hashes.count()):
            return None
        hashes = F.broadcast(hashes) if twice <= MAX_BROADCAST else hashes
        alike = alike.withColumn("hash", hashed).join(hashes, "hash", "left_semi")
        key = "hash, pair_id"
    rank = F.expr(f"row_number() OVER (PARTITION BY {key} ORDER BY tie, row_key)")
    return alike.withColumn("rank", rank).where("rank > 1").select(*KEPT).persist()


PIECE = 128
"""Size in bytes of the bitmap in which a row is looked up."""


def leave_out(pairs: DataFrame, left_out: DataFrame, count: int) -> DataFrame:
    """Returns pairs without the rows whose row_key is in left_out; the rest stays where it is read.

    count: rows of left_out, or more. Every executor gets their keys; if there are more than
    MAX_BROADCAST, it gets a bitmap of the keys. They are numbered consecutively, so it takes
    up to 0.2 bytes for each row of pairs, 0.2 GB for a billion.
    """
    if count <= MAX_BROADCAST:
        return pairs.join(F.broadcast(left_out.select("row_key")), "row_key", "left_anti")
    bucket, bit = F.bitmap_bucket_number("row_key"), F.bitmap_bit_position("row_key")
    bitmaps = left_out.groupBy(bucket.alias("bucket")).agg(F.bitmap_construct_agg(bit).alias("all"))
    pieces = 32768 // (8 * PIECE)
    bitmaps = bitmaps.select("bucket", "all", F.explode(F.sequence(F.lit(0), F.lit(pieces - 1))))
    bits = F.substring("all", F.col("col") * PIECE + 1, F.lit(PIECE)).alias("bits")
    bitmaps = bitmaps.select((F.col("bucket") * pieces + F.col("col")).alias("piece"), bits)
    bitmaps = bitmaps.where(F.bitmap_count("bits") > 0)
    at = bit.cast("int")
    piece = bucket * pieces + F.shiftright(at, 10)
    byte = F.substring("bits", F.shiftright(at, 3) % PIECE + 1, F.lit(1))
    is_out = F.getbit(F.ascii(F.decode(byte, "ISO-8859-1")), at % 8) == 1
    found = pairs.withColumn("piece", piece).join(F.broadcast(bitmaps), "piece", "left")
    return found.where(F.col("bits").isNull() | ~is_out).drop("piece", "bits")
