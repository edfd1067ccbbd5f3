"""Loads a folder's model to write paraphrases, and reports its progress and results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import cache
from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from gaixie.training.modeling.exported import ExportedGenerator, is_exported, load_exported
from gaixie.training.modeling.generator import Decoding, Generator
from gaixie.training.modeling.model import load_model
from gaixie.training.modeling.paraphraser import Ranking
from gaixie.udfs.storage.options import add_command


@dataclass(frozen=True, config=ConfigDict(use_attribute_docstrings=True))
class Loading:
    """How a model and the metric that ranks are loaded."""

    tier: str = "core"
    """Tier of SPScore-zh: paper, core, full, or a model's folder."""
    device: str = "auto"
    """Device: auto (the GPU if there is one), cpu, cuda:1."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Type of weights and computation."""


def add_decoding(parser: Any, leave_out: Collection[str] = ()) -> None:
    """Adds the options of decoding, ranking and loading, which scripts share."""
    for settings in (Decoding, Ranking, Loading):
        add_command(parser, settings, leave_out=leave_out)


def load_generator(folder: str, device: str = "auto", precision: str = "float32") -> Generator:
    """Returns the model of a folder, loaded once in a process, with its counts reset.

    device, precision: see Loading; an exported model has its own precision. Raises OSError or
    ValueError, in one line, if the folder does not exist or lacks a sequence-to-sequence model,
    weights or tokenizer, or if the tokenizer has more tokens than the model.
    """
    if is_exported(folder):
        return ExportedGenerator(*load_exported(folder, device))
    return Generator(*_load(folder, device, precision))


@cache
def _load(folder: str, device: str, precision: str) -> tuple[Any, Any]:
    return load_model(folder, device, precision)


def in_words(counts: Counter[str]) -> str:
    """Formats what became of the sentences; the first number is the sum of the next three."""
    written = counts["sentences"] - counts["no text"] - counts["no candidate"]
    return (
        f"{counts['sentences']:,} sentences: {written:,} paraphrased, {counts['no candidate']:,} "
        f"left without a paraphrase, {counts['no text']:,} without text; {counts['paraphrases']:,} "
        f"paraphrases, {counts['copies']:,} copies dropped, {counts['unknown entities']:,} unknown "
        f"entity indices, {counts['cut']:,} sources cut"
    )
