"""One run of the curriculum, from its settings to the finished model."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
from accelerate import Accelerator
from accelerate.utils import DistributedType, InitProcessGroupKwargs, set_seed

from gaixie.training.cards.card import write_plain_card
from gaixie.training.data.corpus import Corpus
from gaixie.training.data.denoising import DenoisingSettings, Sentences
from gaixie.training.data.stage_data import StageStream
from gaixie.training.data.stage_loader import PairEncoder, StageLoader
from gaixie.training.data.token_files import TokenFiles
from gaixie.training.loop import controller
from gaixie.training.loop.checkpoints import Checkpoints, RunState
from gaixie.training.loop.controller import FINISH, NEXT_STAGE
from gaixie.training.loop.model_folder import write_model
from gaixie.training.loop.precision import Precision, lowest_capability
from gaixie.training.loop.progress import Display
from gaixie.training.loop.run_log import Interval, RunLog
from gaixie.training.loop.step import (
    MicroBatches,
    accumulation,
    freeze_unused,
    lr_at,
    make_optimizer,
    prepare,
    seed_step,
    train_step,
)
from gaixie.training.loop.tracking import tracker_of
from gaixie.training.loop.validation import validate
from gaixie.training.modeling.model import build_model, load_tokenizer, tokens_digest
from gaixie.training.settings import Settings
from gaixie.udfs.metrics import load_metric
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.text_tables import read_columns

STOPPED, INTERRUPTED = 128 + signal.SIGTERM, 128 + signal.SIGINT

COLLECTIVE_HOURS = 2
"""How long ranks wait for one that writes a checkpoint or reads the data."""


class OneRankError(RuntimeError):
    """An error that the other ranks may not have seen."""


@contextmanager
def one_rank() -> Iterator[None]:
    """Errors in the block are this rank's own."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise OneRankError(str(error)) from error


class Stopped(Exception):
    """SIGTERM came, and a checkpoint is saved."""


