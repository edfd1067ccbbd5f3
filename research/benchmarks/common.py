"""Shared by the benchmarks: a timer, printed figures, a watched process, real sentences and pairs.

Each list of wmt_en_zh_translations.parquet holds different systems' Chinese for one English
sentence. Two sentences of a list are a pseudo-paraphrase pair, taken in both directions.
``grown`` reaches 17 million distinct pairs: it also joins a pair with the one 1 to 6 places later
in the file, source with source and paraphrase with paraphrase, and with later ones if more pairs
are needed. Only the seed decides which pairs are drawn, and their order.
"""

import subprocess
import sys
import time
import timeit
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

ROOT = Path(__file__).resolve().parents[2]
TRANSLATIONS = "wmt_en_zh_translations.parquet"

JOINED_OFFSETS = 6
"""Maximum distance of joined sentences in the file, unless more pairs are needed."""
SPARE = 1.02
"""Pairs to draw for each pair wanted, because a few occur twice."""
ROWS_A_FILE = 1_000_000
ROWS_A_GROUP = 100_000

sys.path.append(str(ROOT / "tests/support"))  # for its servers and manifests


def best_rate(rows: int, work: Callable[[], Any], repeats: int = 5) -> float:
    """Returns rows per second of the fastest repeat, after a first call that compiles."""
    work()
    return rows / min(timeit.repeat(work, number=1, repeat=repeats))


def show(figures: Mapping[str, Any], part: str = "") -> None:
    """Prints the numbers of nested figures, one per line."""
    for name, value in figures.items():
        whole = f"{part}.{name}" if part else name
        if isinstance(value, Mapping):
            show(value, whole)
        elif not isinstance(value, str):
            digits = 0 if isinstance(value, int) or value >= 1000 else 3
            print(f"{whole:<50}{value:>16,.{digits}f}")


def translations(data: Path) -> list[list[str]]:
    """Returns, for each English sentence, the distinct translations of all systems, in order."""
    table = pq.read_table(data / TRANSLATIONS, columns=["translations_zh"])
    return [sorted({s for s in row if s and s.strip()}) for row in table[0].to_pylist()]


def watch(command: Sequence[str], **given: Any) -> dict[str, Any]:
    """Runs a command to its end and watches its processes from outside.

    Returns wall_s, core_s (of all cores) and peak_rss_mb (of the largest process), the last two by
    kind of process, java or python. given: arguments of ``subprocess.Popen``. Raises SystemExit if
    the command fails.
    """
    started = time.perf_counter()
    job = psutil.Popen([*command], cwd=ROOT, **({"stdout": subprocess.DEVNULL} | given))
    spent: dict[tuple[int, str], float] = {}
    peaks: dict[str, float] = defaultdict(float)
    while job.poll() is None:
        try:
            for process in [job, *job.children(recursive=True)]:
                kind = process.name()[:6].rstrip("0123456789.")
                if kind in ("java", "python"):
                    spent[process.pid, kind] = sum(process.cpu_times()[:2])
                    peaks[kind] = max(peaks[kind], process.memory_info().rss / 2**20)
        except psutil.Error:
            pass  # the process ended meanwhile
        time.sleep(0.2)
    if job.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {job.returncode}")
    core_s: dict[str, float] = defaultdict(float)
    for (_, kind), seconds in spent.items():
        core_s[kind] += seconds
    wall_s = time.perf_counter() - started
    return {"wall_s": wall_s, "core_s": dict(core_s), "peak_rss_mb": dict(peaks)}


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
