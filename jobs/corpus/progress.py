"""Shows the progress of a Spark job on standard error: pairs, pairs a second, time left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import SparkSession

from gaixie.udfs.command_line import say
from gaixie.udfs.storage.progress import Progress


@contextmanager
def progress(spark: SparkSession, title: str, rows: int | None) -> Iterator[None]:
    """Shows the progress of the Spark stages that run inside the block.

    It counts tasks: when 40 of 100 tasks are done, it shows 40 % of the rows. rows: their number,
    if known.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_try_to_watch, args=(spark, title, rows, stop), daemon=True)
    started = time.monotonic()
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    seconds = time.monotonic() - started
    rate = f", {rows / seconds:,.0f} pairs/s" if rows else ""
    say(f"{title}: done in {seconds:.1f} s{rate}")


def _try_to_watch(*args: Any) -> None:
    with suppress(Exception):  # Java may have ended, which the main thread also notices
        _watch(*args)


def _watch(spark: SparkSession, title: str, rows: int | None, stop: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    seen: set[int] = set()
    started, share = time.monotonic(), 0.0
    with Progress(title, total=1.0) as shown:
        while not stop.wait(0.5):
            seen.update(tracker.getActiveStageIds())
            stages = list(filter(None, map(tracker.getStageInfo, seen)))
            if not stages:
                continue
            done = sum(stage.numCompletedTasks for stage in stages)
            # Spark makes a stage known when it begins, which adds tasks that are not done.
            share = max(share, done / sum(stage.numTasks for stage in stages))
            detail = f"{share:4.0%} of tasks"
            if rows:
                rate = rows * share / (time.monotonic() - started)
                detail = f"{rows * share:,.0f} of {rows:,} pairs, {rate:,.0f} pairs/s"
            shown.update(share, detail)
