"""Heads: what predicts an output, and how it is written to files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from gaixie.udfs.spscore.network import NetworkModel
from gaixie.udfs.spscore.trees import TreeModel

_BACKENDS = {model.backend: model for model in (TreeModel, NetworkModel)}


class Model(Protocol):
    """A fitted regression: TreeModel, NetworkModel."""

    backend: str

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Shape (rows,), unbounded. features: float32, shape (rows, columns), NaN for missing."""
        ...

    def files(self) -> dict[str, bytes]: ...


class Head(NamedTuple):
    """What predicts an output."""

    model: Model
    columns: tuple[str, ...]
    """That the model reads, in its order: features of the tier, and outputs of earlier heads."""


def pack(heads: Mapping[str, Head]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """(description of each head, content of each of their files by name)."""
    descriptions: dict[str, Any] = {}
    contents: dict[str, bytes] = {}
    for name, head in heads.items():
        own = head.model.files()
        descriptions[name] = {
            "backend": head.model.backend,
            "columns": list(head.columns),
            "files": sorted(own),
        }
        contents |= {f"{name}/{file}": content for file, content in own.items()}
    return descriptions, contents


def unpack(descriptions: Mapping[str, Any], contents: Mapping[str, bytes]) -> dict[str, Head]:
    """The heads of what pack gives. Raises ValueError for an unknown back-end."""
    heads = {}
    for name, head in descriptions.items():
        if head["backend"] not in _BACKENDS:
            raise ValueError(f"unknown back-end {head['backend']!r}")
        own = {file: contents[f"{name}/{file}"] for file in head["files"]}
        model = _BACKENDS[head["backend"]].from_files(own)
        heads[name] = Head(model, tuple(head["columns"]))
    return heads
