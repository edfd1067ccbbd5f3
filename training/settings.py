"""Settings of training/curriculum.py, which conf/curriculum.yaml explains, and of writing
paraphrases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, ConfigDict, Field, model_validator, with_config
from typing_extensions import TypedDict

from gaixie.udfs.storage import settings as settings_io
from gaixie.udfs.storage.settings import Options, Strict

Share = Annotated[float, Field(ge=0, lt=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Steps = Annotated[int, Field(ge=1)]
Floor = Annotated[float, Field(ge=0, le=1)]
Stages = tuple[tuple[int, ...], ...]

CURRICULUM = Path(__file__).parents[1] / "conf/curriculum.yaml"
"""The settings that ship; the defaults of the section ``trainer`` are those of this file."""
DECIDES_NOTHING = {
    *("eval_steps", "save_steps", "save_total_limit", "logging_steps", "dataloader_num_workers"),
    *("report_to", "max_steps", "per_device_eval_batch_size", "ddp_timeout"),
}
"""Arguments that may change when a run continues."""


def _check_curriculum(curriculum: Stages) -> Stages:
    data = [stage for stages in curriculum for stage in stages]
    if not data or not all(curriculum) or len({*data}) < len(data) or not {*data} <= {0, 1, 2, 3}:
        raise ValueError("expected lists of stages, each of 0 to 3 at most once")
    return curriculum


class PairSettings(Options):
    """Which pairs a stage learns from, and how often."""

    min_meaning: Floor | None = None
    """Minimum judged meaning: pairs below it are left out. Likewise min_fluency."""
    min_fluency: Floor | None = None
    max_partners: int | None = Field(default=None, ge=1)
    """Maximum pairs of a source, drawn once; None: all."""
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default={})
    """How often the pairs of an origin count: 2 is twice, 0.5 every other one by chance. Default:
    1."""
    mix: Share = 0.0
    """Share of a later stage's pairs that come from earlier stages."""


class Data(PairSettings):
    """What a run trains on, and what it keeps apart."""

    uri: str
    validation: Share = 0.01
    test: Share = 0.01
    split_seed: int = Field(default=13, ge=0)
    codes: str | None = None
    """Control codes: ``degree`` measures each pair; the name of a column, such as of tones, takes
    the column's text, and measures where it is null. None: the model learns without."""


class Model(Strict):
    """A new model, by its configuration, or one that was trained before; LoRA trains a part."""

    config: dict[str, Any] | None = None
    pretrained: str | None = None
    lora: dict[str, Any] | None = None
    """Arguments of peft.LoraConfig; None trains all weights."""
    eight_bits: bool = False
    """With lora, on CPUs: the weights that stay as they are have eight bits."""

    @model_validator(mode="after")
    def _one(self) -> Model:
        if (self.config is None) == (self.pretrained is None):
            raise ValueError("give either config or pretrained, and null for the other")
        if self.lora is not None and self.pretrained is None:
            raise ValueError("lora needs a pretrained model")
        if self.eight_bits and self.lora is None:
            raise ValueError("eight_bits needs lora: such weights cannot be trained")
        return self


class Batch(Options):
    """The pairs of an optimiser step over all processes, and how many a process holds at once."""

    pairs: int = Field(default=256, ge=1)
    micro_pairs: int = Field(default=64, ge=1)


class Limits(Options):
    """When a stage ends: the section ``controller`` of conf/curriculum.yaml."""

    accuracy: Floor = 0.5
    """Accuracy of token prediction: above it generated text counts as readable."""
    patience: int = Field(default=3, ge=1)
    """Readable evaluations in a row without an improvement that end a stage."""
    min_delta: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """An improvement of SPScore-zh must exceed this."""


@with_config(ConfigDict(extra="allow"))
class Arguments(TypedDict, total=False):
    """Those of transformers.TrainingArguments that it does not check itself, and any other."""

    learning_rate: Amount
    warmup_steps: Amount
    weight_decay: Amount
    label_smoothing_factor: Share
    max_steps: Steps
    eval_steps: Steps
    save_steps: Steps
    logging_steps: Steps


