"""The process from which Spark forks its Python workers, with what they will want loaded: a worker is then
ready at once, where it would import and compile for two seconds.

Spark runs it as ``spark.python.daemon.module``, in place of ``pyspark.daemon``.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark.daemon import manager

from gaixie.udfs.spark import worker_segmenter
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.spscore.pickled import share

if __name__ == "__main__":
    with suppress(Exception):  # a worker that wants it says what is wrong
        model = share(SPScore.load())
        model.score(["天气很好"], ["今天天气不错"], worker_segmenter("jieba"))
    manager()
