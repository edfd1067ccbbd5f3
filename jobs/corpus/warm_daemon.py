"""Loads what Python workers need, once: Spark forks them from this process, ready to work.

A worker that begins with nothing imports and compiles for two seconds. Spark runs this module in
place of ``pyspark.daemon``: it is the setting ``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc
from contextlib import suppress


def main() -> None:
    """Loads the kernels and the model, then forks workers until Java ends."""
    gc.disable()  # all of it stays: looking for garbage would be a tenth of the time
    from pyspark.daemon import manager

    from gaixie.udfs.spark import worker_segmenter
    from gaixie.udfs.spscore import SPScore
    from gaixie.udfs.spscore.pickled import share

    with suppress(Exception):  # a worker that wants it says what is wrong
        model = share(SPScore.load())
        model.score(["天气很好"], ["今天天气不错"], worker_segmenter("jieba"))
    gc.freeze()  # a worker that looked through it would copy memory that it shares
    gc.enable()
    manager()


if __name__ == "__main__":
    main()
