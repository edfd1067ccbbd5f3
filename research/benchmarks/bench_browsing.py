"""How soon questions about a run of many pairs are answered.

python research/benchmarks/bench_browsing.py --pairs 1000000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from manifests import write_manifest  # noqa: E402

from gaixie.service.browsing.pairs import Filter, Pairs  # noqa: E402
from gaixie.udfs.spscore import OUTPUTS  # noqa: E402
from gaixie.udfs.storage.manifest import read_run  # noqa: E402

FILES = 16


def grown_run(folder: Path, pairs: int) -> str:
    """A published run of the example pairs, each many times with a number before it, and drawn scores."""
    given = pj.read_json(ROOT / "examples" / "pairs.jsonl").select(["source", "paraphrase"])
    random = np.random.default_rng(0)
    files = []
    for part in range(FILES):
        count = pairs // FILES
        rows = given.take(random.integers(0, len(given), count))
        columns = {
            name: pa.array(
                [f"{part * count + k}：{text}" for k, text in enumerate(rows[name].to_pylist())]
            )
            for name in ("source", "paraphrase")
        }
        columns["pair_id"] = pa.array([f"{part * count + k:032x}" for k in range(count)])
        for name in OUTPUTS:
            columns[name] = pa.array(random.beta(2, 3, count), pa.float32())
        file = folder / "scored" / "origin=llm" / f"stage={part % 4}" / f"part-{part}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), file, compression="zstd")
        files.append(file)
    return write_manifest(folder, files)


def bench_browsing(count: int) -> dict[str, float]:
    """Seconds by question: the slowest of three."""
    with tempfile.TemporaryDirectory() as folder:
        uri = grown_run(Path(folder, "runs", "grown"), count)
        began = time.perf_counter()
        pairs = Pairs(uri, read_run(uri))
        seconds = {"reading": time.perf_counter() - began}
        narrow = Filter(stage=2, bounds={"meaning": (0.6, None), "structure": (None, 0.5)})
        text = Filter(text="图书馆")
        questions = {
            "first_page": lambda cursor: pairs.page(cursor, Filter(), "spscore", True, 50),
            "filtered_page": lambda cursor: pairs.page(cursor, narrow, "meaning", False, 50),
            "text_page": lambda cursor: pairs.page(cursor, text, "spscore", True, 50),
            "text_histogram": lambda cursor: pairs.histogram(cursor, text, "meaning"),
            "histogram": lambda cursor: pairs.histogram(cursor, Filter(), "spscore"),
            "sample": lambda cursor: pairs.sample(cursor, Filter(), 50, 1),
            "one": lambda cursor: pairs.one(cursor, f"{count // 2:032x}"),
        }
        for name, ask in questions.items():
            times = []
            for _ in range(3):
                began = time.perf_counter()
                ask(pairs.cursor())
                times.append(time.perf_counter() - began)
            seconds[name] = max(times)
        pairs.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    for name, value in bench_browsing(parser.parse_args().pairs).items():
        print(f"browse.{name:<28}{value:>10.3f} s")


if __name__ == "__main__":
    main()
