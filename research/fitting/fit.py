"""Fits SPScore-zh: LightGBM regressions, and folds by group for cross-validation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore.trees import TreeModel

LIGHTGBM: dict[str, Any] = {
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

_FIXED: dict[str, Any] = {
    "objective": "regression",
    "verbose": -1,
    # One thread: small trees gain nothing from more, and the model does not depend on the host.
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "min_data_in_bin": 5,
}


def fit_model(
    features: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    names: Sequence[str] = FEATURES,
    seeds: int = 3,
    parameters: Mapping[str, Any] | None = None,
    monotone: Mapping[str, int] | None = None,
) -> TreeModel:
    """The mean of ``seeds`` regressions of target on features, for one head. Deterministic.

    features: float, shape (rows, len(names)), NaN for missing. target: shape (rows,), in [0, 1].
    weight: shape (rows,), not negative (default: 1 each). parameters: what differs from LIGHTGBM.
    monotone: 1 for each column of which a higher value must never lower the prediction, -1 where
    it must never raise it.

    Raises ValueError where a target lies outside [0, 1].
    """
    import lightgbm

    features = np.asarray(features, np.float32)
    target = np.asarray(target, np.float64)
    weight = np.ones(len(target)) if weight is None else np.asarray(weight, np.float64)
    if not np.all((target >= 0) & (target <= 1)):
        raise ValueError("target: expected values in [0, 1]")
    options = {**LIGHTGBM, **(parameters or {}), **_FIXED}
    if monotone:
        options["monotone_constraints"] = [monotone.get(name, 0) for name in names]
    weight = weight / weight.mean()

    def train(seed: int) -> str:
        settings = {**options, "seed": seed}
        data = lightgbm.Dataset(
            features, target, weight=weight, feature_name=list(names), params=settings
        )
        return lightgbm.train(settings, data).model_to_string(num_iteration=-1)

    with ThreadPoolExecutor(os.cpu_count()) as threads:  # LightGBM works outside the interpreter
        return TreeModel(list(threads.map(train, range(seeds))))


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
