"""Pieces of sentences: a model writes one after the other, and a finished one stays.

A piece is there whole or not at all. A building that was killed goes on, with --resume, with the
pieces that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.parquet import CHECKED, PARQUET
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.pairs.writing import WRITTEN, Sentences, Settling, loaded
from gaixie.udfs.storage.progress import Progress

TOGETHER = 64
"""Pieces whose sentences lie in one file."""

MOST = 512
"""Pieces at work at once: the driver has a thread for each."""

SENTENCES = "reason string, source string, foreign string, group string, piece long, file int"
PIECE = "reason string, source string, paraphrase string, foreign string, group string, "
PIECE += "parameters string, dropped boolean"


@dataclass
class Pieces:
    """The pieces of a building, in the folders sentences and pieces of its _work."""

    spark: SparkSession
    storage: Storage
    folder: str
    settling: Settling
    reads: str
    check_lock: Callable[[], None]
    """Raises where another process has the output."""

    def cut(self, distinct: DataFrame, count: int, size: int) -> None:
        """Writes the sentences, in order of their pieces.

        distinct: reason, source, foreign, group; repeated sentences have a reason. count: rows
        without a reason, or somewhat more. size: about how many sentences a piece has.
        """
        pieces = max(-(-count // size), 1)
        number = F.conv(F.substring("group", 1, 15), 16, 10).cast("long") % pieces
        rows = distinct.withColumn("piece", F.when(F.col("reason").isNull(), number))
        file = F.coalesce(F.floor(F.col("piece") / TOGETHER), F.lit(-1)).cast("int")
        columns = "reason", "source", "foreign", "group", "piece", file.alias("file")
        rows = rows.select(*columns)
        rows = rows.repartitionById(-(-pieces // TOGETHER) + 1, F.col("file") + 1)
        writer = rows.sortWithinPartitions("piece").write.options(**PARQUET).partitionBy("file")
        self.check_lock()
        writer.mode("overwrite").parquet(f"{self.folder}/sentences")

    @cached_property
    def counts(self) -> dict[int, int]:
        """The number of sentences of each piece that has any."""
        rows = self._sentences("").where("piece IS NOT NULL").groupBy("piece").count().collect()
        return {row.piece: row["count"] for row in sorted(rows)}

    def missing(self) -> list[int]:
        """Returns the numbers of the pieces that are not finished."""
        folder, done = f"{self.folder}/pieces", set()
        if self.storage.exists(folder):
            done = {int(PurePosixPath(f.uri).stem) for f in self.storage.list_files(folder)}
        return [number for number in self.counts if number not in done]

    def left(self) -> int:
        """Returns how many sentences no finished piece has."""
        return sum(self.counts[number] for number in self.missing())

    def sentences(self, number: int) -> DataFrame:
        """Returns source, foreign and group of a piece, in one partition."""
        rows = self._sentences(f"/file={number // TOGETHER}").where(F.col("piece") == number)
        return rows.select("source", "foreign", "group").coalesce(1)

    def repeated(self) -> DataFrame:
        """Returns the sentences that are in no piece: reason, source, foreign, group."""
        return self._sentences("").where("piece IS NULL").drop("piece", "file")

    def finished(self) -> DataFrame:
        """Returns all pieces, columns gaixie.jobs.pairs.writing.WRITTEN."""
        if not self.counts:
            return self.spark.createDataFrame([], PIECE)
        return self.spark.read.options(**CHECKED).schema(PIECE).parquet(f"{self.folder}/pieces")

    def _sentences(self, below: str) -> DataFrame:
        read = self.spark.read.options(**CHECKED).schema(SENTENCES)
        return read.parquet(f"{self.folder}/sentences{below}")

    def keep(self, number: int, piece: pa.Table) -> None:
        """Stores a finished piece, columns gaixie.jobs.pairs.writing.WRITTEN."""
        self.check_lock()
        sink = pa.BufferOutputStream()
        pq.write_table(piece, sink, compression="zstd")
        path = f"{self.folder}/pieces/{number:06d}.parquet"
        self.storage.write(path, sink.getvalue().to_pybytes())

    def write(self, method: Sentences) -> None:
        """Writes the missing pieces on the executors, a task each.

        As many are written at once as there are cores, up to MOST.
        """
        settling, reads = self.settling, self.reads

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rows = [row for batch in batches for row in batch.to_pylist()]
            texts = list(dict.fromkeys(row[reads] for row in rows))
            yield from settling.settle(rows, reads, loaded(method).write(texts)).to_batches()

        def write_piece(number: int) -> int:
            made = self.sentences(number).mapInArrow(work, PIECE).toArrow()
            self.keep(number, made.cast(WRITTEN))
            return self.counts[number]

        cores = self.spark.sparkContext.defaultParallelism
        with self.progress("writing") as shown, ThreadPoolExecutor(min(cores, MOST)) as pool:
            futures = [pool.submit(write_piece, number) for number in self.missing()]
            try:
                for future in as_completed(futures):
                    shown.add(future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.spark.sparkContext.cancelAllJobs()
                raise

    def progress(self, title: str) -> Progress:
        """Shows how many of all sentences are done."""
        total = sum(self.counts.values())
        return Progress(title, total, "sentences", done=total - self.left())
