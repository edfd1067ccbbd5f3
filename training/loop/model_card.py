"""Writes the card of a trained model: README.md as a hub reads it, and training.json.

The card and training.json name no paths: data by its run or release and the SHA-256 of its
manifest.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from pydantic import Field

from gaixie.training.loop.callbacks import read_lines
from gaixie.udfs.command_line import say
from gaixie.udfs.networks import model_signature
from gaixie.udfs.reports import license_head
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, ReleaseManifest, read_manifest
from gaixie.udfs.storage.settings import Options

TEMPLATE, CARD, FACTS = Path(__file__).with_name("model_card.md.j2"), "README.md", "training.json"
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
EXAMPLES = 5
"""Examples with the highest scores, and as many with the lowest."""


class About(Options):
    """A model, and what a user states about it; names are those on the hub."""

    model: Path
    """Folder of the model and its tokenizer."""
    evaluation: Path | None = None
    """Output of training/evaluate.py for it."""
    title: str = "Gaixie, a paraphraser of Chinese sentences"
    """Title of the card."""
    license: str | None = None
    """Licence of the model; without it the card states none."""
    base_model: str | None = None
    """Name of the base model on the hub; without it, the name that the training recorded."""
    dataset: list[str] = Field(default=[], title="NAME")
    """Name on the hub of the data that it was trained on; may be repeated."""


def write_plain_card(model: Path, output: Path) -> None:
    """Writes training.json and a card without figures into a model's folder, from the OUTPUT of its
    training.

    A faulty card must not cost a training: errors are printed, not raised.
    """
    try:
        text = json.dumps(facts_of(output), ensure_ascii=False, indent=1)
        (model / FACTS).write_text(text + "\n", "utf-8")
        write_card(About(model=model))
    except (OSError, ValueError, KeyError) as error:
        say(f"card: not written: {error}")


def facts_of(output: Path) -> dict[str, Any]:
    """Returns the facts of a finished training, for training.json."""
    settings = yaml.safe_load((output / "settings.yaml").read_text("utf-8"))["settings"]
    uri, pretrained = settings["data"].pop("uri"), settings["model"].pop("pretrained")
    for name in ("output", "mirror", "tokenizer"):
        del settings[name]
    settings["evaluation"].pop("sources")
    stages = []
    for number, group in groupby(read_lines(output / "history.jsonl"), lambda line: line["stage"]):
        *_, last = lines = [*group]
        kept = [e for e in lines if e["evaluation"] == last["best_evaluation"]] or [last]
        names = ("accuracy", "score", "step")
        stages.append(
            {
                "number": number,
                "data": settings["curriculum"][number - 1],
                "steps": last["step"],
                "seconds": last["seconds"],
                "reason": last["reason"],
                "kept": {name: kept[-1][name] for name in names},
            }
        )
    return {
        "gaixie": version("gaixie"),
        "base_model": pretrained if HUB_NAME.fullmatch(str(pretrained)) else None,
        "data": _data(uri),
        "stages": stages,
        "signature": last["signature"],
        "samples": last["samples"],
        "settings": settings,
    }


def _data(uri: str) -> dict[str, Any]:
    manifest = read_manifest(uri)
    found: dict[str, Any] = {"manifest_sha256": storage.sha256(storage.join(uri, MANIFEST))}
    found |= {"created": manifest.created, "signature": manifest.signature}
    if isinstance(manifest, ReleaseManifest):
        name = f"release {manifest.version} of {manifest.name}"
        return found | {"name": name, "license": manifest.license}
    return found | {"name": f"run {manifest.run_id}", "license": None}


def write_card(about: About) -> None:
    """Writes MODEL/README.md. Raises OSError or ValueError if it has no facts, or if the
    evaluation is not of this model."""
    path = about.model / FACTS
    if not path.is_file():
        raise FileNotFoundError(f"{about.model}: not of training/curriculum.py: no {FACTS}")
    facts = json.loads(path.read_text("utf-8"))
    figures = _figures(about.evaluation, about.model) if about.evaluation else None
    base_model = about.base_model or facts["base_model"]
    head: dict[str, Any] = license_head(about.license) if about.license else {}
    if figures:
        head |= {"model_name": about.title, "eval_results": figures["results"]}
    data = ModelCardData(
        language=["zh"],
        library_name="transformers",
        tags=["paraphrase", "chinese", "gaixie", "spscore-zh"],
        base_model=base_model,
        datasets=about.dataset or None,
        **head,
    )
    values = {"about": about, "facts": facts, "figures": figures, "base_model": base_model}
    card = ModelCard.from_template(data, template_path=str(TEMPLATE), **values)
    card.save(about.model / CARD)


def _figures(evaluation: Path, model: Path) -> dict[str, Any]:
    """Returns an evaluation's figures of this model, and the sources with the highest and lowest
    scores."""
    result = storage.read_json(str(evaluation / "evaluation.json"))
    digest = model_signature(str(model)).rpartition("@")[2]
    own = [s for s in result["systems"] if re.match(rf"model \S+@{digest}\b", s["made_by"])]
    if not own:
        raise ValueError(f"{evaluation}: no system is this model, {digest}")
    table = pq.read_table(evaluation / "scores.parquet")
    table = table.filter(pc.equal(table["system"], own[0]["name"]))
    rows = table.filter(pc.is_valid(table["spscore"])).sort_by("spscore").to_pylist()
    name = Path(result["pairs"]).stem
    measured = [(one, own[0]["measures"][one["name"]]) for one in result["measures"]]
    results = [
        EvalResult("text-generation", name, name, one["name"], round(found["mean"], 4))
        for one, found in measured
        if found["rows"]
    ]
    examples = rows[::-1][:EXAMPLES] + rows[:EXAMPLES]
    return {"result": result, "measured": measured, "results": results, "examples": examples}
