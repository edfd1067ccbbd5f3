"""Performs one run of the curriculum, from its settings to the finished model."""

import fcntl
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import yaml
from accelerate import PartialState
from accelerate.state import AcceleratorState
from rich.console import Console
from transformers import TrainerState
from transformers.utils.logging import disable_progress_bar

from gaixie.training.loop import checkpoints
from gaixie.training.loop.callbacks import StageControl, decision_on
from gaixie.training.loop.controller import END_STAGE
from gaixie.training.loop.model_card import write_plain_card
from gaixie.training.loop.pairs import Corpus, pair_file, stage_pairs, write_pairs
from gaixie.training.loop.stage import StageTrainer, training_arguments
from gaixie.training.modeling.model import build_model, load_tokenizer, merge_lora, tokens_digest
from gaixie.training.settings import Settings
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics import load_metric
from gaixie.udfs.storage.progress import Progress

STOPPED = 128 + signal.SIGTERM


class Run:
    """A run. The constructor reads and checks all settings before anything is written."""

    def __init__(self, settings: Settings):
        disable_progress_bar()  # transformers shows one for each file that it reads or writes
        self.settings, self.output = settings, Path(settings.output)
        self.corpus = Corpus(settings.data)
        own = settings.tokenizer is not None
        folder = settings.tokenizer if own else settings.model.pretrained
        self.tokenizer = load_tokenizer(str(folder), download=not own)
        self.metric = load_metric(f"spscore:tier={settings.evaluation.tier}")
        self.numbers = range(1, len(settings.curriculum) + 1)
        """The numbers of the stages."""
        self.arguments = {n: training_arguments(settings, n) for n in self.numbers}
        self.state = PartialState()  # made by the arguments, with their timeout
        self.main = self.state.is_main_process
        self.model: Any = build_model(settings, self.tokenizer, None)
        """The model that the first stage begins with."""

    def describe(self) -> int:
        """Prints what would be trained, and on what; returns the exit code."""
        for stage in self.numbers if self.main else ():
            self._pairs(stage)
        return 0

    def _pairs(self, stage: int) -> dict[str, pa.Table]:
        """Returns a stage's pairs, and prints what it trains."""
        tables = stage_pairs(self.corpus, self.settings, stage)
        args, data = self.arguments[stage], self.settings.curriculum[stage - 1]
        print(
            f"stage {stage} of {self.corpus.name}, data of stage {', '.join(map(str, data))}: "
            f"{len(tables['train']):,} pairs, {len(tables['validation']):,} for validation; "
            f"learning rate {args.learning_rate:g}, up to {args.max_steps:,} steps of "
            f"{self.settings.batch.pairs:,} pairs, {'bfloat16' if args.bf16 else 'float32'}",
            flush=True,
        )
        return tables

    def train(self) -> int:
        """Trains until the last stage is finished; returns the exit code."""
        with ExitStack() as held:
            if self.main:
                held.enter_context(self._claim())
                self._start()
            self.state.wait_for_everyone()
            start: Path | None = None
            for stage in self.numbers:
                done = self.output / f"stage-{stage}" / "model"
                if not done.is_dir() and not self._train_stage(stage, start):
                    return STOPPED
                start = done
            if self.main and start is not None:
                self._finish(start)
            self.state.wait_for_everyone()
        return 0

    def _claim(self) -> TextIO:
        """Returns a lock of OUTPUT, held until it is closed."""
        self.output.mkdir(parents=True, exist_ok=True)
        lock = (self.output / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{self.output}: another run writes there") from None
        return lock

    def _start(self) -> None:
        """Fetches from the mirror, checks settings, and writes the stages' pairs."""
        if self.settings.mirror:
            checkpoints.fetch_newer(self.settings.mirror, self.output)
        path = self.output / "settings.yaml"
        read = {"corpus": self.corpus.digest, "tokenizer": tokens_digest(self.tokenizer)}
        identity = self.settings.identity() | read
        done = [*self.output.glob(f"stage-*/*/{checkpoints.COMPLETE}"), *self.output.glob("model")]
        saved = yaml.safe_load(path.read_text("utf-8")) if done and path.exists() else {}
        before = _flat({name: saved.get("identity", identity).get(name) for name in identity})
        now = _flat(identity)
        if changed := [name for name in before | now if before.get(name) != now.get(name)]:
            data = f" (data of {saved['settings']['data']['uri']})" * ("corpus" in changed)
            fault = f"the run began with other settings: {', '.join(changed)}{data}"
            raise ValueError(f"{path}: {fault}; restore them, or use another output")
        for stage in self.numbers:
            folder = self.output / f"stage-{stage}"  # a killed run leaves half a checkpoint
            checkpoints.keep_only(folder, checkpoints.whole_in(folder))
            for split, table in self._pairs(stage).items():
                write_pairs(table, pair_file(self.output, stage, split))
        values = {"identity": identity, "settings": self.settings.model_dump(mode="json")}
        path.write_text(yaml.safe_dump(values, allow_unicode=True), "utf-8")

    def _train_stage(self, stage: int, start: Path | None) -> bool:
        """Trains a stage to its end; returns False if it was stopped before.

        start: the best weights of the stage before.
        """
        AcceleratorState._reset_state()  # with DeepSpeed, there may be no other one before it
        settings, args = self.settings, self.arguments[stage]
        folder = self.output / f"stage-{stage}"
        model, self.model = self.model, None
        if start is not None:
            model = build_model(settings, self.tokenizer, start)
        trainer = StageTrainer(settings, stage, args, model, self.tokenizer, self.metric)
        saved = checkpoints.whole_in(folder)
        state = _state(saved[-1]) if saved else TrainerState()
        if not self._is_over(trainer, state):
            console = Console(stderr=True, quiet=not self.main, soft_wrap=True)
            steps = args.max_steps, "steps", console, state.global_step
            handler = signal.getsignal(signal.SIGTERM)
            with Progress(f"stage {stage}", *steps) as shown, ThreadPoolExecutor(1) as pool:
                control = StageControl(trainer, shown, pool)
                trainer.add_callback(control)
                signal.signal(signal.SIGTERM, control.on_sigterm)
                try:
                    trainer.train(resume_from_checkpoint=str(saved[-1]) if saved else None)
                finally:
                    signal.signal(signal.SIGTERM, handler)
            if control.stopped and not self._is_over(trainer, trainer.state):
                if self.main:
                    say(f"stopped in stage {stage} at step {trainer.state.global_step:,}, saved")
                return False
        self.state.wait_for_everyone()
        if self.main:
            self._keep_best(folder)
        self.state.wait_for_everyone()
        trainer.accelerator.free_memory()
        return True

    @staticmethod
    def _is_over(trainer: StageTrainer, state: TrainerState) -> bool:
        decision = decision_on(trainer, state)
        return decision is not None and decision.action == END_STAGE

    def _keep_best(self, folder: Path) -> None:
        """Leaves of a finished stage only the weights that the next one starts from."""
        newest = checkpoints.whole_in(folder)[-1]
        best, model = _state(newest).best_global_step, folder / "model"
        (folder / f"checkpoint-{best}" if best else newest).rename(model)
        for path in model.iterdir():
            is_model = path.suffix in (".json", ".safetensors") and path.name != STATE
            if path.is_dir():
                shutil.rmtree(path)
            elif not is_model and path.name != checkpoints.COMPLETE:
                path.unlink()
        checkpoints.keep_only(folder, [])
        if mirror := self.settings.mirror:
            checkpoints.send_model(model, self.output, mirror)

    def _finish(self, last: Path) -> None:
        """Writes OUTPUT/model, whole or not at all."""
        target, part = self.output / "model", self.output / ".part-model"
        if target.exists():
            print(f"already finished: {target}")
            return
        shutil.rmtree(part, ignore_errors=True)
        if self.settings.model.lora is None:
            shutil.copytree(last, part, ignore=shutil.ignore_patterns(checkpoints.COMPLETE))
        else:
            merge_lora(self.settings, last).save_pretrained(part)
        self.tokenizer.save_pretrained(part)
        write_plain_card(part, self.settings)
        part.rename(target)
        if mirror := self.settings.mirror:
            checkpoints.send_model(target, self.output, mirror)
        print(f"finished: {target}")


def _flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Returns nested values by their dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        deep = isinstance(value, dict) and value
        found |= _flat(value, f"{above}{name}.") if deep else {f"{above}{name}": value}
    return found


STATE = "trainer_state.json"


def _state(checkpoint: Path) -> TrainerState:
    return TrainerState.load_from_json(str(checkpoint / STATE))
