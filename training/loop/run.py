"""Performs one run of the curriculum, from its settings to the finished model."""

from __future__ import annotations

import fcntl
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import yaml
from accelerate import PartialState
from accelerate.state import AcceleratorState
from transformers import TrainerState
from transformers.trainer_callback import PrinterCallback
from transformers.utils.logging import disable_progress_bar

from gaixie.training.data.corpus import Corpus
from gaixie.training.data.pairs import PairFile, stage_pairs, write_table
from gaixie.training.loop.callbacks import StageControl
from gaixie.training.loop.checkpoints import (
    COMPLETE,
    Checkpoints,
    checkpoints,
    clear_parts,
    fetch_newer,
    send_folder,
    send_logs,
)
from gaixie.training.loop.model_card import write_plain_card
from gaixie.training.loop.stage import StageTrainer, training_arguments
from gaixie.training.modeling.collator import Collator
from gaixie.training.modeling.model import build_model, load_tokenizer, merge_lora, tokens_digest
from gaixie.training.settings import Settings
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics import load_metric
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.text_tables import read_columns

STOPPED = 128 + signal.SIGTERM


class Run:
    """A run. The constructor reads and checks all settings before anything is written."""

    def __init__(self, settings: Settings):
        disable_progress_bar()  # transformers shows one for each file that it reads or writes
        self.settings, self.output = settings, Path(settings.output)
        data = settings.data
        self.corpus = Corpus(data.uri, data.validation, data.test, data.split_seed)
        if settings.tokenizer is None:
            self.tokenizer = load_tokenizer(str(settings.model.pretrained), download=True)
        else:
            self.tokenizer = load_tokenizer(settings.tokenizer)
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
            self._tell(stage, stage_pairs(self.corpus, self.settings, stage))
        return 0

    def _tell(self, stage: int, tables: dict[str, pa.Table]) -> None:
        args, data = self.arguments[stage], self.settings.curriculum[stage - 1]
        print(
            f"stage {stage} of {self.corpus.name}, data of stage {', '.join(map(str, data))}: "
            f"{len(tables['train']):,} pairs, {len(tables['validation']):,} for validation; "
            f"learning rate {args.learning_rate:g}, up to {args.max_steps:,} steps of "
            f"{self.settings.batch.pairs:,} pairs, {'bfloat16' if args.bf16 else 'float32'}",
            flush=True,
        )

    def train(self, resume: bool) -> int:
        """Trains until the last stage is finished; returns the exit code."""
        with ExitStack() as held:
            if self.main:
                held.enter_context(self._claim())
                self._start(resume)
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

    # Before the first stage, on the main process

    def _claim(self) -> TextIO:
        """Returns a lock of OUTPUT, held until it is closed."""
        self.output.mkdir(parents=True, exist_ok=True)
        lock = (self.output / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{self.output}: another run writes there") from None
        return lock

    def _start(self, resume: bool) -> None:
        """Fetches from the mirror, checks settings, and writes the stages' pairs."""
        if self.settings.mirror and resume:
            fetch_newer(self.settings.mirror, self.output)
        path = self.output / "settings.yaml"
        identity = self.settings.identity() | {
            "corpus": self.corpus.digest,
            "tokenizer": tokens_digest(self.tokenizer),
        }
        if path.exists():
            if not resume:
                raise ValueError(f"{self.output}: already has a run; use another output")
            saved = yaml.safe_load(path.read_text("utf-8"))["identity"]
            for name in identity:
                if saved.get(name) != identity[name]:
                    raise ValueError(
                        f"{path}: the run began with {name} {saved.get(name)}, but now it is "
                        f"{identity[name]}; restore the setting, or use another output"
                    )
        for stage in self.numbers:
            clear_parts(self.output / f"stage-{stage}")
            tables = stage_pairs(self.corpus, self.settings, stage)
            for split, table in tables.items():
                write_table(table, self._file(stage, split))
            self._tell(stage, tables)
        values = {"identity": identity, "settings": self.settings.model_dump(mode="json")}
        path.write_text(yaml.safe_dump(values, allow_unicode=True), "utf-8")

    def _file(self, stage: int, split: str) -> Path:
        return self.output / f"pairs/stage-{stage}-{split}.arrow"

    def _sources(self) -> list[str]:
        """Returns the sources that every evaluation paraphrases: some of each stage, in turn.

        They are the same in all stages, so that their scores can be compared between stages.
        """
        texts: Iterator[str | None]
        if given := self.settings.evaluation.sources:
            texts = (text for (text,) in read_columns(given, ["source"]))
        else:
            tables = (PairFile(self._file(stage, "validation")).table for stage in self.numbers)
            texts = chain.from_iterable(zip_longest(*(t["source"].to_pylist() for t in tables)))
        return [*dict.fromkeys(filter(None, texts))][: self.settings.evaluation.generate]

    # A stage

    def _train_stage(self, stage: int, start: Path | None) -> bool:
        """Trains a stage to its end; returns False if it was stopped before.

        start: the best weights of the stage before.
        """
        folder, trainer = self.output / f"stage-{stage}", self._trainer(stage, start)
        control = StageControl(
            trainer.accelerator,
            self.settings.controller,
            trainer.args.max_steps,
            stage,
            self.output,
            lambda: {"signature": self.metric.signature(), "samples": trainer.samples},
        )
        trainer.seconds = control.seconds
        mirror = self.settings.mirror and storage.join(self.settings.mirror, folder.name)
        saver = Checkpoints(trainer.accelerator, folder, mirror)
        trainer.add_callback(control)
        trainer.add_callback(saver)
        saved = checkpoints(folder)
        if not saved or not control.is_over(_state(saved[-1])):
            handler = signal.getsignal(signal.SIGTERM)
            try:
                trainer.train(resume_from_checkpoint=str(saved[-1]) if saved else None)
            finally:
                signal.signal(signal.SIGTERM, handler)
                control.close()
                saver.close()
            if control.stopped and not control.is_over(trainer.state):
                if self.main:
                    say(f"stopped in stage {stage} at step {trainer.state.global_step:,}, saved")
                return False
        self.state.wait_for_everyone()
        if self.main:
            self._keep_best(folder)
        self.state.wait_for_everyone()
        trainer.accelerator.free_memory()
        return True

    def _trainer(self, stage: int, start: Path | None) -> StageTrainer:
        AcceleratorState._reset_state()  # with DeepSpeed, there may be no other one before it
        settings, tokenizer = self.settings, self.tokenizer
        model, self.model = self.model, None
        if start is not None:
            model = build_model(settings, tokenizer, start)
        config = model.config
        first = config.decoder_start_token_id if config.is_encoder_decoder else None
        files = self._file(stage, "train"), self._file(stage, "validation")
        collator = Collator(tokenizer, settings.max_length, first, settings.data.codes)
        trainer = StageTrainer(
            *(settings, stage, model, self.arguments[stage], files),
            *(self._sources(), self.metric, collator),
        )
        trainer.remove_callback(PrinterCallback)
        return trainer

    def _keep_best(self, folder: Path) -> None:
        """Leaves of a finished stage only the weights that the next one starts from."""
        newest = checkpoints(folder)[-1]
        best = _state(newest).best_global_step
        chosen = folder / f"checkpoint-{best}" if best else newest
        part = folder / ".part-model"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for path in chosen.iterdir():
            if path.suffix in (".json", ".safetensors") and path.name != "trainer_state.json":
                shutil.copyfile(path, part / path.name)
        (part / COMPLETE).touch()
        part.rename(folder / "model")
        for checkpoint in folder.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)
        if mirror := self.settings.mirror:
            send_folder(folder / "model", storage.join(mirror, folder.name, "model"))
            send_logs(self.output, mirror)

    def _finish(self, last: Path) -> None:
        """Writes OUTPUT/model, whole or not at all."""
        target, part = self.output / "model", self.output / ".part-model"
        if target.exists():
            print(f"already finished: {target}")
            return
        shutil.rmtree(part, ignore_errors=True)
        if self.settings.model.lora is None:
            shutil.copytree(last, part, ignore=shutil.ignore_patterns(COMPLETE))
        else:
            merge_lora(self.settings, last).save_pretrained(part)
        self.tokenizer.save_pretrained(part)
        write_plain_card(part, self.output)
        part.rename(target)
        if mirror := self.settings.mirror:
            send_folder(target, storage.join(mirror, "model"))
        print(f"finished: {target}")


def _state(checkpoint: Path) -> TrainerState:
    return TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
