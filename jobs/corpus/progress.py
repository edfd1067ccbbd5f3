"""Shows the progress of a Spark job on standard error: pairs, pairs a second, time left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from gaixie.udfs.command_line import say
from gaixie.udfs.storage.progress import Progress


@contextmanager
def progress(spark: SparkSession, title: str, rows: int | None) -> Iterator[None]:
    """Shows the progress of the Spark stages that run inside the block.

    It counts tasks: when 40 of 100 tasks are done, it shows 40 % of the rows. rows: their number,
    if known.
    """
    stop, started = threading.Event(), time.monotonic()
    thread = threading.Thread(target=_watch, args=(spark, title, rows, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    seconds = time.monotonic() - started
    rate = f", {rows / seconds:,.0f} pairs/s" if rows else ""
    say(f"{title}: done in {seconds:.1f} s{rate}")


def _watch(spark: SparkSession, title: str, rows: int | None, stop: threading.Event) -> None:
    seen: set[int] = set()
    started, share = time.monotonic(), 0.0
    # Java may end meanwhile, which the main thread also notices.
    with suppress(Exception), Progress(title, total=1.0) as shown:
        tracker = spark.sparkContext.statusTracker()
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
