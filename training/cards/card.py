"""Renders a model's card, README.md as a hub reads it, from its training and any evaluation."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from huggingface_hub import EvalResult, ModelCardData
from pydantic import Field
from safetensors import safe_open

from gaixie.training.cards.facts import Training, of_run, write_training
from gaixie.training.modeling.vocabulary import FILES, SETTINGS_FILE
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics.encoder import model_signature
from gaixie.udfs.reports import license_head, render
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.settings import Options

TEMPLATE = Path(__file__).with_name("card.md.j2")
CARD = "README.md"
BUFFERS = {"final_logits_bias"}
"""Tensors in BART's files that are not weights."""
EXAMPLES = 5
"""Examples with the highest scores, and as many with the lowest."""
TITLE = "Gaixie, a paraphraser of Chinese sentences"
MODEL = ("config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json")
TOKENIZER = (
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.json"),
    *("vocab.json", "vocab.txt", "merges.txt", "*.model", *FILES.values()),
)
"""Files to upload, of the model and of the tokenizer."""
NAMES_OF_FOLDERS = ("_name_or_path", "name_or_path")
"""Keys under which transformers may store where a model or tokenizer came from."""

ORIGIN_NOTES = {
    "parallel": "translations of one foreign sentence, often by machines, stiff and with errors",
    "back_translation": "sentences that machines translated into another language and back",
    "llm": "paraphrases by language models",
    "human": "paraphrases by people",
}
"""What a model learns from the pairs of each origin."""


@dataclass(frozen=True)
class Figures:
    """An evaluation's figures for one model."""

    result: dict[str, Any]
    """The content of evaluation.json."""
    own: dict[str, Any]
    """The model's entry among the systems."""
    highest: list[dict[str, Any]]
    """Rows of scores.parquet, best first; in lowest, worst first."""
    lowest: list[dict[str, Any]]

    @property
    def others(self) -> list[dict[str, Any]]:
        """Returns the other systems that are not models; names of models may be local paths."""
        systems = self.result["systems"]
        return [s for s in systems if not s["made_by"].startswith(("model ", "file "))]

    def worse(self, other: dict[str, Any]) -> list[tuple[str, float, float, int]]:
        """Returns (measure, mean, the other's mean, decimals) for each mean that is worse than the
        other's."""
        found = []
        for measure in self.result["measures"]:
            ours, theirs = (s["measures"][measure["name"]]["mean"] for s in (self.own, other))
            sign = {"↑": 1, "↓": -1}.get(measure["better"], 0)
            if None not in (ours, theirs) and sign * ours < sign * theirs:
                found.append((measure["title"], ours, theirs, measure["digits"]))
        return found


