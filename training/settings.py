"""Loads the settings of training/curriculum.py, and checks them before it starts.

The command line overrides the YAML file; conf/curriculum.yaml explains every key. This file
imports nothing else of the package.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from gaixie.udfs.storage import settings as settings_io
from gaixie.udfs.storage.settings import Strict

DEGREES = 5
"""Degrees of change, from 1, that a model may be asked for."""
Switch = bool | Literal["auto"]
"""auto: on if the accelerator supports it."""
Share = Annotated[float, Field(ge=0, lt=1)]
Floor = Annotated[float, Field(ge=0, le=1)]
Stages = tuple[tuple[int, ...], ...]


def _check_curriculum(curriculum: Stages) -> Stages:
    """Returns the curriculum unchanged. Raises ValueError for an empty or repeated stage."""
    data = [stage for stages in curriculum for stage in stages]
    if not all(curriculum) or len({*data}) < len(data) or not {*data} <= {0, 1, 2, 3}:
        raise ValueError("expected lists of stages, each of 0 to 3 at most once")
    return curriculum


Curriculum = Annotated[Stages, AfterValidator(_check_curriculum)]
"""The stages of training in order; each lists the data stages that it learns from."""


class Frozen(Strict):
    """Settings that do not change, and may be compared."""

    model_config = ConfigDict(frozen=True)


class PairSettings(Frozen):
    """Which pairs a stage learns from, and how often in an epoch: a part of the section
    ``data``."""

    min_meaning: Floor | None = None
    """Minimum judged meaning: pairs below it are left out. Likewise min_fluency."""
    min_fluency: Floor | None = None
    max_self_bleu: float | None = Field(default=None, ge=0, le=100)
    """Maximum Self-BLEU of words: pairs above it are left out. MultiPIT (Dou et al. 2022) leaves
    out pairs above 14, so that the model learns to change more."""
    max_partners: int | None = Field(default=None, ge=1)
    """Maximum pairs of a source in a block, drawn anew for each epoch; None: all."""
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default={})
    """How often the pairs of an origin count: 2 is twice, 0.5 every other one by chance. Default:
    1."""
    degrees: bool = False
    """Give the model each pair's degree of change, so that it can be asked for one."""

    @model_serializer(mode="wrap")
    def _unless_set(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omits newer settings that are not set, so that earlier checkpoints compare equal."""
        values: dict[str, Any] = dump(self)
        return {k: v for k, v in values.items() if k != "max_self_bleu" or v is not None}


class Noise(Frozen):
    """What is done to a sentence that a model learns to restore."""

    mask: Share = 0.3
    """Share of the tokens to mask."""
    span: float = Field(default=3.0, gt=0)
    """Mean tokens of a masked span."""
    shuffle: float = Field(default=2.0, ge=0)
    """Chunks move by fewer places than this; at 0 or 1 none moves."""


class DenoisingSettings(Noise):
    """The section ``denoising`` of conf/curriculum.yaml."""

    sentences: dict[str, str] = Field(default={})
    """Maps Parquet files or folders of plain sentences, a path or URI, to their column."""
    pairs: bool = True
    """Also restore the distinct sentences of the training pairs."""

    @model_validator(mode="after")
    def _some(self) -> DenoisingSettings:
        if not self.sentences and not self.pairs:
            raise ValueError("expected sentences, or pairs: true")
        return self


class BatchSettings(Frozen):
    """How the pairs of a stage are cut into batches: a part of the section ``batch``."""

    mix: Share = 0.0
    """Share of the pairs that come from earlier stages, drawn anew for every block."""
    block_rows: int = Field(default=500_000, ge=1)
    """Approximate pairs in memory, and shuffled, at a time; at least a row group."""


class StreamSettings(BatchSettings):
    """What the batches of a stage depend on, beside the data."""

    batch_size: int = Field(default=64, ge=1)
    """Pairs of a batch over all ranks."""
    seed: int = Field(default=13, ge=0)
    curriculum: Curriculum = ((1,), (2,), (3,))
    pairs: PairSettings = PairSettings()


class Limits(Frozen):
    """When a stage ends: the section ``controller`` of conf/curriculum.yaml."""

    accuracy: Floor = 0.5
    """Accuracy of token prediction: above it generated text counts as readable."""
    patience: int = Field(default=3, ge=1)
    """Readable evaluations in a row without an improvement that end a stage."""
    min_delta: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """An improvement of SPScore-zh must exceed this."""
    max_steps: int | None = Field(default=None, ge=1)
    """Optimiser steps of one stage."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Seconds of one stage."""


class ControllerSettings(Limits):
    """The limits of one stage, in a curriculum of so many."""

    stages: int = Field(default=3, ge=0)


class Data(PairSettings):
    """What a run trains on, and what it keeps apart."""

    uri: str
    validation: Share = 0.01
    test: Share = 0.01
    split_seed: int = Field(default=13, ge=0)


class Model(Strict):
    """A new model, by its configuration, or one that was trained before."""

    config: dict[str, Any] | None = None
    pretrained: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Model:
        if (self.config is None) == (self.pretrained is None):
            raise ValueError("give either config or pretrained, and null for the other")
        return self


class Batch(BatchSettings):
    """The pairs of an optimiser step, and how they are cut up."""

    pairs: int = Field(default=256, ge=1)
    micro_pairs: int = Field(default=64, ge=1)
    micro_tokens: int | None = Field(default=None, ge=1)


class Evaluation(Strict):
    """How often and on how much a model is evaluated."""

    steps: int = Field(default=1_000, ge=1)
    pairs: int = Field(default=2_000, ge=1)
    generate: int = Field(default=500, ge=1)
    batch_size: int = Field(default=512, ge=1)
    num_beams: int = Field(default=1, ge=1)
    max_new_tokens: int | None = Field(default=None, ge=1)
    degree: int | None = Field(default=None, ge=1, le=DEGREES)
    sources: str | None = None
    tier: str = "core"


class Checkpoints(Strict):
    """How often a checkpoint is written, and how many are kept."""

    steps: int = Field(default=1_000, ge=1)
    keep: int = Field(default=2, ge=1)
    last: bool = False


class StageOverrides(Strict):
    """What one stage has instead of the common setting; None: the common one."""

    learning_rate: float | None = Field(default=None, gt=0)
    warmup_steps: int | None = Field(default=None, ge=0)
    max_steps: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    mix: Share | None = None
    min_meaning: Share | None = None
    min_fluency: Share | None = None


class StageSettings(StageOverrides):
    """What one stage has in the end."""

    learning_rate: float
    warmup_steps: int
    mix: float = 0.0


class Settings(Strict):
    """The settings of conf/curriculum.yaml."""

    data: Data
    tokenizer: str | None
    output: str
    mirror: str | None = None
    model: Model
    seed: int = Field(default=13, ge=0)

    batch: Batch = Batch()
    max_length: int = Field(default=256, ge=8)
    workers: int = Field(default=2, ge=0)
    cache: str | None = None

    bf16: Switch = "auto"
    tf32: Switch = "auto"
    compile: Literal["inductor", "aot_eager"] | None = None
    gradient_checkpointing: bool = False
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    learning_rate: float = Field(default=5e-4, gt=0)
    encoder_learning_rate: float = Field(default=1.0, ge=0)
    warmup_steps: int = Field(default=1_000, ge=0)
    decay: Literal["cosine", "linear", "constant"] = "cosine"
    min_learning_rate: float = Field(default=0.1, ge=0, le=1)
    weight_decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0)
    max_skipped_steps: int = Field(default=10, ge=0)

    controller: Limits = Limits()
    denoising: DenoisingSettings | None = None
    curriculum: Curriculum = ((1,), (2,), (3,))
    stages: dict[int, StageOverrides] = Field(default={})

    evaluation: Evaluation = Evaluation()
    checkpoints: Checkpoints = Checkpoints()
    log_steps: int = Field(default=10, ge=1)
    tracking: Literal["tensorboard", "wandb"] | None = "tensorboard"

    @model_validator(mode="after")
    def _own(self) -> Settings:
        if not self.curriculum and not self.denoising:
            raise ValueError("curriculum: expected a stage, since there is no denoising")
        for number in self.stages:
            if number not in self.numbers:
                raise ValueError(f"stages: there is no stage {number} in the curriculum")
        if self.tokenizer is None and self.model.pretrained is None:
            raise ValueError(
                "tokenizer: null is the pretrained model's, but model.pretrained is null too"
            )
        if self.cache is not None and "://" in self.cache:
            raise ValueError(f"cache: expected a folder on this machine, not {self.cache}")
        if self.tokenizer is None and (self.denoising or self.data.degrees):
            name = "denoising" if self.denoising else "data.degrees"
            raise ValueError(f"{name}: needs Gaixie's tokenizer, but tokenizer is null")
        if self.evaluation.degree is not None and not self.data.degrees:
            raise ValueError("evaluation.degree: needs data.degrees")
        return self

    @property
    def numbers(self) -> range:
        """Returns the numbers of the training stages, from 1; from 0 if denoising comes before
        them."""
        return range(0 if self.denoising else 1, len(self.curriculum) + 1)

    def stage(self, number: int) -> StageSettings:
        """Returns the common settings with the stage's own over them."""
        common = {
            "learning_rate": self.learning_rate,
            "warmup_steps": self.warmup_steps,
            "max_steps": self.controller.max_steps,
            "max_seconds": self.controller.max_seconds,
            "mix": self.batch.mix if number > 1 else 0.0,
        }
        if number:
            common |= {"min_meaning": self.data.min_meaning, "min_fluency": self.data.min_fluency}
        own = self.stages.get(number, StageOverrides()).model_dump(exclude_none=True)
        return StageSettings.model_validate(common | own)

    def of_controller(self, stage: int) -> ControllerSettings:
        """Returns the settings of a stage's controller."""
        own = self.stage(stage).model_dump(include={"max_steps", "max_seconds"})
        common = self.controller.model_dump() | ({} if stage else {"accuracy": 0.0})
        return ControllerSettings.model_validate(common | own | {"stages": len(self.curriculum)})

    def of_stream(self, stage: int) -> StreamSettings:
        """Returns the settings that the batches of a stage depend on."""
        own = self.stage(stage)
        pairs = self.data.model_dump(include={*PairSettings.model_fields})
        pairs |= {"min_meaning": own.min_meaning, "min_fluency": own.min_fluency}
        return StreamSettings(
            batch_size=self.batch.pairs,
            block_rows=self.batch.block_rows,
            mix=own.mix,
            seed=self.seed,
            curriculum=self.curriculum if stage else ((1,),),
            pairs=PairSettings.model_validate(pairs) if stage else PairSettings(),
        )

    def identity(self) -> dict[str, Any]:
        """Returns what decides the weights that a step leaves, by dotted name: a run keeps it to
        its end.

        Anything else may change when a run continues: locations of files, budgets and the
        controller's limits, evaluation, checkpoints, and how the work is cut up.
        """
        free: dict[str, Any] = {
            "data": {"uri"},  # the loader compares the data itself
            "output": True,
            "mirror": True,
            "tokenizer": True,  # by its digest, see checkpoints.py
            "batch": {"micro_pairs", "micro_tokens"},
            "workers": True,
            "cache": True,
            "bf16": True,  # checkpoints compare the resolved value
            "tf32": True,
            "compile": True,
            "gradient_checkpointing": True,
            "controller": True,
            "stages": {"__all__": {"max_steps", "max_seconds"}},
            "evaluation": True,
            "checkpoints": True,
            "max_skipped_steps": True,
            "log_steps": True,
            "tracking": True,
        }
        return dict(_flat(self.model_dump(mode="json", exclude=free)))


def _flat(values: dict[str, Any], prefix: str = ""):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def load_settings(path: str, assignments: list[str]) -> Settings:
    """Loads the YAML file with KEY=VALUE assignments on top.

    Raises OSError or ValueError with one line that names the file, the key and what it expects.
    """
    return settings_io.load_settings(Settings, path, assignments=assignments)
