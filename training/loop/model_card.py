"""Writes the card of a trained model: README.md as a hub reads it, and training.json.

The card and training.json name no paths: data by its run or release and the SHA-256 of its
manifest.
"""

import json
import re
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData

from gaixie.training.loop.callbacks import read_lines
from gaixie.training.loop.pairs import Corpus
from gaixie.training.settings import Settings
from gaixie.udfs.command_line import say
from gaixie.udfs.networks import model_signature
from gaixie.udfs.reports import license_head
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.settings import Options

TEMPLATE, CARD, FACTS = Path(__file__).with_name("model_card.md.j2"), "README.md", "training.json"
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
PATHS: Any = {
    **dict.fromkeys(("output", "mirror", "tokenizer"), True),
    **{"data": {"uri"}, "model": {"pretrained"}},
}


class About(Options):
    """A model, and what a user states about it."""

    model: Path
    """Folder of the model and its tokenizer."""
    evaluation: Path | None = None
    """Output of training/evaluate.py for it."""
    license: str | None = None
    """Licence of the model; without it the card states none."""


def write_plain_card(model: Path, settings: Settings) -> None:
    """Writes training.json and a card without figures into the folder of a model whose training
    has ended.

    A faulty card must not cost a training: errors are printed, not raised.
    """
    try:
        text = json.dumps(facts_of(settings), ensure_ascii=False, indent=1)
        (model / FACTS).write_text(text + "\n", "utf-8")
        write_card(About(model=model))
    except (OSError, ValueError, KeyError) as error:
        say(f"card: not written: {error}")


def facts_of(settings: Settings) -> dict[str, Any]:
    """Returns the facts of a finished training, for training.json."""
    stages, last = [], {}
    history = read_lines(Path(settings.output, "history.jsonl"))
    for number, group in groupby(history, lambda line: line["stage"]):
        *_, last = lines = [*group]
        kept = [line for line in lines if line["evaluation"] == last["best_evaluation"]] or [last]
        stages.append(
            {
                "number": number,
                "data": settings.curriculum[number - 1],
                "steps": last["step"],
                "reason": last["reason"],
                "kept": {name: kept[0][name] for name in ("accuracy", "score", "step")},
            }
        )
    corpus, pretrained = Corpus(settings.data), str(settings.model.pretrained)
    return {
        "gaixie": version("gaixie"),
        "base_model": pretrained if HUB_NAME.fullmatch(pretrained) else None,
        "data": {
            "name": corpus.name,
            "manifest_sha256": corpus.digest,
            "created": corpus.manifest.created,
            "signature": corpus.manifest.signature,
            "license": getattr(corpus.manifest, "license", None),
        },
        "stages": stages,
        "signature": last["signature"],
        "samples": last["samples"],
        "settings": settings.model_dump(mode="json", exclude=PATHS),
    }


def write_card(about: About) -> None:
    """Writes MODEL/README.md. Raises OSError or ValueError if it has no facts, or if the
    evaluation is not of this model."""
    if not (path := about.model / FACTS).is_file():
        raise FileNotFoundError(f"{about.model}: not of training/curriculum.py: no {FACTS}")
    facts = json.loads(path.read_text("utf-8"))
    result, figures = None, None
    if about.evaluation:
        result, figures = _figures(about.evaluation, about.model)
    data = ModelCardData(
        language=["zh"],
        library_name="transformers",
        tags=["paraphrase", "chinese", "gaixie", "spscore-zh"],
        base_model=facts["base_model"],
        **(license_head(about.license) if about.license else {}),
    )
    card = ModelCard.from_template(
        data, str(TEMPLATE), license=about.license, facts=facts, result=result, figures=figures
    )
    card.save(about.model / CARD)


def _figures(evaluation: Path, model: Path) -> tuple[dict[str, Any], list[tuple[Any, Any]]]:
    """Returns an evaluation, and (measure, its figures of this model) of each with rows."""
    result = storage.read_json(str(evaluation / "evaluation.json"))
    digest = model_signature(str(model)).rpartition("@")[2]
    own = [s for s in result["systems"] if re.match(rf"model \S+@{digest}\b", s["made_by"])]
    if not own:
        raise ValueError(f"{evaluation}: no system is this model, {digest}")
    measured = [(one, own[0]["measures"][one["name"]]) for one in result["measures"]]
    return result, [(one, found) for one, found in measured if found["rows"]]
