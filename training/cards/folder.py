"""The folder that is uploaded: model, tokenizer, card and settings, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from gaixie.training.cards.card import CARD
from gaixie.training.cards.facts import FILE, Training, write_training
from gaixie.training.modeling.vocabulary import FILES

MODEL = ("config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json")
TOKENIZER = (
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.json"),
    *("vocab.json", "vocab.txt", "merges.txt", "*.model", *FILES.values()),
)
NAMES_OF_FOLDERS = ("_name_or_path", "name_or_path")
"""Keys under which transformers may keep where a model or tokenizer came from."""


def copy_model(model: Path, folder: Path) -> None:
    """Copies weights, configuration and tokenizer, without the names of folders.

    Raises ValueError where MODEL has no weights or no tokenizer.
    """
    copied = {
        what: [_copy(path, folder) for name in names for path in sorted(model.glob(name))]
        for what, names in (("model", MODEL), ("tokenizer", TOKENIZER))
    }
    if not any(name.endswith(".safetensors") for name in copied["model"]):
        raise ValueError(f"{model}: has no weights (*.safetensors)")
    if "config.json" not in copied["model"] or not copied["tokenizer"]:
        raise ValueError(f"{model}: has no config.json or no tokenizer")


def _copy(path: Path, folder: Path) -> str:
    target = folder / path.name
    shutil.copyfile(path, target)  # not its mode: weights are written for their owner alone
    if path.name.endswith("config.json"):
        values = json.loads(path.read_text("utf-8"))
        if {*values} & {*NAMES_OF_FOLDERS}:
            kept = {key: value for key, value in values.items() if key not in NAMES_OF_FOLDERS}
            target.write_text(json.dumps(kept, ensure_ascii=False, indent=2) + "\n", "utf-8")
    return path.name


def write_card(folder: Path, training: Training, text: str) -> None:
    """Writes training.json and the card into a folder that has the model."""
    write_training(folder, training)
    (folder / CARD).write_text(text, "utf-8")


def check_private(folder: Path, *places: Path) -> None:
    """Raises ValueError where a file of text names one of these places, or the home folder, by its path."""
    known = {str(path) for path in (Path.home(), *places) if len(path.parts) > 1}
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".md", ".txt"):
            text = path.read_text("utf-8")
            for name in known:
                if f"{name}/" in text or f'{name}"' in text:
                    raise ValueError(f"{path.name}: names {name}, which is of this machine alone")


__all__ = ["CARD", "FILE", "check_private", "copy_model", "write_card"]
