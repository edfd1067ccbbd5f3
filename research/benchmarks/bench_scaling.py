"""How the job scales: on a standalone cluster of one worker, then of two, each with one core.

    python research/benchmarks/bench_scaling.py --pairs pairs/ --work out/scaling

Driver, master and workers share this machine: of two workers on two cores, the driver takes a part.
Prints, for each size, the seconds of the job's steps, its pairs a second, and what grows with a run
in the driver: the manifest's bytes, and its bytes a file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gaixie.research.benchmarks.common import ROOT, parser, show, watch
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, read_run


def run_on(workers: int, pairs: Path, work: Path, options: list[str]) -> dict[str, object]:
    """The job with spark-submit on a cluster of its own."""
    from servers import SPARK_HOME, Cluster

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
        settings = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        settings["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        line += ["--run-id", f"workers-{workers}", *options]
        wall = watch(line, env=os.environ | settings)["wall_s"]
    finally:
        cluster.stop()
    uri = f"{work}/out/runs/workers-{workers}"
    manifest = read_run(uri)
    scored = manifest.files["scored"]
    return {
        "pairs_per_s": manifest.total.read / sum(manifest.seconds.values()),
        "wall_s": wall,
        "seconds": manifest.seconds,
        "files": len(scored),
        "manifest_bytes": len(storage.read_bytes(storage.join(uri, NAME))),
        "manifest_bytes_a_file": len(scored[0].model_dump_json(indent=2)) if scored else 0,
    }


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--pairs", type=Path, required=True, help="folder of pairs.py")
    options.add_argument("--work", type=Path, default=ROOT / "out/scaling")
    options.add_argument("--tier", default="core")
    args = options.parse_args()
    storage.delete(str(args.work))
    one, two = (run_on(n, args.pairs, args.work, ["--tier", args.tier]) for n in (1, 2))
    show({"one_worker": one, "two_workers": two, "ratio": two["pairs_per_s"] / one["pairs_per_s"]})
