"""Preloads what Python workers need; Spark then forks ready workers from this process.

A worker that starts cold imports and compiles for two seconds. Spark runs this module instead of
``pyspark.daemon``, through the setting ``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc
from contextlib import suppress


def main() -> None:
    """Loads the kernels and the model, then forks workers until Java ends."""
    gc.disable()  # nothing is freed here, and garbage collection would take a tenth of the time
    from pyspark.daemon import manager

    from gaixie.udfs.spark import worker_segmenter
    from gaixie.udfs.spscore import SPScore
    from gaixie.udfs.spscore.files import share

    with suppress(Exception):  # a worker that needs it reports the error
        model = share(SPScore.load())
        model.score(["天气很好"], ["今天天气不错"], worker_segmenter("jieba"))
    gc.freeze()  # a collection in a worker would copy shared memory
    gc.enable()
    manager()


if __name__ == "__main__":
    main()
