"""Two Spark jobs at the same time: what one leaves idle, of cores and of the driver, the other uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TypeVar

from pyspark.sql import SparkSession

T = TypeVar("T")


@contextmanager
def beside(spark: SparkSession, work: Callable[[], T]) -> Iterator[Future[T]]:
    """Does the work in a thread while the block runs, and then waits for it: its result is to be had behind it.

    Raises what the block raises, else what the work does. Where the block is broken off, so is the work.
    """
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            yield done
            done.result()
        except BaseException:
            # In a thread of its own: an interrupted one's connection to Java may be in use.
            Thread(target=_cancel, args=(spark,), daemon=True).start()
            raise


def _cancel(spark: SparkSession) -> None:
    with suppress(Exception):  # Java may be gone already
        spark.sparkContext.cancelAllJobs()
