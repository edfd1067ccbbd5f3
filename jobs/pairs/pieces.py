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
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.corpus.parquet import data_files, read_table, write_table
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.pairs.build import PairsBuild
from gaixie.jobs.pairs.method import MADE, MADE_ARROW, REPEATED, Candidate, Method
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.text.normalise import normalise, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons

COPIED = "copied"
"""Reason: after normalisation it equals the sentence that the model was given."""

TOGETHER = 64
"""Pieces whose sentences share a file."""

SENTENCES = "source string, foreign string, group string, copies long, piece long, file int"

Write = Callable[[Sequence[str]], Iterable[Candidate]]
"""Returns at least one candidate of each sentence, in any order; the sentences are fit and
distinct. It loads its model at its first call in a process.

If no candidate makes a pair, the sentence goes to quarantine under the reason of its first one.
Settling finds candidates that are too short, too long, without Han, or equal to the sentence or an
earlier candidate.
"""


def write_pieces(
    build: PairsBuild,
    fit: DataFrame,
    write: Write,
    sentences: int,
    at_once: int,
    reads: str = "source",
    on_driver: bool = False,
) -> DataFrame:
    """Returns columns MADE: what a model makes of all fit sentences.

    sentences: approximate number in a piece. at_once: pieces in progress, each with a thread of the
    driver. reads: see settle. on_driver: call write in this process, not in an executor's.
    """
    method, sizes = build.method, _cut(build, fit, sentences)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        yield from settle(rows, reads, write, method).to_batches()

    def write_piece(number: int) -> int:
        file = f"{build.work}/sentences/file={number // TOGETHER}"
        rows = read_table(build.spark, file, schema=SENTENCES).where(F.col("piece") == number)
        if on_driver:
            made = settle(rows.toArrow().to_pylist(), reads, write, method)
        else:
            made = rows.coalesce(1).mapInArrow(work, MADE).toArrow().cast(MADE_ARROW)
        build.check_lock()
        storage.write_table(f"{build.work}/pieces/{number:06d}.parquet", made)
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
    if not sizes:
        return build.spark.createDataFrame([], MADE)
    return read_table(build.spark, f"{build.work}/pieces", schema=MADE)


def _cut(build: PairsBuild, fit: DataFrame, sentences: int) -> dict[int, int]:
    """Writes the sentences in order of their pieces; a group is in one piece.

    Returns the number of sentences of each piece that has any.
    """
    path = f"{build.work}/sentences"

    def cut() -> dict[str, int]:
        pieces = max(ceil(fit.count() / sentences), 1)
        number = F.conv(F.substring("group", 1, 15), 16, 10).cast("long") % pieces
        rows = fit.groupBy("source", "foreign", "group").agg(F.count(F.lit(1)).alias("copies"))
        rows = rows.withColumn("piece", number)
        rows = rows.withColumn("file", F.floor(F.col("piece") / TOGETHER).cast("int"))
        rows = rows.repartitionById(ceil(pieces / TOGETHER), "file")
        build.check_lock()
        with progress(build.spark, "cutting pieces", None):
            write_table(rows.sortWithinPartitions("piece"), path, ["file"])
        return {"pieces": pieces}

    build.markers.once("cut", cut)
    rows = read_table(build.spark, path, schema=SENTENCES).groupBy("piece").count()
    return {row.piece: row["count"] for row in sorted(rows.collect())}


def settle(rows: Sequence[Mapping[str, Any]], reads: str, write: Write, method: Method) -> pa.Table:
    """Returns a finished piece, columns MADE.

    Every copy of a row's sentence is in a pair, or listed once with a reason.

    rows: source, foreign, group, copies. reads: what the model gets, the sentence (source) or the
    foreign one that it belongs to. Raises RuntimeError for a sentence without a candidate.
    """
    made: list[dict[str, Any]] = []
    distinct: dict[tuple[str, str], dict[str, str]] = {}
    for row in sorted(rows, key=lambda row: row["source"]):
        sentence = {name: row[name] for name in ("source", "foreign", "group")}
        place = row["group"], normalise(row["source"])
        repeats = row["copies"] - (place not in distinct)
        distinct.setdefault(place, sentence)
        made += [sentence | {"reason": REPEATED, "dropped": False}] * repeats
    candidates, parameters = defaultdict(list), method.parameters()
    for item in write(list(dict.fromkeys(row[reads] for row in distinct.values()))):
        candidates[item.source].append(item)
    for sentence in distinct.values():
        items = candidates[sentence[reads]]
        if not items:
            raise RuntimeError(f"the model wrote nothing for: {sentence[reads]}")
        reasons = _check(sentence["source"], items, method)
        for number, (item, reason) in enumerate(zip(items, reasons, strict=True)):
            told = {**parameters, **(item.differs or {})}
            candidate = {"reason": reason, "paraphrase": item.paraphrase}
            candidate["parameters"] = json.dumps(told, sort_keys=True, ensure_ascii=False)
            dropped = reason is not None and (None in reasons or number > 0)
            made.append({**sentence, **candidate, "dropped": dropped})
    return pa.Table.from_pylist(made, MADE_ARROW)


def _check(source: str, items: Sequence[Candidate], method: Method) -> list[str | None]:
    """Returns the reason of each candidate that is not a pair, else None."""
    a = normalise_column(pa.array([source] * len(items), pa.string()))
    b = normalise_column(pa.array([item.paraphrase for item in items], pa.string()))
    codes = quarantine_reasons(*a, *b, method.min_characters, method.max_characters)
    found = np.array([None, *REASONS[:-1], COPIED], object)[codes]
    reasons, known = [], set()
    for item, unfit in zip(items, found, strict=True):
        reason = item.reason or unfit
        if reason is None and (text := normalise(item.paraphrase or "")) in known:
            reason = REPEATED
        elif reason is None:
            known.add(text)
        reasons.append(reason)
    return reasons
