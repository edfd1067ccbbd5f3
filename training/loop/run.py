"""Performs one run of the curriculum, from its settings to the finished model."""

from __future__ import annotations

import fcntl
import shutil
import signal
from collections.abc import Iterator
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

from gaixie.training.data.collator import Collator
from gaixie.training.data.corpus import Corpus
from gaixie.training.data.pairs import PairFile, stage_pairs, write_table
from gaixie.training.loop.callbacks import (
    COMPLETE,
    Checkpoints,
    Curriculum,
    checkpoints,
    clear_parts,
    decide,
    is_over,
    send_folder,
)
from gaixie.training.loop.card import write_plain_card
from gaixie.training.loop.stage import StageTrainer, training_arguments
from gaixie.training.modeling.model import (
    build_model,
    load_tokenizer,
    merge_lora,
    tokens_digest,
)
from gaixie.training.settings import ControllerSettings, Settings
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics import load_metric
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import fetch
from gaixie.udfs.storage.text_tables import read_columns

STOPPED = 128 + signal.SIGTERM
LOGS = ("history.jsonl", "log.jsonl", "settings.yaml")


class Run:
    """A run. The constructor reads and checks all settings before anything is written."""

    def __init__(self, settings: Settings):
        disable_progress_bar()  # transformers shows one for each file that it reads or writes
        self.settings, self.output = settings, Path(settings.output)
        data = settings.data
        self.corpus = Corpus(data.uri, data.validation, data.test, data.split_seed)
        self.tokenizer = load_tokenizer(settings.tokenizer, settings.model.pretrained)
        self.metric = load_metric(f"spscore:tier={settings.evaluation.tier}")
        self.arguments = {n: training_arguments(settings, n) for n in self.numbers}
        self.state = PartialState()  # made by the arguments, with their timeout
        self.main = self.state.is_main_process
        self.model: Any = build_model(settings, self.tokenizer, None)
        """The model that the first stage begins with."""

    @property
    def numbers(self) -> range:
        """Returns the numbers of the stages, from 1."""
        return range(1, len(self.settings.curriculum) + 1)

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
        lock = self._start(resume) if self.main else None
        self.state.wait_for_everyone()
        start: Path | None = None
        for stage in self.numbers:
            done = self.output / f"stage-{stage}" / "model"
            if not done.is_dir() and not self._train_stage(stage, start):
                return STOPPED
            start = done
        if self.main:
            self._finish(start)
            assert lock is not None
            lock.close()
        self.state.wait_for_everyone()
        return 0

    # Before the first stage, on the main process

    def _start(self, resume: bool) -> TextIO:
        """Claims OUTPUT, fetches from the mirror, checks settings, and writes the stages' pairs."""
        self.output.mkdir(parents=True, exist_ok=True)
        lock = (self.output / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{self.output}: another run writes there") from None
        if self.settings.mirror and resume:
            self._fetch(self.settings.mirror)
        path = self.output / "settings.yaml"
        identity = self.settings.identity() | {
            "corpus": self.corpus.digest,
            "tokenizer": tokens_digest(self.tokenizer),
        }
        if path.exists():
            saved = yaml.safe_load(path.read_text("utf-8"))["identity"]
            if not resume:
                raise ValueError(f"{self.output}: already has a run; use another output")
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
        return lock

    def _fetch(self, mirror: str) -> None:
        """Copies whole checkpoints and models of a mirror that are newer than those in OUTPUT."""
        uris = [file.uri for file in storage.list_files(mirror)]
        names = [uri[len(storage.join(mirror, "")) :].lstrip("/") for uri in uris]
        for name in names:
            if name in LOGS and not (self.output / name).exists():
                storage.copy(storage.join(mirror, name), str(self.output / name))
        whole = [name.removesuffix(f"/{COMPLETE}") for name in names if name.endswith(COMPLETE)]
        for folder in sorted(whole, key=lambda name: (len(name), name)):
            here = self.output / folder
            if not here.exists() and not (here.parent / "model").exists():
                part = fetch(storage.join(mirror, folder), self.output / ".fetched")
                here.parent.mkdir(parents=True, exist_ok=True)
                part.rename(here)

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
        """Trains a stage to its end; returns False if it was stopped before."""
        folder, args = self.output / f"stage-{stage}", self.arguments[stage]
        settings = self.settings
        AcceleratorState._reset_state()  # with DeepSpeed, there may be no other one before it
        if start is not None:
            self.model = build_model(settings, self.tokenizer, start)
        model, self.model = self.model, None
        config = model.config
        first = config.decoder_start_token_id if config.is_encoder_decoder else None
        collator = Collator(self.tokenizer, settings.max_length, first, settings.data.codes)
        files = [self._file(stage, split) for split in ("train", "validation")]
        trainer = StageTrainer(settings, model, args, *files, data_collator=collator)
        trainer.remove_callback(PrinterCallback)
        trainer.sources, trainer.metric = self._sources(), self.metric
        limits = ControllerSettings(
            **settings.controller.model_dump(),
            stages=len(settings.curriculum),
            max_steps=args.max_steps,
        )

        def about() -> dict[str, Any]:
            return {"signature": self.metric.signature(), "samples": trainer.samples}

        curriculum = Curriculum(trainer.accelerator, limits, stage, self.output, about)
        mirror = settings.mirror and storage.join(settings.mirror, folder.name)
        saver = Checkpoints(trainer.accelerator, folder, mirror)
        trainer.seconds = curriculum.seconds
        trainer.add_callback(curriculum)
        trainer.add_callback(saver)
        saved = checkpoints(folder)
        if not saved or not is_over(decide(limits, stage, _state(saved[-1]).log_history)):
            handler = signal.getsignal(signal.SIGTERM)
            try:
                trainer.train(resume_from_checkpoint=str(saved[-1]) if saved else None)
            finally:
                signal.signal(signal.SIGTERM, handler)
                curriculum.close()
                saver.close()
        if curriculum.stopped and not is_over(decide(limits, stage, trainer.state.log_history)):
            if self.main:
                say(f"stopped in stage {stage} at step {trainer.state.global_step:,}, saved")
            return False
        self.state.wait_for_everyone()
        if self.main:
            self._keep_best(folder)
        self.state.wait_for_everyone()
        trainer.accelerator.free_memory()
        return True

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
            for name in LOGS:
                if (self.output / name).exists():
                    storage.copy(str(self.output / name), storage.join(mirror, name))

    def _finish(self, last: Path | None) -> None:
        """Writes OUTPUT/model, whole or not at all."""
        target, part = self.output / "model", self.output / ".part-model"
        if target.exists():
            print(f"already finished: {target}")
            return
        assert last is not None
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
