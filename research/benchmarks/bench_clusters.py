"""Measures the speed and memory of build_pairs cluster without keys, by MinHash.

    python research/benchmarks/bench_clusters.py --data FOLDER          1 and 4 million sentences
    python research/benchmarks/bench_clusters.py --data FOLDER --sentences 17000000

The sentences are real ones (zh_sentences.parquet) with some words replaced by others of the corpus:
more than half in most sentences, a tenth in a few, so that there are near duplicates and
candidates. Without a key, LSH compares all sentences. Prints, for each size, sentences per second
from start to exit, the seconds of each step, and the largest resident memory of Java and of a
Python worker.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import rjieba

from gaixie.research.benchmarks.common import ROOT, show, watch
from gaixie.udfs.command_line import make_parser
from gaixie.udfs.storage import storage

SENTENCES = "zh_sentences.parquet"
CHUNK = 250_000


def grow(data: Path, output: Path, count: int, seed: int = 7) -> None:
    """Writes ``count`` sentences to Parquet files, column text."""
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
        cut = words.dictionary.take(pa.array(taken))
        lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), cut)
        table = pa.table({"text": pc.binary_join(lists, "")})
        pq.write_table(table, output / f"{number:05d}.parquet", compression="zstd")


def run(sentences: Path, output: Path, count: int) -> dict[str, Any]:
    """Returns sentences per second, seconds by step, and peak memory of Java and Python in MB."""
    line = [sys.executable, "jobs/build_pairs.py", "cluster", "--input", str(sentences)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    log = output.with_suffix(".log")
    with log.open("w") as file:
        given = {"stdout": file, "stderr": subprocess.STDOUT, "env": environment}
        found = watch([*line, "--output", str(output)], **given)
    steps = re.findall(r"([a-z ]+): done in ([\d.]+) s", log.read_text("utf-8"))
    seconds = {name: float(value) for name, value in steps}
    return {"sentences_per_s": count / found["wall_s"], **found, "seconds": seconds}


if __name__ == "__main__":
    options = make_parser("bench_clusters.py", __doc__)
    options.add_argument("--data", type=Path, required=True, help=f"folder of {SENTENCES}")
    options.add_argument("--sentences", type=int, nargs="+", default=[1_000_000, 4_000_000])
    args, work = options.parse_args(), ROOT / "out/bench-clusters"
    for count in args.sentences:
        grown, output = work / f"input-{count}", work / f"output-{count}"
        for folder in (grown, output):
            storage.delete(str(folder))
        grow(args.data, grown, count)
        show(run(grown, output, count), f"{count:,} sentences")
