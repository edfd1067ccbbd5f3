"""Measures, in seconds, a second run with --new-only over a folder of which a hundredth is new.

    python research/benchmarks/bench_new_only.py --pairs pairs/ --work W --earlier 17000000

Scores a hundred files and adds one more. Prints the wall time of a run with --new-only over the
folder, of a run over only the new file, and the difference; and the same for core time, which other
work on the machine does not lengthen. --earlier N adds an earlier run with N random pair
identities, which --new-only reads too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from gaixie.research.benchmarks.common import ROOT, parser, show, watch
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, RunFile, read_run

FILES = 100
ROWS_A_FILE = 500_000


def run(folder: Path, root: Path, run_id: str, *given: str) -> dict[str, float]:
    """Returns the job's wall time from start to exit, and its core time."""
    command = [sys.executable, "jobs/score_corpus.py", "--input", str(folder)]
    command += ["--output", str(root)]
    command += ["--origin", "parallel", "--run-id", run_id, *given]
    watched = watch(command)
    return {"wall_s": watched["wall_s"], "core_s": sum(watched["core_s"].values())}


def add_earlier_run(root: Path, pairs: int) -> None:
    """Publishes a run of random identities under the signature of the run 'first'."""
    folder, random, files = root / "runs/earlier", np.random.default_rng(0), []
    for number, start in enumerate(range(0, pairs, ROWS_A_FILE)):
        digits = random.bytes(16 * min(ROWS_A_FILE, pairs - start)).hex()
        names = [digits[k : k + 32] for k in range(0, len(digits), 32)]
        path = f"scored/origin=parallel/stage=1/{number:05d}.parquet"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"pair_id": names})
        pq.write_table(table, folder / path, compression="zstd", row_group_size=100_000)
        files.append(RunFile(path=path, bytes=(folder / path).stat().st_size))
    first = read_run(str(root / "runs/first"))
    manifest = first.model_copy(update={"run_id": "earlier", "files": {"scored": files}})
    storage.write(str(folder / NAME), manifest.to_json())


def bench_new_only(pairs: Path, work: Path, earlier: int, given: list[str]) -> dict[str, Any]:
    """Returns seconds by run. pairs: a folder that pairs.py wrote."""
    storage.delete(str(work))
    table = ds.dataset(pairs).to_table()
    rows, folders = len(table) // (FILES + 1), (work / "pairs", work / "new")
    for folder in folders:
        folder.mkdir(parents=True)
    for number in range(FILES):
        pq.write_table(table.slice(number * rows, rows), folders[0] / f"{number:03d}.parquet")
    root = work / "out"
    seconds: dict[str, Any] = {"first": run(folders[0], root, "first", *given)}
    if earlier:
        add_earlier_run(root, earlier)
    new = table.slice(FILES * rows, rows)
    for folder in folders:
        pq.write_table(new, folder / f"{FILES:03d}.parquet")
    seconds["new_only"] = run(folders[0], root, "second", "--new-only", *given)
    seconds["new_alone"] = run(folders[1], work / "alone", "alone", *given)
    both = read_run(str(root / "runs/second")).total, read_run(str(work / "alone/runs/alone")).total
    if both[0] != both[1]:
        raise SystemExit(f"the runs differ: {both[0]}, {both[1]}")
    new_only, alone = seconds["new_only"], seconds["new_alone"]
    longer = {name: new_only[name] - alone[name] for name in alone}
    return seconds | {"longer_by": longer, "new_pairs": rows}


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--pairs", type=Path, required=True, help="folder of pairs.py")
    options.add_argument("--work", type=Path, default=ROOT / "out/new-only")
    options.add_argument("--earlier", type=int, default=0, metavar="PAIRS")
    options.add_argument("--tier", default="core")
    args = options.parse_args()
    tier = ["--tier", args.tier]
    show(bench_new_only(args.pairs, args.work, args.earlier, tier), "new_only")