def read_figures(evaluation: Path, model: Path) -> Figures:
    """Reads the figures from a folder of training/evaluate.py. Raises OSError or ValueError if it
    has not evaluated this model."""
    path = evaluation / "evaluation.json"
    try:
        result = storage.read_json(str(path))
        systems = {system["name"]: system for system in result["systems"]}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path}: not an evaluation by training/evaluate.py") from None
    digest = model_signature(str(model)).rpartition("@")[2]
    own = [s for s in systems.values() if re.match(rf"model \S+@{digest}\b", s["made_by"])]
    if not own:
        raise ValueError(f"{path}: no system is this model, {digest}; it has {', '.join(systems)}")
    table = pq.read_table(evaluation / "scores.parquet")
    table = table.filter(pc.equal(table["system"], own[0]["name"]))
    table = table.filter(pc.is_valid(table["spscore"]))
    rows = [*{row["source"]: row for row in table.to_pylist()}.values()]
    rows.sort(key=lambda row: (-row["spscore"], row["source"]))
    count = min(EXAMPLES, len(rows) // 2)
    return Figures(result, own[0], rows[:count], rows[::-1][:count])


def weights_of(model: Path) -> int:
    """Counts the weights in a model's files; tied weights count once, buffers do not."""
    total = 0
    for path in model.glob("*.safetensors"):  # with the model itself, ZeRO-3 would need all ranks
        with safe_open(path, "numpy") as file:
            names = {*file.keys()} - BUFFERS
            total += sum(math.prod(file.get_slice(name).get_shape()) for name in names)
    return total


class About(Options):
    """What a user states about a model; names are those on the hub."""

    title: str = TITLE
    """Title of the card."""
    license: str | None = None
    """Licence of the model; without it the card states none."""
    base_model: str | None = None
    """Name of the base model on the hub; without it, the name that the training recorded."""
    dataset: list[str] = Field(default=[], title="NAME")
    """Name on the hub of the data that it was trained on; may be repeated."""


def card(
    model: Path, training: Training, about: About | None = None, figures: Figures | None = None
) -> str:
    """Returns README.md of a model's folder: a YAML head, then Markdown."""
    about = about or About()
    base_model = about.base_model or training.base_model
    pairs = training.data.pairs if training.data else {}
    origins = {origin for counts in pairs.values() for origin in counts}
    licence: dict[str, Any] = {**license_head(about.license)} if about.license else {}
    head = ModelCardData(
        **licence,
        language=["zh"],
        library_name="transformers",
        tags=["paraphrase", "chinese", "gaixie", "spscore-zh"],
        base_model=base_model,
        datasets=about.dataset or None,
        model_name=about.title if figures else None,
        **_results(figures) if figures else {},
    )
    return render(
        TEMPLATE,
        head=head.to_yaml() + "\n",
        about=about,
        base_model=base_model,
        training=training,
        trainings=[*_trainings(training)],
        pairs=pairs,
        origins=[origin for origin in ORIGINS if origin in origins],
        notes=ORIGIN_NOTES,
        settings=training.settings,
        figures=figures,
        weights=weights_of(model),
        config=json.loads((model / "config.json").read_text("utf-8")),
        aligned=(model / SETTINGS_FILE).is_file(),
        degrees=bool(training.settings.get("data", {}).get("degrees")),
    )


def _results(figures: Figures) -> dict[str, Any]:
    """Returns the figures in the hub's form."""
    pairs = Path(figures.result["pairs"])
    measures = figures.result["measures"]
    means = {one["name"]: figures.own["measures"][one["name"]]["mean"] for one in measures}
    results = [
        EvalResult(
            *("text-generation", pairs.stem, pairs.name, one["name"]),
            round(means[one["name"]], 4),
            task_name="paraphrasing",
            metric_name=one["title"],
        )
        for one in measures
        if means[one["name"]] is not None
    ]
    return {"metrics": [*means], "eval_results": results}


def write_card(folder: Path, training: Training, text: str) -> None:
    """Writes training.json and the card into the model's folder."""
    write_training(folder, training)
    (folder / CARD).write_text(text, "utf-8")


def write_plain_card(model: Path, output: Path) -> None:
    """Writes training.json and a card without figures into a model's folder, from the OUTPUT of its
    training.

    A faulty card must not cost a training: errors are printed, not raised.
    """
    try:
        training = of_run(output)
        write_card(model, training, card(model, training))
    except (OSError, ValueError, KeyError) as error:
        say(f"card: not written: {error}")


def _trainings(training: Training | None) -> Iterator[Training]:
    """Yields the training, then the one that produced its starting model, and so on."""
    while training:
        yield training
        training = training.start


# The folder to upload


def copy_model(model: Path, folder: Path) -> None:
    """Copies weights, configuration and tokenizer, without names of local folders.

    Raises ValueError if MODEL has no weights or no tokenizer.
    """
    weights, tokenizer = (
        {path.name: path for name in names for path in model.glob(name)}
        for names in (MODEL, TOKENIZER)
    )
    if not any(name.endswith(".safetensors") for name in weights):
        raise ValueError(f"{model}: has no weights (*.safetensors)")
    if "config.json" not in weights or not tokenizer:
        raise ValueError(f"{model}: has no config.json or no tokenizer")
    for name, path in (weights | tokenizer).items():
        if name.endswith("config.json"):
            values = json.loads(path.read_text("utf-8"))
            kept = {key: value for key, value in values.items() if key not in NAMES_OF_FOLDERS}
            text = json.dumps(kept, ensure_ascii=False, indent=2) + "\n"
            (folder / name).write_text(text, "utf-8")
        else:
            shutil.copyfile(path, folder / name)  # not its mode: it may be private


def check_private(folder: Path, *places: Path) -> None:
    """Raises ValueError if a text file names one of these places, or the home folder."""
    known = {str(path) for path in (Path.home(), *places) if len(path.parts) > 1}
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".md", ".txt"):
            text = path.read_text("utf-8")
            for name in known:
                if f"{name}/" in text or f'{name}"' in text:
                    raise ValueError(f"{path.name}: names {name}, a path on this machine only")
