"""Measures the speed of each part and of the whole job.

    make bench                       2,000,000 real pairs, 44 characters on average
    make bench PAIRS=200000
    python research/benchmarks/bench.py --data FOLDER --pairs 17000000 --grown
    python research/benchmarks/bench.py --data FOLDER --job --tier paper      only the job

Prints a table and writes bench.json. "per core" means one core of this machine. `job.pairs_per_s`
covers the job's own steps, from scoring to the manifest; `job.wall_s` covers the whole process,
including the start of Java and Spark. `job.core_s` is the core time of its processes, which other
work on the machine hardly changes. `job.peak_rss_mb` is the largest process of each kind, Java and
Python. `job_s3` is the same job from s3a:// to s3a://, on a SeaweedFS server that shares this
machine's cores.
"""

import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import rjieba

from gaixie.research.benchmarks.common import ROOT, best_rate, show, watch, write_pairs
from gaixie.udfs.command_line import make_parser
from gaixie.udfs.features import extract_code_points
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import read_run
from gaixie.udfs.text.code_points import to_strings
from gaixie.udfs.text.normalise import normalise_column
from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

SAMPLE, FULL_SAMPLE = 50_000, 1_000


def sample(pairs: Path, rows: int = SAMPLE) -> tuple[pa.Array, pa.Array]:
    """Returns the first sources and paraphrases of the folder."""
    table = pq.read_table(sorted(pairs.glob("*.parquet"))[0]).slice(0, rows)
    return table["source"].combine_chunks(), table["paraphrase"].combine_chunks()


def bench_parts(pairs: Path) -> dict[str, Any]:
    """Measures each part alone, warm: rows per second on one core."""
    source, paraphrase = sample(pairs)
    segmenter, metric = JiebaSegmenter(), SPScore.load()
    (a, _), (b, _) = normalise_column(source), normalise_column(paraphrase)
    sides = (a, b, segmenter.word_ends(a), segmenter.word_ends(b))
    features, texts, rows = metric.features(*sides), to_strings(a), len(source)
    parts = {
        "normalise": lambda: normalise_column(source),
        "segmenter": lambda: segmenter.word_ends(a),
        "core": lambda: metric.features(*sides),
        "eight_features": lambda: extract_code_points(*sides),
        "prediction": lambda: metric.predict(features),
    }
    rates = {name: best_rate(rows, work) for name, work in parts.items()}
    rates["rjieba"] = best_rate(rows, lambda: [rjieba.cut(text) for text in texts], 2)
    return {"rows_per_s_per_core": rates, "characters_a_sentence": len(a.values) / rows}


def bench_full(pairs: Path) -> dict[str, float]:
    """Measures tier full from texts to outputs, on all cores."""
    sides, metric = sample(pairs, FULL_SAMPLE), SPScore.load("full")
    return {"pairs_per_s_all_cores": best_rate(FULL_SAMPLE, lambda: metric.outputs(*sides), 2)}


def bench_job(pairs: str, output: str, options: list[str]) -> dict[str, Any]:
    """Measures the job in its own process, as users run it, from outside."""
    storage.delete(output)
    command = [sys.executable, "jobs/score_corpus.py", "--input", pairs, *options]
    command += ["--origin", "parallel", "--output", output, "--run-id", "bench"]
    watched = watch(command)
    manifest = read_run(f"{output}/runs/bench")
    return {
        "pairs": manifest.total.read,
        "pairs_per_s": manifest.total.read / sum(manifest.seconds.values()),
        "seconds": manifest.seconds,
        **watched,
    }


def bench_s3(pairs: Path, work: Path, options: list[str]) -> dict[str, Any]:
    """Measures the same job from s3a:// to s3a://; the object store shares the machine."""
    from servers import ObjectStore

    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    store = ObjectStore(work)
    os.environ.update(store.environment())
    root = f"s3a://{store.BUCKET}"
    try:
        for file in sorted(pairs.glob("*.parquet")):
            storage.copy(str(file), f"{root}/pairs/{file.name}")
        return bench_job(f"{root}/pairs", f"{root}/out", options)
    finally:
        store.stop()


def main() -> None:
    """Makes the pairs if they do not exist, then measures."""
    given = make_parser("bench.py", __doc__)
    add = given.add_argument
    add("--data", type=Path, required=True, help="folder of the WMT outputs")
    add("--pairs", type=int, default=2_000_000)
    add("--grown", action="store_true", help="joined neighbours too, for 17 million")
    add("--tier", default="core", help="what the job sees; the parts are those of core")
    add("--job", action="store_true", help="the job from disk to disk, nothing else")
    args, work = given.parse_args(), ROOT / "out/bench"
    pairs = work / f"pairs-{args.pairs}{'-grown' if args.grown else ''}"
    if not (pairs / "_SUCCESS").exists():
        print(f"making {args.pairs:,} pairs in {pairs}", file=sys.stderr)
        write_pairs(args.data, pairs, args.pairs, args.grown)
        (pairs / "_SUCCESS").touch()
    options = ["--tier", args.tier]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {sys.version[:6]}"
    result: dict[str, Any] = {"machine": machine}
    if not args.job:
        result |= bench_parts(pairs) | {"full": bench_full(pairs)}
    result["job"] = bench_job(str(pairs), str(work / f"output-{args.tier}"), options)
    if not args.job:
        result["job_s3"] = bench_s3(pairs, work / "store", options)
    (ROOT / "bench.json").write_text(json.dumps(result, indent=2) + "\n")
    print(machine)
    show(result)


if __name__ == "__main__":
    main()
