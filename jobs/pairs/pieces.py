"""Lets a model write candidates, piece by piece, and settles what becomes of each sentence.

A piece exists whole or not at all: a resumed building continues with the missing ones.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from math import ceil
from pathlib import PurePosixPath
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.corpus.accounts import data_files
from gaixie.jobs.corpus.parquet import read_table, write_table
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.pairs.build import FIGURES, PairsBuild
from gaixie.jobs.pairs.groups import MADE, MADE_ARROW, distinct_sentences, make_groups
from gaixie.jobs.pairs.method import REPEATED, Candidate, Method
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.text.normalise import normalise, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons

COPIED = "copied"
"""Reason: after normalisation it equals the sentence that the model was given."""

TOGETHER = 64
"""Pieces whose sentences share a file."""

SENTENCES = "reason string, source string, foreign string, group string, piece long, file int"

Write = Callable[[Sequence[str]], Iterable[Candidate]]
"""Returns at least one candidate of each sentence, in any order; the sentences are fit and
distinct.

If no candidate makes a pair, the sentence goes to quarantine under the reason of its first one.
Settling finds candidates that are too short, too long, without Han, or equal to the sentence or an
earlier candidate.
"""


def write_pieces(
    build: PairsBuild,
    fit: DataFrame,
    settled: Callable[[DataFrame], pa.Table],
    sentences: int,
    at_once: int,
) -> DataFrame:
    """Returns columns MADE: what a model makes of all fit sentences.

    settled: makes a piece, as settle does, of rows source, foreign, group; see on_executors.
    sentences: approximate number in a piece. at_once: pieces in progress, each with a thread of the
    driver.
    """
    sizes, told = _cut(build, fit, sentences), Lock()

    def write_piece(number: int) -> int:
        file = f"{build.work}/sentences/file={number // TOGETHER}"
        rows = read_table(build.spark, file, schema=SENTENCES)
        made = settled(rows.where(F.col("piece") == number).select("source", "foreign", "group"))
        build.check_lock()
        storage.write_table(f"{build.work}/pieces/{number:06d}.parquet", made)
        with told:  # so that the newest figures stay
            if build.figures:
                storage.write_json(f"{build.work}/{FIGURES}", {**build.figures})
        return sizes[number]

    files = data_files(f"{build.work}/pieces")  # not what a killed process left half written
    done = {int(PurePosixPath(file.uri).stem) for file in files}
    missing = [number for number in sizes if number not in done]
    total, left = sum(sizes.values()), sum(sizes[number] for number in missing)
    pool = ThreadPoolExecutor(at_once)
    with Progress("writing", total, "sentences", done=total - left) as shown:
        try:
            for future in as_completed([pool.submit(write_piece, number) for number in missing]):
                shown.add(future.result())
        except BaseException:  # waits for no other piece
            pool.shutdown(wait=False, cancel_futures=True)
            build.spark.sparkContext.cancelAllJobs()
            raise
    repeated = read_table(build.spark, f"{build.work}/sentences", schema=SENTENCES)
    repeated = repeated.where("piece IS NULL")
    repeated = repeated.drop("piece", "file").withColumn("dropped", F.lit(False))
    empty = build.spark.createDataFrame([], MADE)
    pieces = f"{build.work}/pieces"
    written = read_table(build.spark, pieces, schema=MADE) if sizes else empty
    return written.unionByName(repeated, allowMissingColumns=True)


def on_executors(write: Write, reads: str, method: Method) -> Callable[[DataFrame], pa.Table]:
    """Returns a function that lets an executor settle the sentences of a piece.

    write: loads the model at its first call in a process.
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        yield from settle(rows, reads, write, method).to_batches()

    return lambda rows: rows.coalesce(1).mapInArrow(work, MADE).toArrow().cast(MADE_ARROW)


def _cut(build: PairsBuild, fit: DataFrame, sentences: int) -> dict[int, int]:
    """Writes the sentences in order of their pieces; repeated sentences are in no piece.

    Returns the number of sentences of each piece that has any.
    """
    path = f"{build.work}/sentences"

    def cut() -> dict[str, int]:
        pieces = max(ceil(fit.count() / sentences), 1)
        number = F.conv(F.substring("group", 1, 15), 16, 10).cast("long") % pieces
        rows = make_groups(fit, distinct_sentences)
        rows = rows.withColumn("piece", F.when(F.col("reason").isNull(), number))
        file = F.coalesce(F.floor(F.col("piece") / TOGETHER), F.lit(-1)).cast("int")
        rows = rows.select("reason", "source", "foreign", "group", "piece", file.alias("file"))
        rows = rows.repartitionById(ceil(pieces / TOGETHER) + 1, F.col("file") + 1)
        build.check_lock()
        with progress(build.spark, "cutting pieces", None):
            write_table(rows.sortWithinPartitions("piece"), path, ["file"])
        return {"pieces": pieces}

    build.markers.once("cut", cut)
    rows = read_table(build.spark, path, schema=SENTENCES).where("piece IS NOT NULL")
    rows = rows.groupBy("piece").count()
    return {row.piece: row["count"] for row in sorted(rows.collect())}


def settle(rows: Sequence[Mapping[str, str]], reads: str, write: Write, method: Method) -> pa.Table:
    """Returns a finished piece, columns MADE: every row is in a pair, or listed once with a reason.

    rows: source, foreign, group of each sentence. reads: what the model gets, the sentence (source)
    or the foreign one that it belongs to. Raises RuntimeError for a sentence without a
    candidate.
    """
    candidates, parameters = defaultdict(list), method.parameters()
    for item in write(list(dict.fromkeys(row[reads] for row in rows))):
        candidates[item.source].append(item)
    made: list[dict[str, Any]] = []
    for row in rows:
        items = candidates[row[reads]]
        if not items:
            raise RuntimeError(f"the model wrote nothing for: {row[reads]}")
        reasons = _judge(row["source"], items, method)
        for number, (item, reason) in enumerate(zip(items, reasons, strict=True)):
            told = {**parameters, **(item.differs or {})}
            candidate = {
                **row,
                "reason": reason,
                "paraphrase": item.paraphrase,
                "parameters": json.dumps(told, sort_keys=True, ensure_ascii=False),
                "dropped": reason is not None and (None in reasons or number > 0),
            }
            made.append(candidate)
            if reason is None and method.both:
                made.append(candidate | {"source": item.paraphrase, "paraphrase": row["source"]})
    return pa.Table.from_pylist(made, MADE_ARROW)


def _judge(source: str, items: Sequence[Candidate], method: Method) -> list[str | None]:
    """Returns the reason of each candidate that is not a pair, else None."""
    texts = [item.paraphrase for item in items]
    a = normalise_column(pa.array([source] * len(texts), pa.string()))
    b = normalise_column(pa.array(texts, pa.string()))
    codes = quarantine_reasons(*a, *b, method.min_characters, method.max_characters)
    found = np.array([None, *REASONS[:-1], COPIED], object)[codes]
    reasons, known = [], set()
    for item, unfit in zip(items, found, strict=True):
        reason = item.reason or unfit
        text = None if reason else normalise(item.paraphrase or "")
        reasons.append(REPEATED if text in known and text else reason)
        known.add(text)
    return reasons
