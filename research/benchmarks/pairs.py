"""Real sentence pairs for benchmarks, from the WMT system outputs.

    python research/benchmarks/pairs.py --data FOLDER --pairs 200000 --output pairs/
    python research/benchmarks/pairs.py --data FOLDER --pairs 17000000 --grown --output pairs/

Each list of wmt_en_zh_translations.parquet holds different systems' Chinese for one English
sentence; two of one list are a pseudo-paraphrase pair, taken in both directions. ``--grown`` reaches
17 million distinct pairs: beside those single sentences, each sentence is joined with the one 1 to 6
places further on in the file, source with source and paraphrase with paraphrase. Which pairs are
drawn, and their order, is decided by --seed alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

TRANSLATIONS = "wmt_en_zh_translations.parquet"
JOINED_OFFSETS = (1, 2, 3, 4, 5, 6)
ROWS_A_FILE = 1_000_000
ROWS_A_GROUP = 100_000


def write_pairs(data: Path, output: Path, pairs: int, grown: bool = False, seed: int = 7) -> None:
    """Writes exactly `pairs` distinct pairs to Parquet files (columns source, paraphrase)."""
    table = pq.read_table(data / TRANSLATIONS, columns=["translations_zh"])
    lists = [sorted({s for s in row if s and s.strip()}) for row in table.column(0).to_pylist()]
    sizes = np.array([len(row) for row in lists])
    first = np.concatenate([[0], np.cumsum(sizes)])
    sentences = pa.array([s for row in lists for s in row], pa.large_string())

    # Every ordered pair (i, j), i != j, of every list: a list of k sentences has k (k - 1).
    ordered = sizes * (sizes - 1)
    row = np.repeat(np.arange(len(lists)), ordered)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(ordered) - ordered, ordered)
    left = rank // np.maximum(sizes[row] - 1, 1)
    right = rank % np.maximum(sizes[row] - 1, 1)
    right += right >= left

    # A pair of row t joined at offset d meets the pair of row t + d with the same ranks.
    offsets = (0, *JOINED_OFFSETS) if grown else (0,)
    keys = np.concatenate(
        [
            np.flatnonzero(
                (d == 0) | ((row + d < len(lists)) & (sizes[(row + d) % len(lists)] > 1))
            )
            + d * len(row)
            for d in offsets
        ]
    )
    np.random.default_rng(seed).shuffle(keys)
    output.mkdir(parents=True, exist_ok=True)
    empty = pa.scalar("", pa.large_string())
    seen: set[int] = set()
    written = 0
    for start in range(0, len(keys), ROWS_A_FILE):
        key = keys[start : start + ROWS_A_FILE]
        offset, pair = np.divmod(key, len(row))
        joined = offset > 0
        other = np.minimum(row[pair] + offset, len(lists) - 1)
        columns = []
        for side in (left, right):
            here = sentences.take(first[row[pair]] + side[pair])
            there_index = first[other] + side[pair] % np.maximum(sizes[other], 1)
            there = pc.if_else(
                joined, sentences.take(np.minimum(there_index, first[-1] - 1)), empty
            )
            columns.append(pc.binary_join_element_wise(here, there, empty))
        table = pa.table(columns, ["source", "paraphrase"])
        table = table.filter(_unseen(table, seen)).slice(0, pairs - written)
        if not len(table):
            break
        name = output / f"pairs-{start // ROWS_A_FILE:05d}.parquet"
        pq.write_table(table.cast(SCHEMA), name, row_group_size=ROWS_A_GROUP, compression="zstd")
        written += len(table)
        if written == pairs:
            return
    raise SystemExit(f"only {written} distinct pairs in {TRANSLATIONS}, not {pairs}")


SCHEMA = pa.schema([("source", pa.string()), ("paraphrase", pa.string())])


def _unseen(table: pa.Table, seen: set[int]) -> pa.Array:
    separator = pa.scalar("\x1f", pa.large_string())
    text = pc.binary_join_element_wise(table["source"], table["paraphrase"], separator)
    keep = []
    for line in text.to_pylist():
        digest = xxhash.xxh3_64_intdigest(line.encode())
        keep.append(digest not in seen)
        seen.add(digest)
    return pa.array(keep)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help=f"folder of {TRANSLATIONS}")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--grown", action="store_true")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    write_pairs(args.data, args.output, args.pairs, args.grown, args.seed)
