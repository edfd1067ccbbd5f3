"""The arms of research/benchmarks/experiment.py, its settings, and what each arm is trained with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from gaixie.training.settings import Settings
from gaixie.udfs.storage.settings import Strict


@dataclass(frozen=True)
class Arm:
    """One way through the data."""

    curriculum: list[list[int]]
    """Stages of the data by stage of training; 0 is what lies below the cut."""
    floors: bool = True
    what: str = ""


ARMS = {
    "curriculum": Arm(
        [[1], [2], [3]], what="stage 1, then 2, then 3, each from the best weights so far"
    ),
    "together": Arm([[1, 2, 3]], what="the same pairs, shuffled together"),
    "stage-3": Arm([[3]], what="the third stage alone, epoch after epoch"),
    "unfiltered": Arm([[0, 1, 2, 3]], False, "all pairs that were scored: no cut, no floors"),
}

SMALL = (
    "training.batch.pairs=16",
    "training.batch.micro_pairs=16",
    "training.bf16=false",
    "training.data.validation=0.1",
    "training.warmup_steps=2",
    "training.evaluation={pairs: 8, generate: 4, max_new_tokens: 8, degree: 4}",
    "floors={min_meaning: 0.3, min_fluency: 0.3}",
    "stages=[4, 8, 12]",
    "evaluate_every=4",
    "start={updates: 4, words: 0, settings: {learning_rate: 0.001}, config: {d_model: 32, encoder_layers: 1, "
    "decoder_layers: 1, encoder_attention_heads: 2, decoder_attention_heads: 2, encoder_ffn_dim: 64, "
    "decoder_ffn_dim: 64, max_position_embeddings: 128}}",
    "cuts={parallel: {quantiles: [0.3, 0.6, 0.8], min_meaning: 0}, "
    "human: {quantiles: [0.3, 0.6, 0.8], min_meaning: 0}}",
    "tested=8",
    "validated=4",
    "limit=400",
    "decoding=[--beams, 1, --max-new-tokens, 8]",
    "shown=4",
)
"""--small: so little that only the machinery can be seen to work."""


class Start(Strict):
    """How the start of all arms is made."""

    decoder_layers: int = Field(default=3, ge=1)
    config: dict[str, Any] | None = None
    words: int = Field(default=0, ge=0)
    updates: int = Field(ge=1)
    settings: dict[str, Any] = Field(default={})


class Experiment(Strict):
    """The settings of research/benchmarks/experiment.yaml."""

    training: dict[str, Any]
    floors: dict[str, float]
    stages: list[int] = Field(min_length=3, max_length=3)
    evaluate_every: int = Field(ge=1)
    start: Start
    cuts: dict[str, Any]
    tested: int = Field(ge=1)
    validated: int = Field(ge=1)
    noise: float = Field(gt=0, lt=1)
    limit: int | None = Field(default=None, ge=1)
    decoding: list[str | int | float]
    shown: int = Field(ge=1)
    seconds_per_update: float = Field(gt=0)

    @model_validator(mode="after")
    def _divides(self) -> Experiment:
        if any(updates % self.evaluate_every or not updates for updates in self.stages):
            raise ValueError("stages: expected multiples of evaluate_every")
        return self

    @property
    def updates(self) -> int:
        """Of every arm."""
        return sum(self.stages)

    @property
    def evaluations(self) -> int:
        """Of every arm."""
        return self.updates // self.evaluate_every

    def identity(self) -> dict[str, Any]:
        """What decides the figures."""
        return self.model_dump(mode="json", exclude={"shown", "seconds_per_update"})


def settings_of(
    experiment: Experiment, arm: Arm, seed: int, root: Path, start: str, output: Path
) -> Settings:
    """The settings of one training. root: the experiment's folder, start: the model all begin with.

    The score of all evaluations is of the same sources, whatever the arm. Every evaluation counts, and
    nothing but the budget ends a stage.
    """
    values = experiment.training
    budgets = experiment.stages if len(arm.curriculum) > 1 else [experiment.updates]
    evaluation = {"steps": experiment.evaluate_every, "sources": str(root / "validation.parquet")}
    return Settings.model_validate(
        values
        | {
            "data": values["data"]
            | {"uri": str(root / "runs/pairs")}
            | (experiment.floors if arm.floors else {}),
            "tokenizer": start,
            "model": {"pretrained": start},
            "output": str(output),
            "seed": seed,
            "curriculum": arm.curriculum,
            "stages": {number: {"max_steps": steps} for number, steps in enumerate(budgets, 1)},
            "controller": {"accuracy": 0.0, "patience": experiment.updates},
            "evaluation": values.get("evaluation", {}) | evaluation,
            "checkpoints": {"steps": experiment.evaluate_every, "keep": 1, "last": True},
            "tracking": None,
        }
    )


def settings_of_start(experiment: Experiment, root: Path, warm: str | None) -> Settings:
    """The settings of the denoising that makes the start. warm: a model of a BERT; None: a new one.

    A training has pairs, too: of theirs is one update, at a learning rate that changes nothing.
    """
    own, data = experiment.start, experiment.training["data"]
    values = {k: v for k, v in experiment.training.items() if k != "data"} | own.settings
    model = {"pretrained": warm} if warm else {"config": own.config}
    every = max(own.updates // 10, 1)
    return Settings.model_validate(
        values
        | {
            "data": {
                "uri": str(root / "runs/pairs"),
                "validation": data["validation"],
                "test": 0.0,
            },
            "tokenizer": str(root / "tokenizer"),
            "model": model,
            "output": str(root / "start"),
            "curriculum": [[1, 2, 3]],
            "denoising": {"sentences": {str(root / "sentences.parquet"): "text"}, "pairs": False},
            "stages": {0: {"max_steps": own.updates}, 1: {"max_steps": 1, "learning_rate": 1e-12}},
            "controller": {"accuracy": 0.0, "patience": own.updates},
            "evaluation": {"steps": every, "pairs": 300, "generate": 1, "max_new_tokens": 8},
            "checkpoints": {"steps": every, "keep": 1},
            "tracking": None,
        }
    )
