"""Decides which sentences are compared, those that share a bucket, and which of them say the same.

A sentence has one bucket for each band of its signature; with keys, one for each key and band. An
entry is 16 bytes. A batch of sentences packs its entries of one partition into one row, so that
Spark moves few rows of kilobytes instead of many of a few bytes; a partition sorts its entries with
numpy. Memory is that of one partition of ENTRIES; time is linear in the sentences.

In a bucket, every sentence meets only the first `neighbours` sentences, the anchors. Sentences of
earlier months come first, then smaller node numbers. So a crowded bucket takes linear time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.pairs.clusters.minhash import band_hashes, mixed, overlaps
from gaixie.udfs.command_line import as_user_error
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.spscore import SPScoreZh

EDGES = "a bigint, b bigint, score float"

ENTRIES = 2_000_000
"""Approximate entries of a partition: 32 MB."""

AT_ONCE = 20_000
"""Sentences of a bucket whose pairs return to Spark at once."""

NEW, WHOLE = np.uint64(1), np.uint64(2)
"""Flag bits of a bucket: NEW marks a sentence of this run, WHOLE the bucket of a whole key."""


class Bands(NamedTuple):
    """How signatures are made; see gaixie.jobs.pairs.clusters.minhash."""

    bands: int
    rows: int
    seed: int


def neighbours(sentences: DataFrame, count: int, bands: Bands, most: int, keyed: bool) -> DataFrame:
    """Returns distinct columns (a, b): pairs of nodes that share a bucket, a before b in priority;
    and the texts of both, text_a and text_b.

    At least one node of a pair is new. sentences: node (bigint), new (boolean), text, keys
    (array<bigint>) if keyed. count: approximate number of sentences, or of keys in total if keyed.
    most: anchors of a bucket. keyed: compare only within a key; a key with few sentences compares
    all of them.
    """
    partitions = max(ceil(count * (bands.bands + keyed) / ENTRIES), 1)

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                hashes = band_hashes(batch["text"], *bands)
                yield pack_entries(batch, hashes, most if keyed else None, partitions)

    def meet(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packed = [entries for batch in batches for entries in batch["entries"].to_pylist()]
        entries = np.frombuffer(b"".join(packed), np.uint64).reshape(-1, 2)
        del packed
        for a, b in meetings(entries, most):
            yield pa.RecordBatch.from_arrays([pa.array(a), pa.array(b)], ["a", "b"])

    packed = sentences.mapInArrow(pack, "partition int, entries binary")
    packed = packed.repartitionById(partitions, "partition")
    pairs = packed.mapInArrow(meet, "a bigint, b bigint").where("a != b").distinct()
    for side in ("a", "b"):
        texts = sentences.select(F.col("node").alias(side), F.col("text").alias(f"text_{side}"))
        pairs = pairs.join(texts, side)
    return pairs


def pack_entries(
    sentences: pa.RecordBatch, hashes: np.ndarray, whole_keys: int | None, partitions: int
) -> pa.RecordBatch:
    """Returns the entries of some sentences, one row for each partition that gets any.

    An entry is (bucket, node), two uint64. whole_keys: the most sentences that a key may have and
    still compare all of them; None means no keys. A batch adds just enough entries of a larger key
    to show that it is larger.
    """
    nodes = sentences["node"].to_numpy().view(np.uint64)
    new = sentences["new"].to_numpy(zero_copy_only=False).astype(np.uint64)
    if whole_keys is None:
        entries = _entries(hashes & ~WHOLE, nodes, new)
    else:
        lists = sentences["keys"]
        rows = np.repeat(np.arange(len(nodes)), lists.value_lengths().to_numpy())
        keys = mixed(lists.flatten().to_numpy().view(np.uint64))
        bands = mixed(hashes[rows] ^ keys[:, None]) & ~WHOLE
        order = np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.append(True, keys[order][1:] != keys[order][:-1]))
        rank = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
        told = order[rank <= whole_keys]
        whole = (mixed(keys[told]) | WHOLE)[:, None]
        of_bands = _entries(bands, nodes[rows], new[rows])
        of_keys = _entries(whole, nodes[rows[told]], new[rows[told]])
        entries = np.concatenate([of_bands, of_keys])
    partition = (entries[:, 0] >> np.uint64(32)) % np.uint64(partitions)
    order = np.argsort(partition, kind="stable")
    numbers, starts = np.unique(partition[order], return_index=True)
    parts = np.split(entries[order], starts[1:])
    packed = pa.array([part.tobytes() for part in parts], pa.binary())
    columns = [pa.array(numbers.astype(np.int32)), packed]
    return pa.RecordBatch.from_arrays(columns, ["partition", "entries"])


def _entries(buckets: np.ndarray, nodes: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Returns (bucket, node) for each bucket of each node, in order."""
    buckets = buckets & ~NEW | new[:, None]
    entries = np.stack([buckets, np.broadcast_to(nodes[:, None], buckets.shape)], axis=-1)
    return entries.reshape(-1, 2)


