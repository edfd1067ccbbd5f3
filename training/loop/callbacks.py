"""What Trainer is told at each step and evaluation: when to evaluate, save, stop and upload.

All processes decide the same: each value that a decision depends on is shared first.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers import TrainerCallback, TrainerState

from gaixie.training.loop import controller
from gaixie.training.loop.controller import CONTINUE, SAVE_BEST, Decision, State
from gaixie.training.settings import ControllerSettings
from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.progress import Progress

COMPLETE = "COMPLETE"
"""A file that every process's part of a checkpoint precedes, here and in a store."""


def decide(
    settings: ControllerSettings, stage: int, log_history: list[dict[str, Any]]
) -> Decision | None:
    """Returns the controller's last decision on a stage, given all evaluations in Trainer's log."""
    state, decision = State(stage=stage), None
    for line in log_history:
        if "eval_accuracy" in line:
            values = line["step"], line["eval_seconds"], line["eval_accuracy"]
            score = line.get("eval_spscore")
            state, decision = controller.evaluate(settings, state, *values, score)
    return decision


def is_over(decision: Decision | None) -> bool:
    """Returns whether a decision ends its stage."""
    return decision is not None and decision.action not in (CONTINUE, SAVE_BEST)


class Curriculum(TrainerCallback):
    """Applies the controller to a stage, and ends the training after SIGTERM.

    output: the run's folder, for history.jsonl and log.jsonl. signature: of the metric.
    """

    def __init__(
        self, accelerator: Any, settings: ControllerSettings, stage: int, output: Path, about: Any
    ):
        self.accelerator, self.settings, self.stage = accelerator, settings, stage
        self.output, self.about = output, about
        self.stopped = False
        """Whether the training ended because of SIGTERM; the same on all processes."""
        self._told = False
        self._shown: Progress | None = None
        self._started = time.monotonic()
        # At SIGTERM, accelerate launch ends without telling a single process, which must notice it.
        self._launcher = os.getppid() if "ACCELERATE_MIXED_PRECISION" in os.environ else None

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
        return self._shared([time.monotonic() - self._started])[0]

    def _shared(self, values: list[float]) -> list[float]:
        """Returns the main process's values; all processes call it."""
        here = torch.tensor(values, dtype=torch.float64, device=self.accelerator.device)
        return self.accelerator.gather(here)[: len(values)].tolist()

    def on_step_end(self, args, state, control, **_: Any) -> None:
        if state.global_step >= args.max_steps:
            control.should_evaluate = True
        if state.global_step % args.logging_steps:
            return
        told = self._told or self._launcher not in (None, os.getppid())
        flag = torch.tensor([float(told)], device=self.accelerator.device)
        if self.accelerator.reduce(flag, "sum").item():
            self.stopped = control.should_save = control.should_training_stop = True
        limit = self.settings.max_seconds
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
        decision = decide(self.settings, self.stage, state.log_history)
        assert decision is not None
        if decision.improved:
            state.best_global_step, control.should_save = state.global_step, True
        if is_over(decision):
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
        lines = [
            old
            for old in read_lines(self.output / name)
            if (old["stage"], old["step"]) < (self.stage, state.global_step)
        ]
        part = self.output / f".{name}.part"
        text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in [*lines, now | line])
        part.write_text(text, "utf-8")
        part.replace(self.output / name)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the JSON lines of a file; none if it does not exist."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class Checkpoints(TrainerCallback):
    """Marks whole checkpoints, and copies them to a store in a thread.

    folder: OUTPUT/stage-N. mirror: its URI in the store, or none. A store that fails is reported,
    and tried again with the next checkpoint.
    """

    def __init__(self, accelerator: Any, folder: Path, mirror: str | None):
        self.accelerator, self.folder, self.mirror = accelerator, folder, mirror
        self._thread = ThreadPoolExecutor(1)
        self._upload: Future | None = None

    def on_save(self, args, state, control, **_: Any) -> None:
        self.accelerator.wait_for_everyone()
        if not state.is_world_process_zero:
            return
        (self.folder / f"checkpoint-{state.global_step}" / COMPLETE).touch()
        if self.mirror and (self._upload is None or self._upload.done()):
            self._upload = self._thread.submit(self._send, self.mirror)

    def _send(self, mirror: str) -> None:
        """Makes the mirror hold the newest whole checkpoint, and the one with the best weights."""
        try:
            wanted = {path.name for path in checkpoints(self.folder)}
            there = {name for name in storage.children(mirror) if name != "model"}
            for name in sorted(wanted, key=_step_of):
                if not storage.exists(storage.join(mirror, name, COMPLETE)):
                    send_folder(self.folder / name, storage.join(mirror, name))
            for name in there - wanted:
                storage.delete(storage.join(mirror, name, COMPLETE))
                storage.delete(storage.join(mirror, name))
        except OSError as error:
            say(f"mirror: {error}; trying again with the next checkpoint")

    def close(self) -> None:
        """Waits for a pending upload."""
        self._thread.shutdown()


def send_folder(folder: Path, uri: str) -> None:
    """Copies the files of a folder to a store, COMPLETE last."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: (path.name == COMPLETE, path)):
        storage.copy(str(path), storage.join(uri, path.relative_to(folder).as_posix()))


def checkpoints(folder: Path) -> list[Path]:
    """Returns the whole checkpoints of a stage, oldest first."""
    found = [path.parent for path in folder.glob(f"checkpoint-*/{COMPLETE}")]
    return sorted(found, key=lambda path: _step_of(path.name))


def clear_parts(folder: Path) -> None:
    """Deletes checkpoints that a killed run left half written."""
    for path in folder.glob("checkpoint-*"):
        if not (path / COMPLETE).exists():
            shutil.rmtree(path)


def _step_of(name: str) -> int:
    return int(name.rpartition("-")[2])
