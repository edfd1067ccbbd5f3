"""Fitting SPScore-zh: the two back-ends, and folds by group for cross-validation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore.network import NetworkModel, prepare, transform
from gaixie.udfs.spscore.trees import TreeModel

LIGHTGBM = {
    "num_iterations": 250,
    "learning_rate": 0.05,
    "num_leaves": 7,
    "min_data_in_leaf": 50,
    "lambda_l2": 20.0,
    "bagging_fraction": 0.4,
    "bagging_freq": 1,
    "feature_fraction": 0.5,
    "extra_trees": True,  # thresholds by lot: a smoother function of few sources
    "path_smooth": 0.0,
    "max_bin": 63,  # few thresholds keep the tables of a head in the cache
}
"""LightGBM's own names. Few sources have human scores, so the trees are small and regularised."""

NEURAL = {
    "hidden": (32, 16),
    "rows": 60_000,
    "max_iter": 30,
    "alpha": 1e-3,
    "learning_rate_init": 2e-3,
    "batch_size": 256,
}
"""hidden: units of each layer. rows: how many rows are drawn, in proportion to their weight, for
each network (fewer where there are fewer). The others are scikit-learn's names (MLPRegressor)."""


def fit_model(
    features: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    names: Sequence[str] = FEATURES,
    backend: str = "lightgbm",
    seeds: int = 3,
    parameters: dict[str, Any] | None = None,
    monotone: Mapping[str, int] | None = None,
) -> TreeModel | NetworkModel:
    """The mean of ``seeds`` regressions of target on features, for one head. Deterministic.

    features: float, shape (rows, len(names)), NaN for missing. target: shape (rows,), in [0, 1].
    weight: shape (rows,), not negative (default: 1 each). parameters: what differs from LIGHTGBM
    or NEURAL. monotone: 1 for each column of which a higher value must never lower the prediction,
    -1 where it must never raise it; ``lightgbm`` alone takes it.

    Raises ValueError where shapes disagree, a target lies outside [0, 1], a weight is negative or
    not finite, there are no rows, or back-end, parameter or column is unknown.
    """
    if backend not in ("lightgbm", "neural"):
        raise ValueError(f"backend {backend!r}: expected 'lightgbm' or 'neural'")
    features = np.asarray(features, np.float32)
    target = np.asarray(target, np.float64)
    weight = np.ones(len(target)) if weight is None else np.asarray(weight, np.float64)
    if features.shape != (len(target), len(names)) or weight.shape != target.shape:
        raise ValueError(
            f"features {features.shape}, target {target.shape}, weight {weight.shape}: "
            f"expected (rows, {len(names)}), (rows,), (rows,)"
        )
    if not len(target) or seeds < 1:
        raise ValueError(f"{len(target)} rows and {seeds} seeds: expected at least one of each")
    if not np.all((target >= 0) & (target <= 1)):
        raise ValueError("target: expected values in [0, 1]")
    if not np.all(np.isfinite(weight) & (weight >= 0)) or not weight.any():
        raise ValueError("weight: expected finite values, none negative and not all zero")
    unknown = sorted(set(monotone or ()) - set(names))
    if unknown:
        raise ValueError(f"monotone {unknown[0]!r}: expected a column")
    if monotone and backend != "lightgbm":
        raise ValueError(f"monotone: the back-end {backend!r} has no constraints")
    if backend == "neural":
        return fit_network(features, target, weight, seeds, list(names), parameters or {})
    return fit_trees(features, target, weight, seeds, list(names), parameters or {}, monotone or {})


def fit_trees(
    features: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    seeds: int,
    names: list[str],
    parameters: dict[str, Any],
    monotone: Mapping[str, int],
) -> TreeModel:
    """LightGBM regressions that differ in their seed. ValueError for an unknown parameter."""
    import lightgbm

    settings = {**LIGHTGBM, **_known(parameters, LIGHTGBM, "lightgbm")}
    fixed = {
        "objective": "regression",
        "verbose": -1,
        # One thread: small trees gain nothing from more, and the model does not depend on the host.
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "min_data_in_bin": 5,
    }
    if monotone:
        fixed["monotone_constraints"] = [monotone.get(name, 0) for name in names]
    mean_weight = weight.mean()

    def train(seed: int) -> str:
        options = {**settings, **fixed, "seed": seed}
        data = lightgbm.Dataset(
            features, target, weight=weight / mean_weight, feature_name=names, params=options
        )
        return lightgbm.train(options, data).model_to_string(num_iteration=-1)

    with ThreadPoolExecutor(os.cpu_count()) as threads:  # LightGBM works outside the interpreter
        return TreeModel(list(threads.map(train, range(seeds))))


def fit_network(
    features: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    seeds: int,
    names: list[str],
    parameters: dict[str, Any],
) -> NetworkModel:
    """Networks that differ in their seed and in the rows they see."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    settings = {**NEURAL, **_known(parameters, NEURAL, "neural")}
    hidden, rows = tuple(settings.pop("hidden")), settings.pop("rows")
    logarithm = np.array([name in ("sl", "lr", "pmd") for name in names])
    values = transform(features, logarithm)
    present = np.isfinite(values)
    count = np.maximum(present.sum(axis=0), 1)
    centre = np.where(present, values, 0).sum(axis=0, dtype=np.float64) / count
    variance = (np.where(present, values - centre, 0) ** 2).sum(axis=0) / count
    centre = centre.astype(np.float32)
    scale = np.where(variance > 0, np.sqrt(variance), 1).astype(np.float32)
    inputs = prepare(features, centre, scale, logarithm)
    networks = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        drawn = rng.choice(len(inputs), min(rows, len(inputs)), p=weight / weight.sum())
        settings["batch_size"] = min(settings["batch_size"], len(drawn))
        network = MLPRegressor(hidden_layer_sizes=hidden, random_state=seed, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # max_iter is the budget
            network.fit(inputs[drawn], target[drawn])
        layers = zip(network.coefs_, network.intercepts_, strict=True)
        networks.append([(w.astype(np.float32), b.astype(np.float32)) for w, b in layers])
    return NetworkModel(centre, scale, logarithm, networks)


def _known(parameters: dict[str, Any], defaults: dict[str, Any], backend: str) -> dict[str, Any]:
    for name in parameters:
        if name not in defaults:
            raise ValueError(
                f"parameter {name!r} of {backend}: expected one of {', '.join(defaults)}"
            )
    return parameters


def group_folds(
    groups: Sequence[Any], folds: int, seed: int | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows to fit on, rows held out) for each fold; all rows of a group fall on one side.

    Groups are dealt out in the order of their appearance, or shuffled by a seed. Raises ValueError
    where there are fewer groups than folds.
    """
    numbers: dict[Any, int] = {}
    index = np.array([numbers.setdefault(group, len(numbers)) for group in groups], int)
    if len(numbers) < folds or folds < 2:
        raise ValueError(
            f"{len(numbers)} groups and {folds} folds: expected at least 2 folds, a group each"
        )
    order = np.arange(len(numbers))
    if seed is not None:
        order = np.random.default_rng(seed).permutation(order)
    fold = order[index] % folds
    for number in range(folds):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)
