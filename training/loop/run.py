"""Performs one run of the curriculum, from its settings to the finished model."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
from accelerate import Accelerator
from accelerate.utils import DistributedType, InitProcessGroupKwargs, set_seed
from rich.console import Console

from gaixie.training.cards.card import write_plain_card
from gaixie.training.data.corpus import Corpus
from gaixie.training.data.denoising import Sentences
from gaixie.training.data.stage_data import StageStream
from gaixie.training.data.stage_loader import PairEncoder, StageLoader
from gaixie.training.data.token_files import TokenFiles
from gaixie.training.loop import controller
from gaixie.training.loop.backend import (
    Precision,
    Utilisation,
    lowest_capability,
    prepare,
    tracker_of,
)
from gaixie.training.loop.checkpoints import Checkpoints, RunState
from gaixie.training.loop.controller import FINISH, NEXT_STAGE, State
from gaixie.training.loop.run_log import Interval, RunLog
from gaixie.training.loop.step import (
    MicroBatches,
    accumulation,
    freeze_unused,
    lr_at,
    make_optimizer,
    seed_step,
    train_step,
)
from gaixie.training.loop.validation import validate
from gaixie.training.modeling.model import build_model, load_tokenizer, tokens_digest
from gaixie.training.settings import Settings
from gaixie.udfs.metrics import load_metric
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.progress import Progress
from gaixie.udfs.storage.text_tables import read_columns

STOPPED = 128 + signal.SIGTERM

COLLECTIVE_HOURS = 2
"""How long ranks wait for one that writes a checkpoint or reads the data."""


class OneRankError(RuntimeError):
    """An error that the other ranks may not have seen."""


@contextmanager
def one_rank() -> Iterator[None]:
    """Marks errors in the block as this rank's own."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise OneRankError(str(error)) from error


class Stopped(Exception):
    """Raised after SIGTERM, once a checkpoint is saved."""