class Run:
    """A run: everything is read and checked here, before the first step and before anything is written."""

    def __init__(self, settings: Settings):
        self.settings = settings
        data = settings.data
        self.corpus = Corpus(data.uri, data.validation, data.test, data.split_seed)
        self.tokenizer = load_tokenizer(settings.tokenizer, settings.model.pretrained)
        self.precision = Precision.of(settings.bf16, settings.tf32, lowest_capability())
        multiple = 8 if self.precision.bf16 else 1
        self.encode = PairEncoder(self.tokenizer, settings.max_length, multiple)
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
        self.display = Display(self.main)
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        cache = settings.cache or str(Path(settings.output, "tokens"))
        self.tokens = TokenFiles(cache, self.encode)
        self.streams = {
            stage: StageStream(
                self.corpus, stage, settings.of_stream(stage), rank, world, self.tokens
            )
            for stage in settings.numbers
            if stage
        }
        self.validation: dict[int, pa.Table] = {
            stage: stream.held_out("validation", settings.evaluation.pairs)
            for stage, stream in self.streams.items()
        }
        self.sources = self._common_sources()
        if settings.denoising:
            self._add_denoising(settings.denoising, rank, world)
        set_seed(settings.seed)
        self.network = build_model(settings.model, self.tokenizer, settings.max_length)
        if settings.gradient_checkpointing:
            self.network.gradient_checkpointing_enable({"use_reentrant": False})
        self.checkpoints = Checkpoints(
            self.accelerator,
            settings.output,
            settings.checkpoints.keep,
            settings.identity()
            | {"tokenizer": tokens_digest(self.tokenizer), "bf16": self.precision.bf16},
            settings.mirror,
        )
        self.log = RunLog(self.accelerator, settings, self.metric.signature())
        self.output = Path(settings.output)
        self.state = RunState.start(settings.numbers[0])
        self._told = False
        # accelerate launch ends at SIGTERM without a word to a single process, which sees it go.
        self._launcher = os.getppid() if "ACCELERATE_MIXED_PRECISION" in os.environ else None

    def _common_sources(self) -> pa.ChunkedArray:
        """The sources that are paraphrased at every evaluation: some of each stage, in turn.

        They are the same in all stages, so that a rise of their score from one to the next means something.
        """
        if given := self.settings.evaluation.sources:
            texts = [text for (text,) in read_columns(given, ["source"]) if text]
            return pa.chunked_array([texts], pa.string())
        columns = [table["source"].to_pylist() for table in self.validation.values()]
        turns = chain.from_iterable(zip_longest(*columns))
        return pa.chunked_array([[*dict.fromkeys(filter(None, turns))]], pa.string())

    def _add_denoising(self, denoising: DenoisingSettings, rank: int, world: int) -> None:
        """Stage 0: its stream and its validation sentences."""
        sentences = Sentences(self.corpus, denoising)
        stream = StageStream(sentences, 1, self.settings.of_stream(0), rank, world, self.tokens)
        self.streams = {0: stream} | self.streams
        self.validation[0] = stream.held_out("validation", self.settings.evaluation.pairs)

    def _encoder(self, stage: int) -> PairEncoder:
        """What encodes the pairs of a stage."""
        if stage:
            return self.encode
        encode = self.encode
        noise = self.settings.denoising
        return PairEncoder(encode.tokenizer, encode.max_length, encode.multiple_of, noise)

    def describe(self) -> int:
        """Says what would be trained, and on what."""
        # Under ZeRO-3 a weight that was read is an empty vector here, and its size is elsewhere.
        weights = sum(getattr(p, "ds_numel", p.numel()) for p in self.network.parameters())
        world, batch = self.accelerator.num_processes, self.settings.batch
        self.display.say(f"data: {self.corpus.name}, {self.corpus.uri}")
        for stage, stream in self.streams.items():
            own = self.settings.stage(stage).model_dump(exclude_none=True)
            data = self.settings.curriculum[stage - 1] if stage else []
            of = "" if data == [stage] else f" (of the data: {', '.join(map(str, data))})"
            of, what = (of, "pairs") if stage else (" (denoising)", "sentences or pairs of them")
            self.display.say(
                f"stage {stage}{of}: {stream.rows:,} {what}, {len(self.validation[stage]):,} for validation; "
                + ", ".join(f"{name} {value:,g}" for name, value in own.items())
            )
        self.display.say(
            f"model: {weights:,} weights, {len(self.tokenizer):,} tokens; {batch.pairs:,} pairs a step "
            f"over {world} processes, in micro-batches of up to {batch.micro_pairs:,}"
        )
        self.display.say(f"precision: {self.precision.in_words()}")
        self.display.say(f"metric: {self.log.signature}")
        return 0

    def train(self, resume: bool) -> int:
        """Trains until the last stage is finished; returns the exit code."""
        self.describe()
        saved = self.checkpoints.find(resume)
        if saved and saved.controller.finished and self._model_is_there():
            self.display.say(f"finished at step {saved.step:,}, before: {self.output / 'model'}")
            self.checkpoints.close()
            return 0
        # Under DeepSpeed the weights may be elsewhere; it does without the gradients that are not there.
        if self.accelerator.distributed_type != DistributedType.DEEPSPEED:
            if unused := freeze_unused(self.network):
                self.display.say(f"{len(unused)} weights stay as they are: {', '.join(unused)}")
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
            self.display.say(f"goes on from {self.checkpoints.path(saved.step)}")
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
            self.display.say(f"stopped at step {self.state.step:,}, which is saved")
            code = STOPPED
        finally:
            signal.signal(signal.SIGTERM, before)
            self.display.close()
            self.checkpoints.close()
        self.accelerator.end_training()  # not after an error: the other ranks are elsewhere
        return code

    # A stage

    def stage(self) -> None:
        """Trains one stage: steps and evaluations until the controller leaves it."""
        settings, number = self.settings, self.state.controller.stage
        own = settings.stage(number)
        batch = settings.batch
        micro_batches = MicroBatches(self._encoder(number), batch.micro_pairs, batch.micro_tokens)
        cuda = self.accelerator.device.type == "cuda"
        loader = StageLoader(self.streams[number], micro_batches, settings.workers, pin_memory=cuda)
        if self.state.loader:
            loader.load_state_dict(self.state.loader)
        first = self.state.controller.stage_step
        self.display.start_stage(number, self.state.step - first, own.max_steps)
        if self._evaluation_due() and self._evaluate():  # a run that was stopped just before it
            return
        interval = Interval()
        # Workers ignore SIGTERM: left to the end of Python, they would be waited for without end.
        with closing(loader.batches()) as batches:
            while True:
                asked = time.monotonic()
                with one_rank():
                    batch = next(batches)
                waiting = time.monotonic() - asked
                step = self.state.step + 1
                seed_step(settings.seed, step, self.accelerator.process_index)
                rate = lr_at(step - first, own, settings.decay, settings.min_learning_rate)
                for group in self.optimizer.param_groups:
                    group["lr"] = rate * group.get("scale", 1.0)
                done = train_step(
                    self.accelerator,
                    self.model,
                    self.optimizer,
                    batch,
                    settings.label_smoothing,
                    settings.clip,
                )
                interval.add(done, waiting, loader.position)
                self.state = replace(self.state, step=step, loader=loader.state_dict())
                save = step % settings.checkpoints.steps == 0
                if not (save or step % settings.log_steps == 0 or self._evaluation_due()):
                    continue
                stop, time_is_up = self._log(interval, rate)
                if stop:
                    self._save()
                    raise Stopped
                if time_is_up or self._evaluation_due():
                    if self._evaluate(save):
                        return
                elif save:
                    self._save()
                interval = Interval()

    def _log(self, interval: Interval, rate: float) -> tuple[bool, bool]:
        """Writes the interval's line. What all ranks agree on: whether to stop, whether time is up."""
        at, step = self.state.controller, self.state.step
        stop = self._told or self._launcher not in (None, os.getppid())
        agreed = interval.together(self.accelerator, stop, time.monotonic() - self._started)
        self.log.check(interval, agreed, self.streams[at.stage], step)
        self.state = replace(self.state, seconds=agreed.seconds)
        line = self.log.interval(agreed, step, at.stage, rate, self.state.loader or {})
        own, done = self.settings.stage(at.stage), step - at.stage_step
        left = []  # seconds, by either budget
        if own.max_steps is not None:
            left.append((own.max_steps - done) * agreed.spent / len(agreed.losses))
        time_is_up = False
        if own.max_seconds is not None:
            left.append(own.max_seconds - (agreed.seconds - at.stage_seconds))
            time_is_up = left[-1] <= 0
        self.display.update(line, done, max(min(left), 0) if left else None)
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
        """Evaluates, does what the controller decides, and saves that; whether the stage has ended.

        save: also where nothing else asks for a checkpoint.
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
        )
        score, measure = result.score, "mean SPScore-zh"
        if at.stage == 0:
            score, measure = result.accuracy, "accuracy"
        after, decision = controller.evaluate(
            settings, at, step, self.state.seconds, result.accuracy, score, measure
        )
        self.log.evaluation(decision, result)
        self.display.say(
            f"step {step:,}, evaluation {decision.evaluation}, stage {decision.stage}: "
            f"{decision.action}: {decision.reason}"
        )
        ended = decision.action in (NEXT_STAGE, FINISH)
        best = step if decision.improved else self.state.best_step
        if ended and best is not None and best != step:
            if self.settings.checkpoints.last and decision.action == FINISH:
                write_model(self.accelerator, self.model, self.tokenizer, self.output / "last")
            self.checkpoints.load(best)
        self.state = replace(self.state, controller=after, best_step=best)
        if decision.action == NEXT_STAGE:
            self.state = replace(self.state, loader=None, best_step=None)
        if save or ended or decision.improved:
            self._save()
        return ended

    # What a run leaves

    def finish(self) -> None:
        """Writes OUTPUT/model. All ranks call it, as ZeRO-3 gathers its weights."""
        self.display.close()
        write_model(
            self.accelerator, self.model, self.tokenizer, self.output / "model", write_plain_card
        )
        if self.main:
            self.checkpoints.send("model", "history.jsonl", "log.jsonl", "settings.yaml")
            self.display.say(f"finished at step {self.state.step:,}: {self.output / 'model'}")
        self.accelerator.wait_for_everyone()

    def _model_is_there(self) -> bool:
        folders = [str(self.output), *filter(None, [self.settings.mirror])]
        return all(storage.exists(storage.join(folder, "model/config.json")) for folder in folders)

    def _on_sigterm(self, *_: Any) -> None:
        self._told = True
