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

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import rjieba

from gaixie.research.benchmarks.common import ROOT, best_rate, parser, show, watch
from gaixie.research.benchmarks.pairs import write_pairs
from gaixie.udfs.features import extract_code_points
from gaixie.udfs.meaning import extract, language_model, vectors
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, read_run
from gaixie.udfs.text.code_points import to_strings
from gaixie.udfs.text.normalise import normalise_column
from gaixie.udfs.text.pair_id import pair_ids
from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

SAMPLE, FULL_SAMPLE = 50_000, 1_000


def sample(pairs: Path, rows: int = SAMPLE) -> tuple[pa.Array, pa.Array]:
    """Returns the first sources and paraphrases of the folder."""
    table = pq.read_table(sorted(pairs.glob("*.parquet"))[0]).slice(0, rows)
    return table["source"].combine_chunks(), table["paraphrase"].combine_chunks()


def bench_parts(pairs: Path) -> dict[str, dict[str, float]]:
    """Measures each part alone, warm: rows per second on one core."""
    source, paraphrase = sample(pairs)
    segmenter, metric = JiebaSegmenter(), SPScore.load()
    (a, _), (b, _) = normalise_column(source), normalise_column(paraphrase)
    sides, tables = (a, b, segmenter.word_ends(a), segmenter.word_ends(b)), Resources.load()
    features = metric.features(*sides)
    texts, rows = to_strings(a), len(source)
    origin = pa.array(["parallel"] * rows)
    kernels = {
        "core": lambda: metric.features(*sides),
        "eight_features": lambda: extract_code_points(*sides),
        "surface_and_facts": lambda: extract.count(*sides),
        "vectors": lambda: vectors.features(*sides, tables.vectors),
        "language_model": lambda: language_model.features(a, b, tables.language_model),
    }
    others = {
        "normalise": lambda: normalise_column(source),
        "segmenter": lambda: segmenter.word_ends(a),
        "prediction": lambda: metric.predict(features),
        "pair_id": lambda: pair_ids(source, paraphrase, origin),
    }
    rates = {name: best_rate(rows, work) for name, work in others.items()}
    rates["rjieba"] = best_rate(rows, lambda: [rjieba.cut(text) for text in texts], 2)
    return {
        "pairs": {"characters_a_sentence": len(a.values) / rows},
        "rows_per_s_per_core": rates,
        "kernels": {name: best_rate(rows, work) for name, work in kernels.items()},
    }


def bench_full(pairs: Path) -> dict[str, float]:
    """Measures tier full from texts to outputs, on all cores."""
    sides, metric = sample(pairs, FULL_SAMPLE), SPScore.load("full")
    return {"pairs_per_s_all_cores": best_rate(FULL_SAMPLE, lambda: metric.outputs(*sides), 2)}


def bench_job(
    pairs: str,
    output: str,
    options: list[str],
    launcher: Sequence[str] = (sys.executable,),
    **given: Any,
) -> dict[str, Any]:
    """Measures the job in its own process, as users run it, from outside."""
    storage.delete(output)
    command = [*launcher, "jobs/score_corpus.py", "--input", pairs, *options]
    command += ["--origin", "parallel", "--output", output, "--run-id", "bench"]
    watched = watch(command, **given)
    uri = f"{output}/runs/bench"
    manifest = read_run(uri)
    scored = manifest.files["scored"]
    return {
        "pairs": manifest.total.read,
        "pairs_per_s": manifest.total.read / sum(manifest.seconds.values()),
        "seconds": manifest.seconds,
        **watched,
        "rows": manifest.model_dump()["rows"],
        "output_files": len(scored),
        "manifest_bytes": len(storage.read_bytes(storage.join(uri, MANIFEST))),
        "output_mb": sum(file.bytes for file in scored) / 1e6,
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


def bench_all(args: argparse.Namespace, pairs: Path, options: list[str]) -> dict[str, Any]:
    """Returns every figure of bench.json."""
    result: dict[str, Any] = bench_parts(pairs)
    if importlib.util.find_spec("transformers"):
        result["full"] = bench_full(pairs)
    local = result["job"] = bench_job(str(pairs), str(args.work / "output"), options)
    if args.s3:
        far = bench_s3(pairs, args.work / "store", options)
        result["job_s3"] = far | {"ratio_to_local": far["pairs_per_s"] / local["pairs_per_s"]}
    return result


def main() -> None:
    """Makes the pairs if they do not exist, then measures."""
    given = parser(__doc__)
    add = given.add_argument
    add("--data", type=Path, required=True, help="folder of the WMT outputs")
    add("--pairs", type=int, default=2_000_000)
    add("--grown", action="store_true", help="joined neighbours too, for 17 million")
    add("--work", type=Path, default=ROOT / "out/bench", help="for pairs and output")
    add("--tier", help="what the job sees; the parts are those of core")
    add("--job", action="store_true", help="the job from disk to disk, nothing else")
    add("--no-s3", dest="s3", action="store_false", help="without the run on an object store")
    args = given.parse_args()
    pairs = args.work / f"pairs-{args.pairs}{'-grown' if args.grown else ''}"
    if not (pairs / "_SUCCESS").exists():
        print(f"making {args.pairs:,} pairs in {pairs}", file=sys.stderr)
        write_pairs(args.data, pairs, args.pairs, args.grown)
        (pairs / "_SUCCESS").touch()
    options = ["--tier", args.tier] if args.tier else []
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {sys.version[:6]}"
    print(machine)
    if args.job:
        output = args.work / f"output-{args.tier or 'core'}"
        show({"job": bench_job(str(pairs), str(output), options)})
        return
    result = {"machine": machine, **bench_all(args, pairs, options)}
    (ROOT / "bench.json").write_text(json.dumps(result, indent=2) + "\n")
    show(result)
    print("bench.json has the figures")


if __name__ == "__main__":
    main()
