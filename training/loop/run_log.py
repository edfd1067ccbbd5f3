"""Writes a run's records: log.jsonl, history.jsonl, settings.yaml, a tracker, the plot.

An Interval collects the steps since the last line of log.jsonl on each rank. `together` adds up
those of all ranks, in the one message by which they also agree on the time and on whether to stop.
"""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import yaml
from accelerate import Accelerator

from gaixie.training.data.stage_data import Position, StageStream
from gaixie.training.loop import plots
from gaixie.training.loop.backend import Utilisation, tracker_options
from gaixie.training.loop.controller import Decision
from gaixie.training.loop.step import Done
from gaixie.training.loop.validation import Found
from gaixie.training.settings import Settings


@dataclass(frozen=True)
class Agreed:
    """Sums over an interval, the same on every rank."""

    losses: list[float]
    """Loss of each step: the mean over all its label tokens."""
    skipped: list[bool]
    """Whether each step changed nothing because its gradient was not finite."""
    tokens: int
    """Tokens of sources and paraphrases."""
    waiting: float
    """Mean seconds that a rank waited for data."""
    spent: float
    """Seconds by the main process's clock, without evaluations and checkpoints."""
    seconds: float
    """Seconds of the run so far, by the same clock."""
    stop: bool
    """Whether some rank was told to stop."""
    labels: int = 0
    """Tokens of paraphrases among the tokens."""


class Interval:
    """The steps since the last line of log.jsonl, on one rank."""

    def __init__(self) -> None:
        self.steps: list[Done] = []
        self.positions: list[Position] = []
        self.waiting = 0.0
        self.started = time.monotonic()

    def add(self, done: Done, waiting: float, position: Position) -> None:
        """Adds a step. position: after the step's batch."""
        self.steps.append(done)
        self.positions.append(position)
        self.waiting += waiting

    def together(self, accelerator: Accelerator, stop: bool, seconds: float) -> Agreed:
        """Sums over all ranks; all of them call it.

        Losses stay on the device until here, so that no step waits for them.
        """
        main = accelerator.is_main_process
        clock = [time.monotonic() - self.started, seconds] if main else [0.0, 0.0]
        tokens = sum(done.tokens for done in self.steps)
        numbers = torch.tensor([stop, tokens, self.waiting, *clock], dtype=torch.float64)
        columns = [done.loss for done in self.steps] + [done.skipped for done in self.steps]
        own = torch.cat([numbers.to(accelerator.device), torch.stack(columns).double()])
        stops, tokens, waiting, spent, seconds, *steps = accelerator.reduce(own, "sum").tolist()
        losses, skipped = steps[: len(self.steps)], [one > 0 for one in steps[len(self.steps) :]]
        waiting /= accelerator.num_processes
        labels = sum(done.labels for done in self.steps)
        return Agreed(losses, skipped, int(tokens), waiting, spent, seconds, stops > 0, labels)


class RunLog:
    """Writes on the main process only; the others may call it too."""

    def __init__(
        self, accelerator: Accelerator, settings: Settings, signature: str, work: Utilisation
    ):
        self.accelerator, self.settings, self.signature = accelerator, settings, signature
        self.work = work
        self.output = Path(settings.output)
        self.main = accelerator.is_main_process
        self._skipped = 0
        """Consecutive steps that changed nothing."""

    def start(self, step: int) -> None:
        """Writes settings.yaml and opens the tracker; TensorBoard keeps its records up to step."""
        if self.main:
            self.output.mkdir(parents=True, exist_ok=True)
            text = yaml.safe_dump(self.settings.model_dump(mode="json"), allow_unicode=True)
            (self.output / "settings.yaml").write_text(text, "utf-8")
        if self.settings.tracking:
            given = tracker_options(self.settings, step)
            self.accelerator.init_trackers("curriculum", init_kwargs=given)

    def interval(
        self, agreed: Agreed, step: int, stage: int, rate: float, loader: dict[str, Any]
    ) -> dict[str, Any]:
        """Writes and returns the interval's line of log.jsonl."""
        line = {
            "step": step,
            "stage": stage,
            "loss": sum(agreed.losses) / len(agreed.losses),
            "learning_rate": rate,
            "tokens": agreed.tokens,
            "pairs": loader["pairs"],
            "position": loader["position"],
            "seconds": agreed.seconds,
            "tokens_per_second": agreed.tokens / agreed.spent,
            "mfu": self.work.of(agreed.tokens - agreed.labels, agreed.labels) / agreed.spent,
            "waiting": agreed.waiting / agreed.spent,
            "skipped": sum(agreed.skipped),
        }
        names = ("loss", "learning_rate", "tokens_per_second", "mfu")
        self._write("log.jsonl", line, {name: line[name] for name in names})
        return line

    def check(self, interval: Interval, agreed: Agreed, stream: StageStream, step: int) -> None:
        """Checks every step of the interval. step: its last one.

        Raises ValueError for the first loss that is not a number, and after too many consecutive
        steps with a gradient that is not finite; writes the pair_ids of the step's batch.
        """
        steps = zip(agreed.losses, agreed.skipped, interval.positions, strict=True)
        for number, (loss, skipped, after) in enumerate(steps, step - len(agreed.losses) + 1):
            self._skipped = self._skipped + 1 if skipped else 0
            if math.isfinite(loss) and self._skipped <= self.settings.max_skipped_steps:
                continue
            path = self.output / f"not-finite-{number}.txt"
            if self.main:
                with suppress(OSError, ValueError):  # the loss is the error to report
                    path.write_text("\n".join(stream.pair_ids(after)) + "\n", "utf-8")
            what = f"the loss is {loss}"
            if math.isfinite(loss):
                what = f"the gradient is not finite, as in the {self._skipped - 1} steps before"
            raise ValueError(
                f"step {number}: {what}, with batch {after.batch - 1} of block {after.block} "
                f"of epoch {after.epoch} of stage {stream.stage}, whose pair_ids are in {path}; "
                "all checkpoints are older; try a lower learning_rate or clip"
            )

    def evaluation(self, decision: Decision, result: Found) -> None:
        """Writes the evaluation's line of history.jsonl and draws the plot."""
        line = asdict(decision) | {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "signature": self.signature,
            "samples": result.samples,
        }
        values = {"accuracy": result.accuracy, "spscore": result.score, "stage": decision.stage}
        self._write("history.jsonl", line, values)
        if self.main:
            plots.draw(self.output)

    def _write(self, name: str, line: dict[str, Any], tracked: dict[str, float | None]) -> None:
        if self.main:
            with (self.output / name).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        if self.settings.tracking:
            known = {key: value for key, value in tracked.items() if value is not None}
            self.accelerator.log(known, step=line["step"])