class Run:
    """A run. The constructor reads and checks everything before the first step and before it
    writes."""

    def __init__(self, settings: Settings):
        self.settings = settings
        data = settings.data
        self.corpus = Corpus(data.uri, data.validation, data.test, data.split_seed)
        self.tokenizer = load_tokenizer(settings.tokenizer, settings.model.pretrained)
        self.precision = Precision.of(settings.bf16, settings.tf32, lowest_capability())
        self.metric = load_metric(f"spscore:tier={settings.evaluation.tier}")
        world = int(os.environ.get("WORLD_SIZE", 1))
        self.accelerator = Accelerator(
            mixed_precision="bf16" if self.precision.bf16 else "no",
            gradient_accumulation_steps=accumulation(settings, world),
            log_with=tracker_of(settings),
            project_dir=str(Path(settings.output, "tensorboard")),
            kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=COLLECTIVE_HOURS))],
        )
        self.precision.set_up(self.accelerator)
        if settings.compile and self.accelerator.distributed_type == DistributedType.DEEPSPEED:
            raise ValueError("compile: expected null under DeepSpeed")
        self.main = self.accelerator.is_main_process
        self.console = Console(quiet=not self.main, highlight=False, soft_wrap=True)
        self.output = Path(settings.output)
        self.streams = self._streams()
        self.validation: dict[int, pa.Table] = {
            stage: stream.held_out("validation", settings.evaluation.pairs)
            for stage, stream in self.streams.items()
        }
        self.sources = self._common_sources()
        set_seed(settings.seed)
        self.network = build_model(
            settings.model, self.tokenizer, settings.max_length, settings.data.degrees
        )
        if settings.gradient_checkpointing:
            self.network.gradient_checkpointing_enable({"use_reentrant": False})
        identity = settings.identity()
        identity |= {"tokenizer": tokens_digest(self.tokenizer), "bf16": self.precision.bf16}
        kept = settings.checkpoints.keep, identity, settings.mirror
        self.checkpoints = Checkpoints(self.accelerator, settings.output, *kept)
        work = Utilisation(self.accelerator, self.network, self.precision)
        self.log = RunLog(self.accelerator, settings, self.metric.signature(), work)
        self.state = RunState(controller=State(stage=settings.numbers[0]))
        self._told = False
        # At SIGTERM, accelerate launch ends without telling a single process, which must notice it.
        self._launcher = os.getppid() if "ACCELERATE_MIXED_PRECISION" in os.environ else None

    def _streams(self) -> dict[int, StageStream]:
        """Returns the pairs of each stage; for stage 0, denoising, the sentences."""
        settings = self.settings
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        tokens = TokenFiles(settings.cache or self.output / "tokens", self._encoder())
        streams = {}
        for stage in settings.numbers:
            data = self.corpus
            if stage == 0 and settings.denoising:
                data = Sentences(self.corpus, settings.denoising)
            own = max(stage, 1), settings.of_stream(stage)
            streams[stage] = StageStream(data, *own, rank, world, tokens)
        return streams

    def _common_sources(self) -> pa.ChunkedArray:
        """Returns the sources that every evaluation paraphrases: some of each stage, in turn.

        They are the same in all stages, so that their scores can be compared between stages.
        """
        if given := self.settings.evaluation.sources:
            texts = [text for (text,) in read_columns(given, ["source"]) if text]
        else:
            tables = (table for stage, table in self.validation.items() if stage)
            turns = chain.from_iterable(zip_longest(*(t["source"].to_pylist() for t in tables)))
            texts = [*dict.fromkeys(filter(None, turns))]
        return pa.chunked_array([texts], pa.string())

    def _encoder(self, stage: int = 1) -> PairEncoder:
        """Returns the encoder of a stage's pairs."""
        multiple = 8 if self.precision.bf16 else 1
        noise = None if stage else self.settings.denoising
        return PairEncoder(self.tokenizer, self.settings.max_length, multiple, noise)

    def say(self, text: str) -> None:
        """Prints a line on the main process."""
        self.console.print(text, markup=False)

    def describe(self) -> int:
        """Prints what would be trained, and on what."""
        # Under ZeRO-3 a loaded weight is an empty vector here; its size is stored elsewhere.
        weights = sum(getattr(p, "ds_numel", p.numel()) for p in self.network.parameters())
        world, batch = self.accelerator.num_processes, self.settings.batch
        self.say(f"data: {self.corpus.name}, {self.corpus.uri}")
        for stage, stream in self.streams.items():
            own = self.settings.stage(stage).model_dump(exclude_none=True)
            data = self.settings.curriculum[stage - 1] if stage else ()
            of = "" if data == (stage,) else f" (of the data: {', '.join(map(str, data))})"
            of, what = (of, "pairs") if stage else (" (denoising)", "sentences or pairs of them")
            self.say(
                f"stage {stage}{of}: {stream.rows:,} {what}, {len(self.validation[stage]):,} for "
                "validation; " + ", ".join(f"{name} {value:,g}" for name, value in own.items())
            )
        self.say(
            f"model: {weights:,} weights, {len(self.tokenizer):,} tokens; {batch.pairs:,} pairs a "
            f"step over {world} processes, in micro-batches of up to {batch.micro_pairs:,}"
        )
        self.say(f"precision: {self.precision.in_words()}")
        self.say(f"metric: {self.log.signature}")
        return 0

    def train(self, resume: bool) -> int:
        """Trains until the last stage is finished; returns the exit code."""
        self.describe()
        saved = self.checkpoints.find(resume)
        if saved and saved.controller.finished and self._model_is_there():
            self.say(f"already finished at step {saved.step:,}: {self.output / 'model'}")
            self.checkpoints.close()
            return 0
        # DeepSpeed may hold the weights elsewhere; it copes with missing gradients.
        if self.accelerator.distributed_type != DistributedType.DEEPSPEED:
            if unused := freeze_unused(self.network):
                self.say(f"{len(unused)} unused weights stay unchanged: {', '.join(unused)}")
        optimizer = make_optimizer(self.network, self.settings)
        self.model, self.optimizer = prepare(
            self.accelerator, self.network, optimizer, self.settings
        )
        if self.settings.compile:
            plain = self.accelerator.unwrap_model(self.model)
            plain.compile(backend=self.settings.compile, dynamic=True)
        if saved:
            self.state = saved
            self.checkpoints.load(saved.step)
            self.say(f"continuing from {self.checkpoints.path(saved.step)}")
        self.log.start(self.state.step)
        self._started = time.monotonic() - self.state.seconds
        before = signal.signal(signal.SIGTERM, self._on_sigterm)
        self.model.train()
        try:
            while not self.state.controller.finished:
                self.stage()
            self.finish()
            code = 0
        except Stopped:
            self.say(f"stopped at step {self.state.step:,}, whose checkpoint is saved")
            code = STOPPED
        finally:
            signal.signal(signal.SIGTERM, before)
            self.checkpoints.close()
        self.accelerator.end_training()  # not after an error: the other ranks are elsewhere
        return code

    # A stage

    def stage(self) -> None:
        """Trains one stage: steps and evaluations until the controller leaves it."""
        settings, number = self.settings, self.state.controller.stage
        own, batch = settings.stage(number), settings.batch
        cut = MicroBatches(self._encoder(number), batch.micro_pairs, batch.micro_tokens)
        cuda = self.accelerator.device.type == "cuda"
        loader = StageLoader(self.streams[number], cut, settings.workers, pin_memory=cuda)
        if self.state.loader:
            loader.load_state_dict(self.state.loader)
        first = self.state.controller.stage_step
        if self._evaluation_due() and self._evaluate():  # if the run was stopped just before it
            return
        done, title = self.state.step - first, f"stage {number}"
        interval = Interval()
        # Workers ignore SIGTERM: at its own end, Python would wait for them forever.
        with (
            closing(iter(loader)) as batches,
            Progress(title, own.max_steps, "steps", self.console, done) as shown,
        ):
            while True:
                asked = time.monotonic()
                with one_rank():
                    work = next(batches)
                waiting = time.monotonic() - asked
                step = self.state.step + 1
                seed_step(settings.seed, step, self.accelerator.process_index)
                rate = lr_at(step - first, own, settings.decay, settings.min_learning_rate)
                for group in self.optimizer.param_groups:
                    group["lr"] = rate * group.get("scale", 1.0)
                learned = self.accelerator, self.model, self.optimizer, work
                done_now = train_step(*learned, settings.label_smoothing, settings.clip)
                interval.add(done_now, waiting, loader.position)
                self.state = replace(self.state, step=step, loader=loader.state_dict())
                save = step % settings.checkpoints.steps == 0
                if not (save or step % settings.log_steps == 0 or self._evaluation_due()):
                    continue
                stop, time_is_up = self._log(interval, rate, shown)
                if stop:
                    self._save()
                    raise Stopped
                if time_is_up or self._evaluation_due():
                    if self._evaluate(save):
                        return
                elif save:
                    self._save()
                interval = Interval()

    def _log(self, interval: Interval, rate: float, shown: Progress) -> tuple[bool, bool]:
        """Writes the interval's line. Returns what all ranks agree on: whether to stop, whether
        time is up."""
        at, step = self.state.controller, self.state.step
        stop = self._told or self._launcher not in (None, os.getppid())
        agreed = interval.together(self.accelerator, stop, time.monotonic() - self._started)
        self.log.check(interval, agreed, self.streams[at.stage], step)
        self.state = replace(self.state, seconds=agreed.seconds)
        line = self.log.interval(agreed, step, at.stage, rate, self.state.loader or {})
        own, done = self.settings.stage(at.stage), step - at.stage_step
        left = []  # seconds left by either budget
        if own.max_steps is not None:
            left.append((own.max_steps - done) * agreed.spent / len(agreed.losses))
        time_is_up = False
        if own.max_seconds is not None:
            left.append(own.max_seconds - (agreed.seconds - at.stage_seconds))
            time_is_up = left[-1] <= 0
        status = (
            f"step {step:,}, loss {line['loss']:.4f}, "
            f"{line['tokens_per_second']:,.0f} tokens/s, waits {line['waiting']:.0%}"
        )
        shown.update(done, status, max(min(left), 0) if left else None)
        return agreed.stop, time_is_up

    def _save(self) -> None:
        with one_rank():
            self.checkpoints.save(self.state)

    # An evaluation

    def _evaluation_due(self) -> bool:
        at, step = self.state.controller, self.state.step
        last = controller.last_step(self.settings.of_controller(at.stage), at)
        done = step - at.stage_step
        due = done % self.settings.evaluation.steps == 0 or (last is not None and step >= last)
        return due and at.step < step

    def _evaluate(self, save: bool = True) -> bool:
        """Evaluates, acts on the controller's decision, and saves; returns whether the stage has
        ended.

        save: whether to save a checkpoint even if nothing else asks for one.
        """
        at, step = self.state.controller, self.state.step
        settings = self.settings.of_controller(at.stage)
        result = validate(
            self.accelerator,
            self.model,
            self._encoder(at.stage),
            self.validation[at.stage],
            self.sources,
            self.settings.evaluation,
            settings.accuracy if at.stage else 1.0,  # denoising: nothing is generated
            self.metric,
            min(self.settings.batch.micro_pairs, self.settings.evaluation.batch_size),
        )
        score, measure = result.score, "mean SPScore-zh"
        if at.stage == 0:
            score, measure = result.accuracy, "accuracy"
        after, decision = controller.evaluate(
            settings, at, step, self.state.seconds, result.accuracy, score, measure
        )
        self.log.evaluation(decision, result)
        self.say(
            f"step {step:,}, evaluation {decision.evaluation}, stage {decision.stage}: "
            f"{decision.action}: {decision.reason}"
        )
        ended = decision.action in (NEXT_STAGE, FINISH)
        best = step if decision.improved else self.state.best_step
        if ended and best not in (None, step):
            if self.settings.checkpoints.last and decision.action == FINISH:
                self._write_model("last")
            self.checkpoints.load(best)
        self.state = replace(self.state, controller=after, best_step=best)
        if decision.action == NEXT_STAGE:
            self.state = replace(self.state, loader=None, best_step=None)
        if save or ended or decision.improved:
            self._save()
        return ended

    # The files that a run leaves

    def finish(self) -> None:
        """Writes OUTPUT/model. All ranks call it."""
        self._write_model("model", write_plain_card)
        if self.main:
            self.checkpoints.send("model", "history.jsonl", "log.jsonl", "settings.yaml")
            self.say(f"finished at step {self.state.step:,}: {self.output / 'model'}")
        self.accelerator.wait_for_everyone()

    def _write_model(self, name: str, complete: Callable[[Path, Path], None] | None = None) -> None:
        """Writes the current model, whole or not at all. All ranks call it, since ZeRO-3 gathers.

        complete: adds other files; it is given the folder, before it is moved to its place, and
        OUTPUT.
        """
        plain = self.accelerator.unwrap_model(self.model)
        # Without ZeRO-3, get_state_dict would copy tied weights, and each copy would be written.
        zero3 = any(hasattr(parameter, "ds_id") for parameter in plain.parameters())
        weights = self.accelerator.get_state_dict(self.model) if zero3 else None
        if self.main:
            target, part = self.output / name, self.output / f".part-{name}"
            for folder in (part, target):
                shutil.rmtree(folder, ignore_errors=True)
            plain.save_pretrained(part, state_dict=weights)
            self.tokenizer.save_pretrained(part)
            if complete:
                complete(part, self.output)
            part.rename(target)

    def _model_is_there(self) -> bool:
        folders = [str(self.output), *filter(None, [self.settings.mirror])]
        return all(storage.exists(storage.join(folder, "model/config.json")) for folder in folders)

    def _on_sigterm(self, *_: Any) -> None:
        self._told = True
