"""Progress of a Spark job: pairs, pairs a second and the time left, on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

LINE_EVERY_SECONDS = 15


@contextmanager
def progress(spark: SparkSession, title: str, rows: int | None) -> Iterator[None]:
    """Shows how far the Spark stages that run inside the block have come.

    Tasks stand for rows: with 40 of 100 tasks done, 40 % of the rows are. rows is the total where
    it is known. On a terminal a bar, elsewhere a line every 15 seconds.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(spark, title, rows, stop), daemon=True)
    started = time.monotonic()
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    seconds = time.monotonic() - started
    rate = f", {rows / seconds:,.0f} pairs/s" if rows else ""
    print(f"{title}: done in {seconds:.1f} s{rate}", file=sys.stderr, flush=True)


def _watch(spark: SparkSession, title: str, rows: int | None, stop: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    tasks: dict[int, tuple[int, int]] = {}  # stage -> (tasks, finished)
    terminal = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeRemainingColumn(),
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
    )
    started = last_line = time.monotonic()
    with bar:
        shown = bar.add_task(title, total=1.0, detail="")
        while not stop.wait(0.5):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info:
                    tasks[stage] = (info.numTasks, info.numCompletedTasks)
            active = set(tracker.getActiveStageIds())
            total = sum(count for count, _ in tasks.values())
            done = sum(
                finished if stage in active else count for stage, (count, finished) in tasks.items()
            )
            if not total:
                continue
            share, now = done / total, time.monotonic()
            rate = (rows or 0) * share / (now - started)
            detail = f"{share:4.0%} of tasks"
            if rows:
                detail = f"{rows * share:,.0f} of {rows:,} pairs, {rate:,.0f} pairs/s"
            bar.update(shown, completed=share, detail=detail)
            if bar.disable and now - last_line >= LINE_EVERY_SECONDS:
                last_line = now
                left = f", {(1 - share) * (now - started) / share:,.0f} s left" if share else ""
                print(f"{title}: {detail}{left}", file=sys.stderr, flush=True)
