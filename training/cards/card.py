"""The card of a model: README.md as a hub reads it, from its training and, where there is one, its evaluation."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from safetensors import safe_open

from gaixie.training.cards.facts import Training, of_run, write_training
from gaixie.training.modeling.vocabulary import SETTINGS_FILE
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics.encoder import model_signature
from gaixie.udfs.reports import license_head, render
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage import storage

TEMPLATE = Path(__file__).with_name("card.md.j2")
CARD = "README.md"
BUFFERS = {"final_logits_bias"}
"""What the files hold beside weights: of BART."""
EXAMPLES = 5
"""Of the highest scores, and of the lowest."""
TITLE = "Gaixie, a paraphraser of Chinese sentences"

ORIGIN_NOTES = {
    "parallel": "translations of one foreign sentence, often by machines, with their stiffness and their errors",
    "back_translation": "sentences that machines translated there and back",
    "llm": "paraphrases by language models",
    "human": "what people rewrote",
}
"""What a model learns from pairs of an origin."""


@dataclass(frozen=True)
class About:
    """What a user says of a model."""

    title: str = TITLE
    license: str | None = None
    base_model: str | None = None
    """Names of a hub; None: as far as the training knows."""
    datasets: Sequence[str] = ()


@dataclass(frozen=True)
class Figures:
    """What an evaluation says of one model."""

    result: dict[str, Any]
    """As evaluation.json has it."""
    own: dict[str, Any]
    """The model among its systems."""
    highest: list[dict[str, Any]]
    """Rows of scores.parquet, the best first; lowest likewise, the worst first."""
    lowest: list[dict[str, Any]]

    @property
    def others(self) -> list[dict[str, Any]]:
        """The other systems that are no models; models may have names of this machine."""
        systems = self.result["systems"]
        return [s for s in systems if not s["made_by"].startswith(("model ", "file "))]

    def worse(self, other: dict[str, Any]) -> list[tuple[str, float, float, int]]:
        """(measure, mean, the other's mean, decimals) where the model's mean is the worse one."""
        found = []
        for measure in self.result["measures"]:
            ours, theirs = (s["measures"][measure["name"]]["mean"] for s in (self.own, other))
            sign = {"↑": 1, "↓": -1}.get(measure["better"], 0)
            if None not in (ours, theirs) and sign * ours < sign * theirs:
                found.append((measure["title"], ours, theirs, measure["digits"]))
        return found


def read_figures(evaluation: Path, model: Path) -> Figures:
    """Of a folder that training/evaluate.py left. Raises OSError or ValueError where it has not this model."""
    path = evaluation / "evaluation.json"
    try:
        result = storage.read_json(str(path))
        systems = {system["name"]: system for system in result["systems"]}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path}: not what training/evaluate.py leaves") from None
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
    """How many weights the files of a model hold; tied ones count once, buffers do not."""
    total = 0
    for path in model.glob("*.safetensors"):  # not by a model: under ZeRO-3 all ranks would have to
        with safe_open(path, "numpy") as file:
            names = {*file.keys()} - BUFFERS
            total += sum(math.prod(file.get_slice(name).get_shape()) for name in names)
    return total


def card(
    model: Path, training: Training, about: About | None = None, figures: Figures | None = None
) -> str:
    """README.md of a model's folder: a head of YAML, then Markdown."""
    about = about or About()
    config = json.loads((model / "config.json").read_text("utf-8"))
    aligned = (model / SETTINGS_FILE).is_file()
    origins = {origin for counts in _pairs(training).values() for origin in counts}
    return render(
        TEMPLATE,
        head=yaml.safe_dump(_head(about, training, figures), allow_unicode=True, sort_keys=False),
        about=about,
        base_model=about.base_model or training.base_model,
        training=training,
        trainings=[*_trainings(training)],
        pairs=_pairs(training),
        origins=[origin for origin in ORIGINS if origin in origins],
        notes=ORIGIN_NOTES,
        settings=training.settings,
        figures=figures,
        weights=weights_of(model),
        config=config,
        aligned=aligned,
        degrees=bool(training.settings.get("data", {}).get("degrees")),
    )


def write_plain_card(model: Path, output: Path) -> None:
    """training.json and a card without figures, in a model's folder, from the OUTPUT of its training.

    A card is not worth a training: what is wrong is said, and nothing is raised.
    """
    try:
        training = of_run(output)
        write_training(model, training)
        (model / CARD).write_text(card(model, training), "utf-8")
    except (OSError, ValueError, KeyError) as error:
        say(f"card: left out: {error}")


def _trainings(training: Training | None):
    """The training, then the one whose model it began with, and so on."""
    while training:
        yield training
        training = training.start


def _pairs(training: Training) -> dict[int, dict[str, int]]:
    return training.data.pairs if training.data else {}


def _head(about: About, training: Training, figures: Figures | None) -> dict[str, Any]:
    """What a hub reads of a card."""
    base = about.base_model or training.base_model
    head: dict[str, Any] = license_head(about.license) if about.license else {}
    head |= {"language": ["zh"], "library_name": "transformers"}
    head |= {"tags": ["paraphrase", "chinese", "gaixie", "spscore-zh"]}
    head |= {"base_model": base} if base else {}
    head |= {"datasets": [*about.datasets]} if about.datasets else {}
    if figures is None:
        return head
    measures = figures.result["measures"]
    means = [
        {"type": measure["name"], "name": measure["title"], "value": round(mean, 4)}
        for measure in measures
        if (mean := figures.own["measures"][measure["name"]]["mean"]) is not None
    ]
    pairs = Path(figures.result["pairs"])
    result = {
        "task": {"type": "text-generation", "name": "paraphrasing"},
        "dataset": {"type": pairs.stem, "name": pairs.name},
        "metrics": means,
    }
    head["metrics"] = [measure["name"] for measure in measures]
    return head | {"model-index": [{"name": about.title, "results": [result]}]}
