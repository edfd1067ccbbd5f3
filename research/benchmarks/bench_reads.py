"""Measures how often jobs read the bytes of their input, by kind of input.

    python research/benchmarks/bench_reads.py --work out/reads

Makes a small input of each kind, runs the job with Spark's event log, and adds up the bytes that
tasks read in queries of the input (for Parquet, only the columns needed). Prints them as multiples
of the input's size. Not included is what the driver reads: the footers of Parquet files, and a
whole TMX file, once.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pandas as pd

from gaixie.research.benchmarks.common import ROOT, parser
from gaixie.udfs.storage import storage

HAN = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能"


def sentences(count: int, seed: int) -> list[str]:
    """Returns sentences of 30 characters."""
    draw = random.Random(seed)
    return ["".join(draw.choices(HAN, k=29)) + "。" for _ in range(count)]


def write(folder: Path, rows: int) -> dict[str, tuple[Path, list[str]]]:
    """Writes an input of each kind. Returns, by kind, its path and the job's arguments."""
    folder.mkdir(parents=True)
    table = pd.DataFrame({"source": sentences(rows, 1), "paraphrase": sentences(rows, 2)})
    table["kind"] = "llm"
    table["note"] = [f"{number:0200}" for number in range(rows)]
    table.to_parquet(folder / "a.parquet", index=False)
    table.to_json(folder / "a.jsonl", orient="records", lines=True, force_ascii=False)
    table.to_csv(folder / "a.csv", index=False, quoting=1)
    table.to_csv(folder / "a.tsv", index=False, sep="\t")
    for side, name in (("source", "human.txt"), ("paraphrase", "machine.txt")):
        (folder / name).write_text("\n".join(table[side]) + "\n", "utf-8")
    found: dict[str, tuple[Path, list[str]]] = {}
    for kind in ("parquet", "jsonl", "csv", "tsv"):
        path = folder / f"a.{kind}"
        line = ["jobs/score_corpus.py", "--tier", "paper", "--run-id", "r", "--input", str(path)]
        found[f"score {kind}"] = path, [*line, "--origin", "llm"]
        found[f"score {kind}, origins in a column"] = path, [*line, "--origin-column", "kind"]
        line = ["jobs/build_pairs.py", "parallel", "--input", str(path)]
        columns = ["--human-column", "source", "--machine-column", "paraphrase"]
        found[f"pairs {kind}"] = path, [*line, *columns]
    line = ["jobs/build_pairs.py", "parallel", "--human", str(folder / "human.txt")]
    found["pairs text"] = folder / "human.txt", [*line, "--machine", str(folder / "machine.txt")]
    return found


def bytes_read(log: Path, path: Path) -> int:
    """Adds up the bytes that tasks read in queries of a path, and in queries of RDDs."""
    of_input, stages, read = set(), set(), 0
    for line in log.read_text("utf-8").splitlines():
        event = json.loads(line)
        name, plan = event["Event"].rpartition(".")[2], event.get("physicalPlanDescription", "")
        if name == "SparkListenerSQLExecutionStart" and (path.name in plan or "RDD" in plan):
            of_input.add(str(event["executionId"]))
        elif name == "SparkListenerJobStart":
            query = event.get("Properties", {}).get("spark.sql.execution.id")
            if query is None or query in of_input:
                stages |= {*event["Stage IDs"]}
        elif name == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
            metrics = event.get("Task Metrics") or {}
            read += metrics.get("Input Metrics", {}).get("Bytes Read", 0)
    return read


def run(words: list[str], path: Path, work: Path) -> float:
    """Returns how often a job reads the bytes of a file, or of two files of the same size."""
    logs, output = work / "events", work / "out"
    for folder in (logs, output):
        storage.delete(str(folder))
    logs.mkdir(parents=True)
    given = {
        "enabled": "true",
        "dir": logs.as_uri(),
        "compress": "false",
        "rolling.enabled": "false",
    }
    # Spark does not count what Parquet reads in its own threads, so vectored reads are off.
    counted = "--conf spark.hadoop.parquet.hadoop.vectored.io.enabled=false"
    conf = " ".join(f"--conf spark.eventLog.{name}={value}" for name, value in given.items())
    environment = os.environ | {
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {counted} {conf} pyspark-shell"
    }
    line = [sys.executable, *words, "--output", str(output)]
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    [log] = logs.iterdir()
    return bytes_read(log, path) / (path.stat().st_size * (2 if path.suffix == ".txt" else 1))


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--work", type=Path, default=ROOT / "out/reads")
    options.add_argument("--rows", type=int, default=50_000)
    options.add_argument("--only", default="", help="kinds whose name has this in it")
    args = options.parse_args()
    storage.delete(str(args.work))
    for name, (path, words) in write(args.work / "input", args.rows).items():
        if args.only in name:
            print(f"{name:<40}{run(words, path, args.work):>8.2f}", flush=True)
