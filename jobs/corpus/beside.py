"""Runs Spark work in a thread, so that other work goes on or Ctrl-C can interrupt it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TypeVar

from pyspark import SparkContext

T = TypeVar("T")


@contextmanager
def beside(work: Callable[[], T]) -> Iterator[Future[T]]:
    """Runs the work in a thread while the block runs, then waits for its result.

    Raises the block's error if there is one, else the work's. If the block fails, Spark's jobs are
    cancelled.
    """
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            yield done
            done.result()
        except BaseException:
            # In its own thread: an interrupted thread's connection to Java may be in use.
            Thread(target=_cancel, daemon=True).start()
            raise


def interruptible(work: Callable[[], T]) -> T:
    """Runs work such as toArrow in a thread, and returns its result.

    If Ctrl-C reaches PySpark in the main thread, it stops reading what Java sends, and then waits
    until Java has sent all of it. Do not use this for toPandas, which prints long warnings when
    interrupted.
    """
    with beside(work) as done:
        pass
    return done.result()


def _cancel() -> None:
    with suppress(Exception):  # Java may be gone already
        context = SparkContext._active_spark_context
        if context is not None:
            context.cancelAllJobs()
