"""Makes real sentence pairs for benchmarks from the WMT system outputs.

Each list of wmt_en_zh_translations.parquet holds different systems' Chinese for one English
sentence. Two sentences of a list are a pseudo-paraphrase pair, taken in both directions.
``grown`` reaches 17 million distinct pairs: it also joins a pair with the one 1 to 6 places later
in the file, source with source and paraphrase with paraphrase, and with later ones if more pairs
are needed. Only the seed decides which pairs are drawn, and their order.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from gaixie.research.benchmarks.common import TRANSLATIONS, translations

JOINED_OFFSETS = 6
"""Maximum distance of joined sentences in the file, unless more pairs are needed."""
SPARE = 1.02
"""Pairs to draw for each pair wanted, because a few occur twice."""
ROWS_A_FILE = 1_000_000
ROWS_A_GROUP = 100_000


def write_pairs(data: Path, output: Path, pairs: int, grown: bool = False, seed: int = 7) -> None:
    """Writes exactly `pairs` distinct pairs to Parquet files (columns source, paraphrase)."""
    lists = translations(data)
    sizes = np.array([len(row) for row in lists])
    first = np.concatenate([[0], np.cumsum(sizes)])
    sentences = pa.array([s for row in lists for s in row], pa.large_string())
    # Every ordered pair (i, j), i != j, of every list; a list of k sentences has k (k - 1) of them.
    ordered = sizes * (sizes - 1)
    row = np.repeat(np.arange(len(lists)), ordered)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(ordered) - ordered, ordered)
    left, right = np.divmod(rank, np.maximum(sizes[row] - 1, 1))
    right += right >= left
    # At offset d, a pair of row t is joined with the pair of row t + d that has the same ranks.
    farthest = max(JOINED_OFFSETS, int(SPARE * pairs / len(row))) if grown else 0
    beyond = np.append(sizes, np.zeros(farthest, int))
    offsets = range(1 + farthest)
    usable = [np.flatnonzero((d == 0) | (beyond[row + d] > 1)) + d * len(row) for d in offsets]
    keys = np.concatenate(usable)
    np.random.default_rng(seed).shuffle(keys)
    output.mkdir(parents=True, exist_ok=True)
    empty = pa.scalar("", pa.large_string())
    seen: set[int] = set()
    written = 0
    for start in range(0, len(keys), ROWS_A_FILE):
        offset, pair = np.divmod(keys[start : start + ROWS_A_FILE], len(row))
        other = np.minimum(row[pair] + offset, len(lists) - 1)
        columns = []
        for side in (left, right):
            here = sentences.take(first[row[pair]] + side[pair])
            there = first[other] + side[pair] % np.maximum(sizes[other], 1)
            there = sentences.take(np.minimum(there, first[-1] - 1))
            joined = pc.if_else(offset > 0, there, empty)
            columns.append(pc.binary_join_element_wise(here, joined, empty).cast(pa.string()))
        table = pa.table(columns, ["source", "paraphrase"])
        table = table.filter(_unseen(table, seen)).slice(0, pairs - written)
        if len(table):
            name = output / f"pairs-{start // ROWS_A_FILE:05d}.parquet"
            pq.write_table(table, name, row_group_size=ROWS_A_GROUP, compression="zstd")
        written += len(table)
        if written == pairs:
            return
    raise SystemExit(f"only {written} distinct pairs in {TRANSLATIONS}, not {pairs}")


def _unseen(table: pa.Table, seen: set[int]) -> pa.Array:
    keep = []
    for text in pc.binary_join_element_wise(*table.columns, "\x1f").to_pylist():
        digest = xxhash.xxh3_64_intdigest(text.encode())
        keep.append(digest not in seen)
        seen.add(digest)
    return pa.array(keep)
