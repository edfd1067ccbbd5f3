"""Collects the facts of a training from its folder, and keeps them beside the model in
training.json.

    write_training(Path("runs/first/model"), read_training(Path("runs/first/model")))

The file contains no paths: it names data by its run or release and the SHA-256 of its manifest, and
leaves out settings that are paths. If training started from another model, that model's facts are
under `start`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import metadata_load
from pydantic import BaseModel, ValidationError

from gaixie.training.loop.plots import read_lines
from gaixie.training.settings import Settings
from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, ReleaseManifest, read_manifest
from gaixie.udfs.storage.settings import first_fault

FILE = "training.json"
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
PATHS = {"output", "mirror", "tokenizer"}
"""Settings that are only paths."""


class Data(BaseModel):
    """A run or release that pairs came from."""

    name: str
    manifest_sha256: str | None = None
    """Null if the manifest could not be read when the card was written, as all below."""
    created: str | None = None
    signature: str | None = None
    license: str | None = None
    """The licence of a release."""
    is_split: bool = False
    """Whether this is a release with its own splits."""
    pairs: dict[int, dict[str, int]] = {}
    """Pairs by stage and origin; training pairs, if the release was split."""


class Stage(BaseModel):
    """The outcome of one stage of a training."""

    number: int
    """Its place in the curriculum; 0 is denoising."""
    data_stages: list[int]
    """Stages of the data that it learned from; none for denoising."""
    learning_rate: float
    min_meaning: float | None = None
    min_fluency: float | None = None
    steps: int
    pairs: int
    """Pairs seen, with repeats; for denoising, sentences."""
    evaluations: int
    accuracy: float
    """Accuracy in the evaluation whose weights were kept, or in the last; likewise the score."""
    score: float | None = None
    best_step: int | None = None
    """The step whose weights were kept; null: the last one's."""
    reason: str
    """Why it ended."""


class Training(BaseModel):
    """The file training.json."""

    gaixie: str = ""
    base_model: str | None = None
    """Name of the base model on the hub."""
    data: Data | None = None
    stages: list[Stage] = []
    seconds: float = 0.0
    signature: str | None = None
    """Signature of the metric in the evaluations."""
    samples: list[list[str]] = []
    """(source, paraphrase) of the last evaluation."""
    settings: dict[str, Any] = {}
    start: Training | None = None
    """The training of the model that this one started from."""


def read_training(model: Path) -> Training:
    """Reads MODEL/training.json; without it, the run that left MODEL.

    Raises FileNotFoundError if there is neither, and ValueError for an invalid file.
    """
    if (model / FILE).is_file():
        with suppress(ValidationError):
            return Training.model_validate(storage.read_json(str(model / FILE)))
        raise ValueError(f"{model / FILE}: not written by a training")
    if not (model.parent / "settings.yaml").is_file():
        raise FileNotFoundError(
            f"{model}: has no {FILE}, and is not in an output of training/curriculum.py"
        )
    return of_run(model.parent)


def write_training(model: Path, training: Training) -> None:
    """Writes MODEL/training.json."""
    text = training.model_dump_json(indent=1, exclude_none=True)
    (model / FILE).write_text(text + "\n", "utf-8")


def of_run(output: Path) -> Training:
    """Returns the facts of a finished training from its OUTPUT.

    Raises OSError or ValueError if its settings or logs cannot be read.
    """
    path = output / "settings.yaml"
    try:
        settings = Settings.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except ValidationError as error:
        raise ValueError(f"{path}: {first_fault(error)}") from None
    history, log = (read_lines(output / name) for name in ("history.jsonl", "log.jsonl"))
    start, base = start_of(settings.model.pretrained)
    last = history[-1] if history else {}
    return Training(
        gaixie=version("gaixie"),
        base_model=base,
        data=_data(settings.data.uri),
        stages=_stages(settings, history, log),
        seconds=last.get("seconds", 0.0),
        signature=last.get("signature"),
        samples=last.get("samples", []),
        settings=without_paths(settings),
        start=start,
    )


def start_of(pretrained: str | None) -> tuple[Training | None, str | None]:
    """Returns the facts of the model that a training started from, and its base model's name on the
    hub."""
    if pretrained is None:
        return None, None
    folder = Path(pretrained)
    if not folder.is_dir():
        return None, pretrained if HUB_NAME.fullmatch(pretrained) else None
    with suppress(OSError, ValueError):
        start = read_training(folder)
        return start if start.stages else None, start.base_model
    with suppress(OSError, ValueError, yaml.YAMLError):  # written by research/make_encoder.py
        name = (metadata_load(folder / "README.md") or {}).get("base_model")
        return None, name if isinstance(name, str) else None
    return None, None


def without_paths(settings: Settings) -> dict[str, Any]:
    """Returns the settings without local paths."""
    values = settings.model_dump(mode="json", exclude_none=True, exclude=PATHS)
    values["data"].pop("uri")
    values["model"].pop("pretrained", None)
    values["evaluation"].pop("sources", None)
    tier = values["evaluation"]["tier"]
    values["evaluation"]["tier"] = Path(tier).name
    if noise := values.get("denoising"):
        noise["sentences"] = {Path(uri).name: name for uri, name in noise["sentences"].items()}
    return values


def _data(uri: str) -> Data:
    """Returns the facts of a run or release, which may no longer exist."""
    try:
        manifest = read_manifest(uri)
        digest = storage.sha256(storage.join(uri, NAME))
    except (OSError, ValueError) as error:
        say(f"card: states only the name of the data: {error}")
        return Data(name=uri.rstrip("/").rpartition("/")[2])
    common: dict[str, Any] = {"manifest_sha256": digest, "created": manifest.created}
    common["signature"] = manifest.signature
    pairs: dict[int, dict[str, int]] = {}
    if isinstance(manifest, ReleaseManifest):
        return Data(
            name=f"release {manifest.version} of {manifest.name}",
            license=manifest.license,
            is_split=sum(share > 0 for share in manifest.settings.split.values()) > 1,
            pairs=dict(sorted(manifest.counts.get("train", {}).items())),
            **common,
        )
    for origin, stages in manifest.stages.items():
        for stage, count in stages.items():
            pairs.setdefault(stage, {})[origin] = count
    return Data(name=f"run {manifest.run_id}", pairs=dict(sorted(pairs.items())), **common)


def _stages(
    settings: Settings, history: list[dict[str, Any]], log: list[dict[str, Any]]
) -> list[Stage]:
    seen = {line["stage"]: line["pairs"] for line in log}  # keeps the last line of each stage
    before, stages = 0, []
    for number, lines in groupby(history, lambda line: line["stage"]):
        evaluations = [*lines]
        last = evaluations[-1]
        best = [e for e in evaluations if e["evaluation"] == last["best_evaluation"]]
        kept = best[-1] if best else last
        names = {"learning_rate", "min_meaning", "min_fluency"}
        stages.append(
            Stage(
                number=number,
                data_stages=[*settings.curriculum[number - 1]] if number else [],
                **settings.stage(number).model_dump(include=names),
                steps=last["step"] - before,
                pairs=seen.get(number, 0),
                evaluations=len(evaluations),
                accuracy=kept["accuracy"],
                score=kept["score"] if number else None,
                best_step=kept["step"] if best else None,
                reason=last["reason"],
            )
        )
        before = last["step"]
    return stages
