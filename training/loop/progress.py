"""What a person sees of a run: what it says, and how far its stage has come."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from gaixie.udfs.storage.progress import Progress


class Display:
    """Shows nothing where it is not shown, which is everywhere but on the main process."""

    def __init__(self, shown: bool):
        self.console = Console(quiet=not shown, highlight=False, soft_wrap=True)
        self._stage: Progress | None = None

    def say(self, text: str) -> None:
        """Prints a line."""
        self.console.print(text, markup=False)

    def start_stage(self, stage: int, done: int, steps: int | None) -> None:
        """Starts a stage's bar. steps: of the stage's budget; None without one."""
        self.close()
        self._stage = Progress(f"stage {stage}", steps, "steps", self.console, done)

    def update(self, line: dict[str, Any], done: int, left: float | None) -> None:
        """Shows where the stage stands. line: of log.jsonl. done: steps of the stage. left: seconds of its budget."""
        status = (
            f"step {line['step']:,}, loss {line['loss']:.4f}, "
            f"{line['tokens_per_second']:,.0f} tokens/s, waits {line['waiting']:.0%}"
        )
        if self._stage:
            self._stage.update(done, status, left)

    def close(self) -> None:
        """Ends the bar."""
        if self._stage:
            self._stage.close()
            self._stage = None
