"""Builds pairs that a model writes, piece by piece.

A piece exists whole or not at all. With --resume, a building that was killed continues with the
missing pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from math import ceil
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.corpus.parquet import PARQUET
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.session import cores
from gaixie.jobs.pairs.build import SAMPLE, BuildPairs
from gaixie.jobs.pairs.making import by_reason
from gaixie.jobs.pairs.models import share_models
from gaixie.jobs.pairs.writing import WRITTEN, Sentences, Settling, Written
from gaixie.udfs.storage.progress import Progress

TOGETHER = 64
"""Pieces whose sentences share a file."""

MOST = 512
"""Maximum pieces in progress at once: the driver has a thread for each."""

SENTENCES = "reason string, source string, foreign string, group string, piece long, file int"
PIECE = "reason string, source string, paraphrase string, foreign string, group string, "
PIECE += "parameters string, dropped boolean"


class WritePairs(BuildPairs):
    """The steps of build_pairs for methods whose pairs a model writes."""

    method: Sentences
    made = "pieces"

    def make(self) -> None:
        self.steps.once("cut", self._cut)
        share_models(self.spark.sparkContext, self.method.models())
        self.figures = self.method.run(self)

    def _cut(self) -> dict[str, Any]:
        """Writes the sentences in order of their pieces; repeated sentences are in no piece."""
        distinct = self.made_of(self.read_work("judged").where("fit"))
        pieces = max(ceil(self.counts["fit"] / self.settings.piece_sentences), 1)
        number = F.conv(F.substring("group", 1, 15), 16, 10).cast("long") % pieces
        rows = distinct.withColumn("piece", F.when(F.col("reason").isNull(), number))
        file = F.coalesce(F.floor(F.col("piece") / TOGETHER), F.lit(-1)).cast("int")
        rows = rows.select("reason", "source", "foreign", "group", "piece", file.alias("file"))
        rows = rows.repartitionById(ceil(pieces / TOGETHER) + 1, F.col("file") + 1)
        writer = rows.sortWithinPartitions("piece").write.options(**PARQUET).partitionBy("file")
        self.check_lock()
        with progress(self.spark, "cutting pieces", None):
            writer.mode("overwrite").parquet(f"{self.work}/sentences")
        return {}

    @cached_property
    def sizes(self) -> dict[int, int]:
        """Maps pieces that have sentences to their number of sentences."""
        rows = self._sentences().where("piece IS NOT NULL").groupBy("piece").count().collect()
        return {row.piece: row["count"] for row in sorted(rows)}

    def missing(self) -> list[int]:
        """Returns the numbers of the pieces that are not finished."""
        done = {int(PurePosixPath(file.uri).stem) for file in self.files_of(self.made)}
        return [number for number in self.sizes if number not in done]

    def left(self) -> int:
        """Returns how many sentences no finished piece contains."""
        return sum(self.sizes[number] for number in self.missing())

    def piece(self, number: int) -> DataFrame:
        """Returns source, foreign and group of a piece, in one partition."""
        rows = self._sentences(f"/file={number // TOGETHER}").where(F.col("piece") == number)
        return rows.select("source", "foreign", "group").coalesce(1)

    def open_pieces(self) -> Iterator[tuple[tuple[int, list[dict[str, str]]], list[str]]]:
        """Yields each missing piece, in the form that keep takes, and the writer's input for it."""
        for number in self.missing():
            rows = interruptible(self.piece(number).toArrow).to_pylist()
            yield (number, rows), list(dict.fromkeys(row[self.method.reads] for row in rows))

    def keep(self, piece: tuple[int, list[dict[str, str]]], written: Sequence[Written]) -> None:
        """Settles a piece's candidates, and stores it."""
        self._store(piece[0], self._settling.settle(piece[1], self.method.reads, written))

    def write_pieces(self) -> None:
        """Writes the missing pieces on the executors, one task each, as many at once as there are
        cores, up to MOST."""
        settling, method = self._settling, self.method

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rows = [row for batch in batches for row in batch.to_pylist()]
            texts = list(dict.fromkeys(row[method.reads] for row in rows))
            table = settling.settle(rows, method.reads, method.write(texts))
            yield from table.to_batches()

        def write(number: int) -> int:
            made = self.piece(number).mapInArrow(work, PIECE).toArrow()
            self._store(number, made.cast(WRITTEN))
            return self.sizes[number]

        at_once = min(cores(self.spark), MOST)
        with self.progress("writing") as shown, ThreadPoolExecutor(at_once) as pool:
            futures = [pool.submit(write, number) for number in self.missing()]
            try:
                for future in as_completed(futures):
                    shown.add(future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.spark.sparkContext.cancelAllJobs()
                raise

    def progress(self, title: str) -> Progress:
        """Shows how many of all sentences are done."""
        total = sum(self.sizes.values())
        return Progress(title, total, "sentences", done=total - self.left())

    def all_made(self) -> DataFrame:
        repeated = self._sentences().where("piece IS NULL").drop("piece", "file")
        written = self._finished().where("NOT dropped").drop("dropped")
        return written.unionByName(repeated, allowMissingColumns=True)

    def dropped(self) -> Counter[str]:
        return by_reason(self._finished().where("dropped"))

    def used(self, pairs: DataFrame) -> int:
        texts = F.col("source"), F.col("paraphrase")
        of_item = [] if self.method.reads == "source" else [F.least(*texts), F.greatest(*texts)]
        return pairs.select("group", *of_item).distinct().count()

    def what(self, groups: int) -> str:
        return f"sentences for {self.settings.method}"

    def show(self, first: list[dict[str, str]], fit: int, rows: int) -> None:
        everything = self.input.rows.count() if rows == SAMPLE else rows
        total = fit * min(everything, self.limit or everything) / max(rows, 1)
        texts = [row[self.method.reads] for row in first]
        self.method.preview(texts, total, cores(self.spark))

    @property
    def _settling(self) -> Settling:
        given = self.settings
        limits = given.min_characters, given.max_characters
        return Settling(*limits, given.both, self.parameters)

    def _finished(self) -> DataFrame:
        """Returns all pieces, columns gaixie.jobs.pairs.writing.WRITTEN."""
        if not self.sizes:
            return self.spark.createDataFrame([], PIECE)
        return self.read(f"{self.work}/pieces", PIECE)

    def _sentences(self, below: str = "") -> DataFrame:
        return self.read(f"{self.work}/sentences{below}", SENTENCES)

    def _store(self, number: int, piece: pa.Table) -> None:
        self.check_lock()
        self.storage.write_table(f"{self.work}/pieces/{number:06d}.parquet", piece)
