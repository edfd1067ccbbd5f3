"""Steers Trainer through one stage: when to evaluate, save and stop, and what is logged.

All processes decide the same: each value that a decision depends on is shared first.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers import TrainerCallback, TrainerState

from gaixie.training.loop.controller import END_STAGE, Decision, Evaluation, decide
from gaixie.training.settings import Limits
from gaixie.udfs.command_line import say
from gaixie.udfs.storage.progress import Progress


class StageControl(TrainerCallback):
    """Applies the controller to a stage, and ends the training after SIGTERM.

    max_steps: the stage's budget. output: the run's folder, for history.jsonl and log.jsonl. about:
    returns what a line of history.jsonl has besides the decision.
    """

    def __init__(
        self,
        accelerator: Any,
        limits: Limits,
        max_steps: int,
        stage: int,
        output: Path,
        about: Callable[[], dict[str, Any]],
    ):
        self.accelerator, self.limits, self.max_steps = accelerator, limits, max_steps
        self.stage, self.output, self.about = stage, output, about
        self.stopped = False
        """Whether the training ended because of SIGTERM; the same on all processes."""
        self._told = False
        self._shown: Progress | None = None
        self._started = time.monotonic()
        # At SIGTERM, accelerate launch ends without telling a single process, which must notice it.
        self._launcher = os.getppid() if "ACCELERATE_MIXED_PRECISION" in os.environ else None

    def decision(self, state: TrainerState) -> Decision | None:
        """Returns the decision on the last evaluation in Trainer's log, which has all of them."""
        found = [
            Evaluation(
                int(line["step"]),
                *(line["eval_seconds"], line["eval_accuracy"], line.get("eval_spscore")),
            )
            for line in state.log_history
            if "eval_accuracy" in line
        ]
        return decide(self.limits, self.max_steps, found) if found else None

    def is_over(self, state: TrainerState) -> bool:
        """Tells whether the stage has ended."""
        decision = self.decision(state)
        return decision is not None and decision.action == END_STAGE

    def on_train_begin(self, args, state, control, **_: Any) -> None:
        before = [line["eval_seconds"] for line in state.log_history if "eval_seconds" in line]
        self._started = time.monotonic() - (before[-1] if before else 0.0)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        console = Console(stderr=True, quiet=not state.is_world_process_zero, soft_wrap=True)
        done = state.global_step
        self._shown = Progress(f"stage {self.stage}", args.max_steps, "steps", console, done)

    def close(self) -> None:
        """Ends the progress display."""
        if self._shown:
            self._shown.close()

    def _on_sigterm(self, *_: Any) -> None:
        self._told = True

    def seconds(self) -> float:
        """Returns the seconds of the stage so far, by the main process's clock."""
        seconds = time.monotonic() - self._started
        here = torch.tensor([seconds], dtype=torch.float64, device=self.accelerator.device)
        return self.accelerator.gather(here)[0].item()

    def on_step_end(self, args, state, control, **_: Any) -> None:
        if state.global_step >= args.max_steps:
            control.should_evaluate = True
        if state.global_step % args.logging_steps:
            return
        told = self._told or self._launcher not in (None, os.getppid())
        flag = torch.tensor([float(told)], device=self.accelerator.device)
        if self.accelerator.reduce(flag, "sum").item():
            self.stopped = control.should_save = control.should_training_stop = True
        limit = self.limits.max_seconds
        if limit is not None and self.seconds() >= limit:
            control.should_evaluate = True

    def on_log(self, args, state, control, **more: Any) -> None:
        logs: dict[str, float] = more["logs"]
        if "loss" not in logs:
            return
        if not math.isfinite(logs["loss"]):
            raise ValueError(
                f"stage {self.stage}, step {state.global_step}: the loss is {logs['loss']}; all "
                "checkpoints are older; try a lower learning_rate or max_grad_norm"
            )
        if self._shown:
            shown = f"step {state.global_step:,}, loss {logs['loss']:.4f}"
            self._shown.update(state.global_step, shown)
        names = ("loss", "learning_rate", "grad_norm")
        self._append("log.jsonl", state, {name: logs[name] for name in names if name in logs})

    def on_evaluate(self, args, state, control, **_: Any) -> None:
        decision = self.decision(state)
        assert decision is not None
        if decision.improved:
            state.best_global_step, control.should_save = state.global_step, True
        if decision.action == END_STAGE:
            control.should_training_stop = True
            control.should_save |= decision.best is None  # the current weights are the stage's
        self._append("history.jsonl", state, asdict(decision) | self.about())
        if state.is_world_process_zero:
            say(f"stage {self.stage}, step {decision.step:,}: {decision.action}: {decision.reason}")

    def _append(self, name: str, state: TrainerState, line: dict[str, Any]) -> None:
        """Adds a line; lines that a killed run wrote after its last checkpoint are dropped."""
        if not state.is_world_process_zero:
            return
        now = {"stage": self.stage, "step": state.global_step}
        kept = [
            old
            for old in read_lines(self.output / name)
            if (old["stage"], old["step"]) < (self.stage, state.global_step)
        ]
        part = self.output / f".{name}.part"
        text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in [*kept, now | line])
        part.write_text(text, "utf-8")
        part.replace(self.output / name)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the JSON lines of a file; none if it does not exist."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
