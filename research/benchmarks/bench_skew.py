"""Measures what skew costs: duplicates, one pair repeated, one sentence with very many versions.

    python research/benchmarks/bench_skew.py --data FOLDER                    7 million rows each
    python research/benchmarks/bench_skew.py --data FOLDER --rows 2000000 --cases even hot_pair

Scores (tier paper) equally many rows of real pairs in three cases: all distinct (even), 30 %
duplicates of others (duplicates), and one pair a million times (hot_pair). Then makes pairs by the
method versions, from equally many sentences, in two cases: ten versions of each foreign sentence
(even_versions), and 100,000 versions of one foreign sentence, ten of the rest (hot_versions).
Prints seconds and the largest resident memory of Java and of a Python worker. Each case has its own
process.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.research.benchmarks.bench import bench_job
from gaixie.research.benchmarks.common import ROOT, TRANSLATIONS, parser, show, watch
from gaixie.research.benchmarks.pairs import write_pairs
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME

SHARE, HOT, VERSIONS, EVEN = 0.3, 1_000_000, 100_000, 10
SCORING = ("even", "duplicates", "hot_pair")
MAKING = ("even_versions", "hot_versions")


def repeat(pairs: Path, output: Path, rows: int, case: str) -> None:
    """Writes ``rows`` rows to Parquet files, shuffled: distinct pairs, and the case's repeats."""
    table = pq.read_table(pairs)
    large = pa.schema([(name, pa.large_string()) for name in table.column_names])
    table, small = table.cast(large), table.schema
    again = {"even": 0, "duplicates": round(SHARE * rows), "hot_pair": min(HOT, rows // 2)}[case]
    random = np.random.default_rng(5)
    chosen = random.integers(0, rows - again, again) if case == "duplicates" else np.zeros(again)
    order = random.permutation(np.append(np.arange(rows - again), chosen.astype(np.int64)))
    output.mkdir(parents=True)
    for number, start in enumerate(range(0, rows, 1_000_000)):
        part = table.take(order[start : start + 1_000_000]).cast(small)
        pq.write_table(part, output / f"{number:05d}.parquet", compression="zstd")


def score(pairs: Path, work: Path, rows: int, case: str) -> dict[str, Any]:
    """Scores the rows of a case."""
    repeat(pairs, work / case, rows, case)
    found = bench_job(str(work / case), str(work / "out"), ["--tier", "paper"])
    storage.delete(str(work / case))
    return found


def versions(pairs: Path, work: Path, rows: int, case: str) -> dict[str, Any]:
    """Makes the pairs of a case, from distinct sentences with EVEN versions per foreign one."""
    table = pq.read_table(pairs, columns=["source"]).slice(0, rows)
    hot = VERSIONS if case == "hot_versions" else 0
    foreign = np.maximum(np.arange(len(table)) - hot, -1) // EVEN
    table = pa.table({"zh": table["source"], "en": pa.array(foreign).cast(pa.string())})
    (work / case).mkdir(parents=True)
    pq.write_table(table, work / case / "0.parquet", row_group_size=50_000, compression="zstd")
    output = work / "made"
    storage.delete(str(output))
    line = [sys.executable, "jobs/build_pairs.py", "versions", "--input", str(work / case)]
    line += ["--foreign-column", "en", "--text-column", "zh", "--max-pairs", "20"]
    found = watch([*line, "--output", str(output)])
    told = storage.read_json(str(output / NAME))
    return {name: told[name] for name in ("read", "pairs", "quarantine")} | found


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, help=f"folder of {TRANSLATIONS}")
    options.add_argument("--work", type=Path, default=ROOT / "out/bench-skew")
    options.add_argument("--rows", type=int, default=7_000_000)
    options.add_argument("--versions", type=int, default=500_000, help="sentences of versions")
    options.add_argument("--cases", nargs="+", choices=SCORING + MAKING, default=SCORING + MAKING)
    args = options.parse_args()
    pairs = args.work / "pairs"
    if not pairs.exists():
        write_pairs(args.data, pairs, args.rows, grown=True)
    for case in args.cases:
        storage.delete(str(args.work / case))
        work, rows = (score, args.rows) if case in SCORING else (versions, args.versions)
        show(work(pairs, args.work, rows, case), case)