class Evaluation(Strict):
    """On how much a model is evaluated."""

    pairs: int = Field(default=2_000, ge=1)
    generate: int = Field(default=500, ge=1)
    batch_size: int = Field(default=64, ge=1)
    max_new_tokens: int = Field(default=128, ge=1)
    code: str = ""
    tier: str = "core"


class Settings(Strict):
    """The settings of conf/curriculum.yaml."""

    data: Data
    tokenizer: str | None = None
    output: str
    mirror: str | None = None
    model: Model
    seed: int = Field(default=13, ge=0)
    batch: Batch = Batch()
    max_length: int = Field(default=256, ge=8)
    controller: Limits = Limits()
    curriculum: Annotated[Stages, AfterValidator(_check_curriculum)] = ((1,), (2,), (3,))
    stages: dict[int, Arguments] = Field(default={})
    evaluation: Evaluation = Evaluation()
    trainer: Arguments = Field(default_factory=Arguments)

    @model_validator(mode="after")
    def _check(self) -> Settings:
        if self.tokenizer is None and self.model.pretrained is None:
            raise ValueError("tokenizer: expected a folder, since the model is new")
        for number in self.stages:
            if not 1 <= number <= len(self.curriculum):
                raise ValueError(f"stages: there is no stage {number} in the curriculum")
            self.pairs(number)
        return self

    def pairs(self, stage: int) -> PairSettings:
        """Returns which pairs a stage learns from: the common settings with its own over them."""
        names = {*PairSettings.model_fields}
        own = {k: v for k, v in self.stages.get(stage, {}).items() if k in names}
        common = self.data.model_dump(include=names) | ({"mix": 0.0} if stage == 1 else {})
        return PairSettings.model_validate(common | own)

    def arguments(self, stage: int) -> dict[str, Any]:
        """Returns a stage's arguments for transformers.TrainingArguments."""
        own = {**self.stages.get(stage, {})}
        own = {k: v for k, v in own.items() if k not in PairSettings.model_fields}
        return yaml.safe_load(CURRICULUM.read_text("utf-8"))["trainer"] | self.trainer | own

    def identity(self) -> dict[str, Any]:
        """Returns what decides the weights of a run, which must not change when it continues."""
        values = self.model_dump(
            mode="json",
            include={"data", "model", "seed", "batch", "max_length", "curriculum"},
            exclude={"data": {"uri"}, "batch": {"micro_pairs"}},
        )
        for number in range(1, len(self.curriculum) + 1):
            stage = self.arguments(number) | self.pairs(number).model_dump()
            values[f"stages.{number}"] = {k: stage[k] for k in stage if k not in DECIDES_NOTHING}
        return values


class Decoding(Options):
    """How candidates are made. Raises ValueError for a value that is out of its range."""

    beams: int = Field(default=4, ge=1)
    """Beams of the search, each of which is a candidate."""
    draws: int = Field(default=0, ge=0)
    """Candidates to draw instead of searching."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Probability mass of the nucleus of draws (Holtzman et al. 2020)."""
    temperature: float = Field(default=0.7, gt=0)
    """Temperature of draws; a lower one draws likelier candidates."""
    seed: int = 0
    """Seed of all draws of one call."""
    code: str = ""
    """A control code that the model has learned, see udfs/paraphrase/prompt.py."""
    max_new_tokens: int | None = Field(default=None, ge=1)
    """Limit of a paraphrase; without it, twice its source's tokens, rounded up to a multiple of
    32."""
    batch_size: int = Field(default=32, ge=1)
    """Sentences at once; each takes the memory of all its beams or draws."""


class Ranking(Options):
    """What decides the order of a source's candidates, and how exactly the model computes."""

    rank_by: Literal["spscore", "model"] = "spscore"
    """What ranks a sentence's candidates: SPScore-zh, or the order in which the model wrote."""
    min_meaning: float = Field(default=0.0, ge=0, le=1)
    """With spscore: candidates whose judged meaning, 0 to 1, is below this rank last."""
    tier: str = "core"
    """Tier of SPScore-zh: paper, core, full, or a model's folder."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Type of weights and computation."""


def load_settings(path: str, assignments: list[str]) -> Settings:
    """Loads the YAML file with KEY=VALUE assignments on top.

    Raises OSError or ValueError with one line that names the file, the key and what it expects.
    """
    return settings_io.load_settings(Settings, path, assignments=assignments)
