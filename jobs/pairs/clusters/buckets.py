"""Decides which sentences are compared: those that share a bucket.

A sentence has one bucket for each band of its signature; with keys, one for each key and band. An
entry is 16 bytes. A batch of sentences packs its entries of one partition into one row, so that
Spark moves few rows of kilobytes instead of many of a few bytes; a partition sorts its entries with
numpy. Memory is that of one partition of ENTRIES; time is linear in the sentences.

In a bucket, every sentence meets only the first `neighbours` sentences, the anchors. Sentences of
earlier months come first, then smaller node numbers. So a crowded bucket takes linear time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from gaixie.jobs.pairs.clusters.minhash import band_hashes, mixed

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
    """Returns distinct columns (a, b): pairs of nodes that share a bucket, a before b in priority.

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
    return packed.mapInArrow(meet, "a bigint, b bigint").where("a != b").distinct()


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