def meetings(entries: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields pieces (a, b): nodes that meet in a bucket.

    entries: uint64, shape (entries, 2), of whole buckets.
    """
    if len(entries) < 2:
        return
    bucket = entries[:, 0] >> NEW
    order = np.argsort(bucket)
    bucket = bucket[order]
    same = bucket[1:] == bucket[:-1]
    crowd = order[np.append(same, False) | np.insert(same, 0, False)]  # those that share a bucket
    if not len(crowd):
        return
    nodes = entries[crowd, 1].view(np.int64)
    order = np.lexsort((nodes, entries[crowd, 0]))
    nodes, buckets = nodes[order], entries[crowd, 0][order]
    is_new, bucket = (buckets & NEW) != 0, buckets >> NEW
    starts = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    sizes = np.diff(np.append(starts, len(bucket)))
    position = np.arange(len(bucket)) - np.repeat(starts, sizes)
    whole = (bucket & (WHOLE >> NEW)) != 0
    meets = np.minimum(position, most)
    meets[~is_new] = 0  # earlier sentences met in their own month
    meets[whole & (np.repeat(sizes, sizes) > most)] = 0  # a large key: its bands compare instead
    cumulated = np.cumsum(meets)
    for begin in range(0, len(nodes), AT_ONCE):
        end = min(begin + AT_ONCE, len(nodes))
        here = meets[begin:end]
        b = np.repeat(np.arange(begin, end), here)
        before = np.repeat(cumulated[begin:end] - here, here)
        offset = np.arange(len(b)) + (cumulated[begin - 1] if begin else 0) - before
        a = np.repeat(starts, sizes)[b] + offset
        yield nodes[a], nodes[b]


# What is said of them


@dataclass(frozen=True)
class Identifier:
    """Decides whether two sentences say the same: SPScore-zh's `meaning`, by a tier.

    Spark sends it to its workers, each of which loads the model once.
    """

    tier: str
    least: float
    """Minimum score at which two sentences say the same."""

    @property
    def _metric(self) -> SPScoreZh:
        return SPScoreZh("meaning", self.tier)

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """Returns float32, shape (pairs,), in [0, 1]."""
        if not len(sources):
            return np.empty(0, np.float32)
        scores = self._metric.sentence_scores(Pairs.of(sources, paraphrases))
        return np.nan_to_num(scores, nan=0.0).astype(np.float32)

    def describe(self) -> str:
        """Returns the metric's signature. Raises UserError if it cannot be loaded."""
        with as_user_error():
            model, segmenter = self._metric.loaded()
        return model.signature(segmenter)


def near_duplicates(pairs: DataFrame, least: float) -> DataFrame:
    """Returns column node: the distinct sentences that overlap too much with an earlier one.

    pairs: of neighbours. The earlier one may itself be left out: the first of a chain stays.
    """

    def later(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            same = overlaps(batch["text_a"], batch["text_b"]) >= least
            yield pa.RecordBatch.from_arrays([batch["b"].filter(pa.array(same))], ["node"])

    return pairs.mapInArrow(later, "node bigint").distinct()


def identified(pairs: DataFrame, identifier: Identifier, least: float, copies: float) -> DataFrame:
    """Returns columns EDGES: those candidate pairs that say the same.

    pairs: of neighbours. Candidates overlap by least or more, but by less than copies. The
    sentence with the smaller number is the source, since the score may depend on the order.
    """

    def say_the_same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            overlap = overlaps(batch["text_a"], batch["text_b"])
            chosen = batch.filter(pa.array((overlap >= least) & (overlap < copies)))
            a, b = chosen["a"].to_numpy(), chosen["b"].to_numpy()
            texts = np.array([chosen["text_a"].to_pylist(), chosen["text_b"].to_pylist()], object)
            first, rows = (a > b).astype(int), np.arange(len(a))
            scores = identifier.scores(texts[first, rows].tolist(), texts[1 - first, rows].tolist())
            same = scores >= identifier.least
            columns = [pa.array(a[same]), pa.array(b[same]), pa.array(scores[same])]
            yield pa.RecordBatch.from_arrays(columns, ["a", "b", "score"])

    return pairs.mapInArrow(say_the_same, EDGES)
