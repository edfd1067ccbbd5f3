"""The back-end ``neural``: small networks, evaluated with numpy from plain weights.

The features are standardised; a missing one becomes its mean, 0, and sets an indicator.
scikit-learn trains the weights (``udfs/spscore/fit.py``) and is not needed to use them.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

_BOUND = 6.0  # standard deviations: what lies farther out than any sentence counts as this far


class NetworkModel:
    """The mean of networks with rectified linear units that differ in their random seed."""

    backend = "neural"

    def __init__(
        self,
        centre: np.ndarray,
        scale: np.ndarray,
        logarithm: np.ndarray,
        networks: list[list[tuple[np.ndarray, np.ndarray]]],
    ):
        """centre, scale: shape (columns,), of the features after ``logarithm``.
        logarithm: bool, shape (columns,): the columns that enter as log(1 + x).
        networks: for each seed its layers, (weights of shape (inputs, outputs), biases).
        """
        self.centre, self.scale, self.logarithm = centre, scale, logarithm
        self.networks = networks

    def predict(self, features: np.ndarray) -> np.ndarray:
        """float32, shape (rows,), unbounded. features: shape (rows, columns), NaN for missing."""
        inputs = prepare(features, self.centre, self.scale, self.logarithm)
        total = np.zeros(len(inputs), np.float32)
        for layers in self.networks:
            values = inputs
            for weights, biases in layers[:-1]:
                values = np.maximum(values @ weights + biases, 0)
            weights, biases = layers[-1]
            total += (values @ weights + biases)[:, 0]
        return total / len(self.networks)

    def files(self) -> dict[str, bytes]:
        """What ``from_files`` reads, by file name."""
        arrays: dict[str, Any] = {
            "centre": self.centre,
            "scale": self.scale,
            "logarithm": self.logarithm,
        }
        for seed, layers in enumerate(self.networks):
            for depth, (weights, biases) in enumerate(layers):
                arrays[f"weights_{seed}_{depth}"] = weights
                arrays[f"biases_{seed}_{depth}"] = biases
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return {"network.npz": buffer.getvalue()}

    @classmethod
    def from_files(cls, files: dict[str, bytes]) -> NetworkModel:
        """The model of what files gave."""
        (content,) = files.values()
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            networks: list[list[tuple[np.ndarray, np.ndarray]]] = []
            while f"weights_{len(networks)}_0" in arrays:
                seed = len(networks)
                layers: list[tuple[np.ndarray, np.ndarray]] = []
                while f"weights_{seed}_{len(layers)}" in arrays:
                    key = f"{seed}_{len(layers)}"
                    layers.append((arrays[f"weights_{key}"], arrays[f"biases_{key}"]))
                networks.append(layers)
            return cls(arrays["centre"], arrays["scale"], arrays["logarithm"], networks)


def transform(features: np.ndarray, logarithm: np.ndarray) -> np.ndarray:
    """float32 copy with the columns of ``logarithm`` as log(1 + x), x bounded to -1 + 1e-6."""
    values = np.array(features, np.float32)
    with np.errstate(invalid="ignore"):
        values[:, logarithm] = np.log1p(np.maximum(values[:, logarithm], np.float32(1e-6 - 1)))
    return values


def prepare(
    features: np.ndarray, centre: np.ndarray, scale: np.ndarray, logarithm: np.ndarray
) -> np.ndarray:
    """Inputs of a network: float32, shape (rows, 2 × columns), values, then indicators."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.clip((transform(features, logarithm) - centre) / scale, -_BOUND, _BOUND)
    missing = np.isnan(values)
    values[missing] = 0
    return np.concatenate([values, missing.astype(np.float32)], axis=1)
