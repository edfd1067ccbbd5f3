"""What a person sees of a run: a bar a stage on a terminal, elsewhere a line every 30 seconds."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

LINE_SECONDS = 30.0


class Display:
    """Shows nothing where it is not shown, which is everywhere but on the main process."""

    def __init__(self, shown: bool):
        self.console = Console(quiet=not shown, highlight=False, soft_wrap=True)
        self._bar: Progress | None = None
        self._task: Any = None
        self._line_at = time.monotonic()

    def say(self, text: str) -> None:
        """Prints a line."""
        self.console.print(text, markup=False)

    def start_stage(self, stage: int, done: int, steps: int | None) -> None:
        """Starts a stage's bar. steps: of the stage's budget; None without one."""
        self.close()
        if self.console.is_terminal and not self.console.quiet:
            columns = (TextColumn("{task.description}"), BarColumn(12), MofNCompleteColumn())
            self._bar = Progress(
                *columns, TextColumn("{task.fields[status]}"), console=self.console
            )
            self._task = self._bar.add_task(
                f"stage {stage}", total=steps, completed=done, status=""
            )
            self._bar.start()

    def update(self, line: dict[str, Any], done: int, left: float | None) -> None:
        """Shows where the stage stands. line: of log.jsonl. done: steps of the stage. left: seconds of its budget."""
        status = (
            f"loss {line['loss']:.4f}, {line['tokens_per_second']:,.0f} tokens/s, "
            f"waits {line['waiting']:.0%}"
        )
        if left is not None:
            status += f", {left:,.0f} s left"
        if self._bar:
            self._bar.update(self._task, completed=done, status=status)
        elif time.monotonic() - self._line_at >= LINE_SECONDS:
            self._line_at = time.monotonic()
            self.say(f"stage {line['stage']}, step {line['step']:,}: {status}")

    def close(self) -> None:
        """Ends the bar."""
        if self._bar:
            self._bar.stop()
            self._bar = None
