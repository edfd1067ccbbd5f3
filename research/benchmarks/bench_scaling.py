"""How the job scales: on a standalone cluster of one worker, then of two, each with one core.

    python research/benchmarks/bench_scaling.py --pairs pairs/ --work out/scaling

Driver, master and workers share this machine: of two workers on two cores, the driver takes a part.
Prints, for each size, the seconds of the job's steps, its pairs a second, and what grows with a run
in the driver: the bytes of its manifest.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from gaixie.research.benchmarks.bench import bench_job
from gaixie.research.benchmarks.common import ROOT, parser, show
from gaixie.udfs.storage import storage


def run_on(workers: int, pairs: Path, work: Path, tier: str) -> dict[str, Any]:
    """The job with spark-submit on a cluster of its own."""
    from servers import SPARK_HOME, Cluster

    folder = work / f"cluster-{workers}"
    folder.mkdir(parents=True)
    cluster = Cluster(folder)
    line = [str(SPARK_HOME / "bin/spark-submit"), "--master", cluster.url]
    line += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"]
    line += ["--conf", "spark.executor.memory=1g"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    settings = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path}
    try:
        for _ in range(workers):
            cluster.add_worker()
        given = (str(pairs), str(work / "out"), ["--tier", tier], line)
        return bench_job(*given, env=os.environ | settings)
    finally:
        cluster.stop()


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--pairs", type=Path, required=True, help="folder of pairs.py")
    options.add_argument("--work", type=Path, default=ROOT / "out/scaling")
    options.add_argument("--tier", default="core")
    args = options.parse_args()
    storage.delete(str(args.work))
    one, two = (run_on(workers, args.pairs, args.work, args.tier) for workers in (1, 2))
    show({"one_worker": one, "two_workers": two, "ratio": two["pairs_per_s"] / one["pairs_per_s"]})
