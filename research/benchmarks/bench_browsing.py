"""How soon questions about a run of many pairs are answered, in seconds: the slowest of three.

python research/benchmarks/bench_browsing.py --pairs 1000000
"""

from __future__ import annotations

import tempfile
import timeit
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from gaixie.research.benchmarks.common import ROOT, parser, show
from gaixie.service.browsing.pairs import Filter, Pairs
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.manifest import read_run

FILES = 16


def grown_run(folder: Path, pairs: int) -> str:
    """A published run of the example pairs, many times over, with numbers and drawn scores."""
    from manifests import write_manifest

    given = pj.read_json(ROOT / "examples/pairs.jsonl").select(["source", "paraphrase"])
    random, count, files = np.random.default_rng(0), pairs // FILES, []
    for part in range(FILES):
        numbers = range(part * count, (part + 1) * count)
        rows = given.take(random.integers(0, len(given), count)).to_pydict()
        columns = {
            name: [f"{k}：{text}" for k, text in zip(numbers, texts, strict=True)]
            for name, texts in rows.items()
        }
        columns |= {name: pa.array(random.beta(2, 3, count), pa.float32()) for name in OUTPUTS}
        columns["pair_id"] = [f"{k:032x}" for k in numbers]
        file = folder / f"scored/origin=llm/stage={part % 4}/part-{part}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), file, compression="zstd")
        files.append(file)
    return write_manifest(folder, files)


def bench_browsing(count: int) -> dict[str, float]:
    """Seconds by question."""
    with tempfile.TemporaryDirectory() as folder:
        uri = grown_run(Path(folder, "runs/grown"), count)
        pairs = Pairs(uri, read_run(uri))
        narrow = Filter(stage=2, bounds={"meaning": (0.6, None), "structure": (None, 0.5)})
        every, text = Filter(), Filter(text="图书馆")
        questions = {
            "reading": lambda cursor: Pairs(uri, read_run(uri)).close(),
            "first_page": lambda cursor: pairs.page(cursor, every, "spscore", True, 50),
            "filtered_page": lambda cursor: pairs.page(cursor, narrow, "meaning", False, 50),
            "text_page": lambda cursor: pairs.page(cursor, text, "spscore", True, 50),
            "text_histogram": lambda cursor: pairs.histogram(cursor, text, "meaning"),
            "histogram": lambda cursor: pairs.histogram(cursor, every, "spscore"),
            "sample": lambda cursor: pairs.sample(cursor, every, 50, 1),
            "one": lambda cursor: pairs.one(cursor, f"{count // 2:032x}"),
        }
        seconds = {
            name: max(timeit.repeat(lambda ask=ask: ask(pairs.cursor()), number=1, repeat=3))
            for name, ask in questions.items()
        }
        pairs.close()
    return seconds


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=1_000_000)
    show(bench_browsing(options.parse_args().pairs), "browse")
