"""How the job scales: on a standalone cluster of one worker, then of two, each with one core.

    python research/benchmarks/bench_scaling.py --pairs pairs/ --work out/scaling

Driver, master and workers share this machine: of two workers on two cores, the driver takes a part.
Prints, for each size, the job's steps, its pairs a second, and what grows with a run in the driver: the
manifest's bytes a file, and the markers of _work.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, RunManifest, read_run

sys.path.append(str(Path(__file__).parents[2] / "tests/support"))
from servers import SPARK_HOME, Cluster

ROOT = Path(__file__).parents[2]


def run_on(workers: int, pairs: Path, work: Path, options: list[str]) -> RunManifest:
    """The job with spark-submit on a cluster of its own."""
    folder = work / f"cluster-{workers}"
    folder.mkdir(parents=True)
    cluster = Cluster(folder)
    try:
        for _ in range(workers):
            cluster.add_worker()
        line = [str(SPARK_HOME / "bin/spark-submit"), "--master", cluster.url]
        line += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"]
        line += ["--conf", "spark.executor.memory=1g", str(ROOT / "jobs/score_corpus.py")]
        line += ["--input", str(pairs), "--origin", "parallel", "--output", str(work / "out")]
        line += ["--run-id", f"workers-{workers}", *options]
        settings = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        settings["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        subprocess.run(line, check=True, env=os.environ | settings, stdout=subprocess.DEVNULL)
    finally:
        cluster.stop()
    return read_run(f"{work}/out/runs/workers-{workers}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, required=True, help="folder of pairs.py")
    parser.add_argument("--work", type=Path, default=ROOT / "out/scaling")
    parser.add_argument("--tier", default="core")
    args = parser.parse_args()
    storage.delete(str(args.work))
    rates = []
    for workers in (1, 2):
        started = time.perf_counter()
        manifest = run_on(workers, args.pairs, args.work, ["--tier", args.tier])
        wall, steps = time.perf_counter() - started, manifest.seconds
        rates.append(manifest.total.read / sum(steps.values()))
        shown = ", ".join(f"{step} {seconds:.1f}" for step, seconds in steps.items())
        print(f"{workers} workers: {rates[-1]:,.0f} pairs/s, {wall:.1f} s in all ({shown})")
        scored = manifest.files["scored"]
        size = len(storage.read_bytes(f"{args.work}/out/runs/{manifest.run_id}/{NAME}"))
        per_file = len(scored[0].model_dump_json(indent=2)) if scored else 0
        print(f"  manifest: {size:,} bytes with {len(scored)} files, {per_file} bytes a file")
    print(f"two workers to one: {rates[1] / rates[0]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
