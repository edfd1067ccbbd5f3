"""Steers Trainer through one stage: when to evaluate, save and stop, what is logged, and which
checkpoints are whole.

All processes decide the same: each value that a decision depends on is shared first.
"""

import json
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainerState

from gaixie.training.loop.checkpoints import COMPLETE, send_checkpoints
from gaixie.training.loop.controller import END_STAGE, Decision, Evaluation, decide
from gaixie.training.loop.stage import StageTrainer
from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.progress import Progress


def decision_on(trainer: StageTrainer, state: TrainerState) -> Decision | None:
    """Returns the decision on the last evaluation in Trainer's log, which has all of a stage."""
    found = [
        Evaluation(int(line["step"]), line["eval_accuracy"], line.get("eval_spscore"))
        for line in state.log_history
        if "eval_accuracy" in line
    ]
    return decide(trainer.settings.controller, trainer.args.max_steps, found) if found else None


class StageControl(TrainerCallback):
    """Applies the controller to a stage, ends the training after SIGTERM, marks whole checkpoints,
    and copies them to the mirror in a thread.

    shown: the progress display. pool: of the thread.
    """

    def __init__(self, trainer: StageTrainer, shown: Progress, pool: ThreadPoolExecutor):
        self.trainer, self.shown, self.pool = trainer, shown, pool
        self.stage, self.output = trainer.stage, Path(trainer.settings.output)
        self.told = False
        """Whether this process got SIGTERM."""
        self.stopped = False
        """Whether the training ended because of it; the same on all processes."""
        # At SIGTERM, accelerate launch ends without telling a single process, which must notice it.
        self._launcher = os.getppid() if "ACCELERATE_MIXED_PRECISION" in os.environ else None

    def on_sigterm(self, *_: Any) -> None:
        """Notes the signal, until the next multiple of logging_steps."""
        self.told = True

    def on_train_begin(self, args, state, control, **_: Any) -> None:
        """Drops the lines that a killed run wrote after its last checkpoint."""
        now = self.stage, state.global_step
        for path in (self.output / "history.jsonl", self.output / "log.jsonl"):
            if state.is_world_process_zero:
                kept = [one for one in read_lines(path) if (one["stage"], one["step"]) <= now]
                text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in kept)
                storage.write(str(path), text)

    def on_step_end(self, args, state, control, **_: Any) -> None:
        if state.global_step >= args.max_steps:
            control.should_evaluate = True
        if state.global_step % args.logging_steps:
            return
        told = self.told or self._launcher not in (None, os.getppid())
        flag = torch.tensor([float(told)], device=self.trainer.accelerator.device)
        if self.trainer.accelerator.reduce(flag, "sum").item():
            self.stopped = control.should_save = control.should_training_stop = True

    def on_log(self, args, state, control, **more: Any) -> None:
        logs: dict[str, float] = more["logs"]
        if "loss" not in logs:
            return
        if not math.isfinite(logs["loss"]):
            hint = "all checkpoints are older; try a lower learning_rate or max_grad_norm"
            place = f"stage {self.stage}, step {state.global_step}"
            raise ValueError(f"{place}: the loss is {logs['loss']}; {hint}")
        self.shown.update(state.global_step, f"step {state.global_step:,}, loss {logs['loss']:.4f}")
        self._append("log.jsonl", state, logs)

    def on_evaluate(self, args, state, control, **_: Any) -> None:
        decision = decision_on(self.trainer, state)
        assert decision is not None
        if decision.improved:
            state.best_global_step, control.should_save = state.global_step, True
        if decision.action == END_STAGE:
            control.should_training_stop = True
            control.should_save |= decision.best is None  # the current weights are the stage's
        about = {"signature": self.trainer.metric.signature(), "samples": self.trainer.samples}
        self._append("history.jsonl", state, asdict(decision) | about)
        if state.is_world_process_zero:
            say(f"stage {self.stage}, step {decision.step:,}: {decision.action}: {decision.reason}")

    def on_save(self, args, state, control, **_: Any) -> None:
        self.trainer.accelerator.wait_for_everyone()
        if state.is_world_process_zero:
            folder = Path(args.output_dir)
            (folder / f"checkpoint-{state.global_step}" / COMPLETE).touch()
            if mirror := self.trainer.settings.mirror:
                self.pool.submit(send_checkpoints, folder, mirror)

    def _append(self, name: str, state: TrainerState, line: dict[str, Any]) -> None:
        if state.is_world_process_zero:
            whole = {"stage": self.stage, "step": state.global_step} | line
            with (self.output / name).open("a", encoding="utf-8") as file:
                file.write(json.dumps(whole, ensure_ascii=False) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the JSON lines of a file; none if it does not exist."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
