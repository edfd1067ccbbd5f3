"""How fast sentences come through the MinHash keys of build_pairs cluster, and in how much memory.

    python research/benchmarks/bench_clusters.py --data FOLDER                        1 and 4 million sentences
    python research/benchmarks/bench_clusters.py --data FOLDER --sentences 17000000 --cores 2

Sentences grow from real ones (zh_sentences.parquet): the words of each are exchanged for others of the
corpus, of most sentences more than half, of some few, so that there are near duplicates and candidates. No
key is given: all sentences meet by LSH. Prints, for each size, the seconds of each step, sentences a second
from the first row to the manifest, and the largest resident memory of Java and of a Python worker.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import rjieba

from gaixie.udfs.storage import storage

ROOT = Path(__file__).parents[2]
SENTENCES = "zh_sentences.parquet"
CHUNK = 250_000


def grow(data: Path, output: Path, count: int, seed: int = 7) -> None:
    """Writes sentences to Parquet files, column text."""
    texts = pq.read_table(data / SENTENCES, columns=["text"])["text"]
    lengths = pc.utf8_length(texts)
    texts = texts.filter(pc.and_(pc.greater(lengths, 18), pc.less(lengths, 80)))
    split = [rjieba.cut(text) for text in texts.slice(0, 200_000).to_pylist()]
    sizes = np.array([len(words) for words in split])
    words = pa.array([word for sentence in split for word in sentence]).dictionary_encode()
    starts, ids = np.append(0, np.cumsum(sizes)), words.indices.to_numpy()
    random = np.random.default_rng(seed)
    output.mkdir(parents=True)
    for number, begin in enumerate(range(0, count, CHUNK)):
        chosen = random.integers(0, len(split), min(CHUNK, count - begin))
        offsets = np.append(0, np.cumsum(sizes[chosen]))
        own = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts[chosen], sizes[chosen])
        share = np.where(random.random(len(chosen)) < 0.9, 0.6, 0.1)
        exchanged = random.random(offsets[-1]) < np.repeat(share, sizes[chosen])
        taken = np.where(exchanged, ids[random.integers(0, len(ids), offsets[-1])], ids[own])
        lists = pa.ListArray.from_arrays(
            pa.array(offsets.astype(np.int32)), words.dictionary.take(pa.array(taken))
        )
        table = pa.table({"text": pc.binary_join(lists, "")})
        pq.write_table(table, output / f"{number:05d}.parquet", compression="zstd")


def run(sentences: Path, output: Path, cores: int, options: list[str]) -> dict[str, float]:
    """Seconds by step, all of them as "total", and the peaks of Java and Python in MB."""
    line = [sys.executable, str(ROOT / "jobs/build_pairs.py"), "cluster", "--input", str(sentences)]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "PYSPARK_SUBMIT_ARGS": f"--master local[{cores}] pyspark-shell",
    }
    with open(output.with_suffix(".log"), "w+", encoding="utf-8") as log:
        started = time.perf_counter()
        job = subprocess.Popen(
            [*line, "--output", str(output), *options], stderr=log, stdout=log, env=environment
        )
        peaks: dict[str, float] = defaultdict(float)
        watched = psutil.Process(job.pid)
        while job.poll() is None:
            try:
                for process in [watched, *watched.children(recursive=True)]:
                    kind = "java" if process.name().startswith("java") else "python"
                    size = process.memory_info().rss / 2**20
                    peaks[kind] = max(peaks[kind], size)
            except psutil.Error:
                pass
            time.sleep(0.2)
        total = time.perf_counter() - started
        log.seek(0)
        said = log.read()
    if job.returncode:
        raise SystemExit(f"exit code {job.returncode}: {said[-2000:]}")
    steps = {name: float(s) for name, s in re.findall(r"([a-z ]+): done in ([\d.]+) s", said)}
    return steps | {"total": total} | {f"peak_mb_{kind}": size for kind, size in peaks.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help=f"folder of {SENTENCES}")
    parser.add_argument("--work", type=Path, default=ROOT / "out/bench-clusters")
    parser.add_argument("--sentences", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], help="a setting of the job")
    parser.add_argument("--keep-input", action="store_true", help="grow nothing that is there")
    args = parser.parse_args()
    options = [word for setting in args.set for word in ("--set", setting)]
    for count in args.sentences:
        grown, output = args.work / f"input-{count}", args.work / f"output-{count}"
        storage.delete(str(output))
        if not (args.keep_input and grown.exists()):
            storage.delete(str(grown))
            grow(args.data, grown, count)
        told = run(grown, output, args.cores, options)
        steps = {name: seconds for name, seconds in told.items() if "peak" not in name}
        shown = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in steps.items())
        print(f"{count:,} sentences: {count / told['total']:,.0f} a second ({shown})")
        print(
            f"  memory: Java {told['peak_mb_java']:,.0f} MB, Python {told['peak_mb_python']:,.0f} MB"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
