"""Pieces of sentences: a model writes one after the other, and what is finished stays.

A piece is there whole or not at all. A building that is killed goes on, with --resume, with the pieces
that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.corpus.parquet import CHECKED, PARQUET
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.pairs.writing import WRITTEN, Sentences, Settling, Written, loaded
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
    started: float = field(default_factory=time.monotonic)

    def cut(self, distinct: DataFrame, count: int, size: int) -> None:
        """Writes the sentences, in order of their pieces.

        distinct: reason, source, foreign, group; with a reason what is repeated. count: of its rows without
        reason, or somewhat more. size: sentences of a piece, about.
        """
        pieces = max(-(-count // size), 1)
        number = F.conv(F.substring("group", 1, 15), 16, 10).cast("long") % pieces
        rows = distinct.withColumn("piece", F.when(F.col("reason").isNull(), number))
        file = F.coalesce(F.floor(F.col("piece") / TOGETHER), F.lit(-1)).cast("int")
        rows = rows.withColumn("file", file).select(
            "reason", "source", "foreign", "group", "piece", "file"
        )
        rows = rows.repartitionById(-(-pieces // TOGETHER) + 1, F.col("file") + 1)
        writer = rows.sortWithinPartitions("piece").write.options(**PARQUET).partitionBy("file")
        self.check_lock()
        writer.mode("overwrite").parquet(f"{self.folder}/sentences")

    @cached_property
    def counts(self) -> dict[int, int]:
        """Sentences of each piece that has any."""
        rows = self._sentences("").where("piece IS NOT NULL").groupBy("piece").count().collect()
        return {row.piece: row["count"] for row in sorted(rows)}

    def missing(self) -> list[int]:
        """Numbers of the pieces that are not finished."""
        done = self._done()
        return [number for number in self.counts if number not in done]

    def _done(self) -> set[int]:
        if not self.storage.exists(f"{self.folder}/pieces"):
            return set()
        names = (
            file.uri.rpartition("/")[2] for file in self.storage.list_files(f"{self.folder}/pieces")
        )
        return {int(name.partition(".")[0]) for name in names}

    def sentences(self, number: int) -> DataFrame:
        """source, foreign, group of a piece, one partition."""
        rows = self._sentences(f"/file={number // TOGETHER}").where(F.col("piece") == number)
        return rows.select("source", "foreign", "group").coalesce(1)

    def repeated(self) -> DataFrame:
        """Sentences that are in no piece: reason, source, foreign, group."""
        return self._sentences("").where("piece IS NULL").drop("piece", "file")

    def finished(self) -> DataFrame:
        """All pieces, columns gaixie.jobs.pairs.writing.WRITTEN."""
        if not self.counts:
            return self.spark.createDataFrame([], PIECE)
        return self.spark.read.options(**CHECKED).schema(PIECE).parquet(f"{self.folder}/pieces")

    def _sentences(self, below: str) -> DataFrame:
        read = self.spark.read.options(**CHECKED).schema(SENTENCES)
        return read.parquet(f"{self.folder}/sentences{below}")

    def settle(self, number: int, written: Callable[[list[str]], Iterable[Written]]) -> int:
        """Writes a piece in this process; its pairs. For what no worker can do.

        written: the candidates of the sentences of the piece.
        """
        rows = interruptible(self.sentences(number).toArrow).to_pylist()
        texts = list(dict.fromkeys(row[self.reads] for row in rows))
        return self.keep(number, self.settling.settle(rows, self.reads, written(texts)))

    def keep(self, number: int, piece: pa.Table) -> int:
        """Stores a finished piece; its pairs. piece: columns gaixie.jobs.pairs.writing.WRITTEN."""
        self.check_lock()
        sink = pa.BufferOutputStream()
        pq.write_table(piece, sink, compression="zstd")
        self.storage.write(
            f"{self.folder}/pieces/{number:06d}.parquet", sink.getvalue().to_pybytes()
        )
        return piece["reason"].null_count

    def write(self, method: Sentences) -> None:
        """Writes the missing pieces on the executors: a task each, as many at once as there are cores, up to
        MOST."""
        settling, reads = self.settling, self.reads

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rows = [row for batch in batches for row in batch.to_pylist()]
            texts = list(dict.fromkeys(row[reads] for row in rows))
            yield from settling.settle(rows, reads, loaded(method).write(texts)).to_batches()

        def write_piece(number: int) -> tuple[int, int]:
            piece = self.sentences(number).mapInArrow(work, PIECE).toArrow().cast(WRITTEN)
            return number, self.keep(number, piece)

        missing = self.missing()
        cores = self.spark.sparkContext.defaultParallelism
        with self.progress() as shown, ThreadPoolExecutor(min(cores, MOST)) as pool:
            futures = [pool.submit(write_piece, number) for number in missing]
            try:
                for future in as_completed(futures):
                    shown.add(*future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.spark.sparkContext.cancelAllJobs()
                raise

    def progress(self) -> PieceProgress:
        """Shows sentences, pairs, rate and the time left."""
        missing = self.missing()
        done = sum(self.counts.values()) - sum(self.counts[number] for number in missing)
        pairs = self.finished().where("reason IS NULL").count() if done else 0
        return PieceProgress(self.counts, done, pairs)


class PieceProgress:
    """Progress of pieces, in a with block."""

    def __init__(self, counts: dict[int, int], done: int, pairs: int):
        self.counts, self.pairs = counts, pairs
        total = sum(counts.values())
        self._shown = Progress("writing", total, "sentences", done=done)
        self._from, self._started = done, time.monotonic()

    def __enter__(self) -> PieceProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def add(self, number: int, pairs: int) -> None:
        """Counts a piece that is finished."""
        done = self._shown.done + self.counts[number]
        self.pairs += pairs
        rate = (done - self._from) / max(time.monotonic() - self._started, 1e-9)
        of_all = f"{done:,.0f} of {self._shown.total:,.0f} sentences"
        self._shown.update(done, f"{of_all}, {self.pairs:,} pairs, {rate:,.1f} sentences/s")
