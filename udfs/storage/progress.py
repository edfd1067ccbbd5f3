"""Shows the progress of long work: a bar on a terminal, else (a log, cron) an occasional line."""

import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

LINE_SECONDS = 15.0


class Progress:
    """Shows how much work is done, its rate, and the time left if the total is known.

    title: name of the work. unit: what is counted, in the plural. console: by default standard
    error; a quiet console shows nothing. done: the count that an earlier run finished. Use it in a
    with block.
    """

    def __init__(
        self,
        title: str,
        total: float | None = None,
        unit: str = "",
        console: Console | None = None,
        done: int = 0,
    ):
        self.title, self.total, self.unit = title, total, unit
        self.done: float = done
        self._from = done
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._started = self._line_at = time.monotonic()
        self._bar = Bar(
            *(TextColumn("{task.description}"), BarColumn(12), TextColumn("{task.fields[detail]}")),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=self._console.quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=total, completed=done, detail="")
        self._bar.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def add(self, count: float) -> None:
        """Adds to the count that is done."""
        self.update(self.done + count)

    def update(self, done: float, detail: str = "") -> None:
        """Sets how much is done by now. detail: replaces the count and its rate."""
        self.done, now = done, time.monotonic()
        rate = (done - self._from) / max(now - self._started, 1e-9)
        if not detail:
            of_total = f" of {self.total:,.0f}" if self.total else ""
            detail = f"{done:,.0f}{of_total} {self.unit}, {rate:,.1f} a second"
        self._bar.update(self._task, completed=done, detail=detail)
        if self._bar.disable and now - self._line_at >= LINE_SECONDS:
            self._line_at = now
            left = (self.total - done) / rate if self.total and rate else None
            estimate = "" if left is None else f", {left:,.0f} s left"
            self._console.print(f"{self.title}: {detail}{estimate}", markup=False)
