"""The fit of SPScore-zh by LightGBM: which rows a head learns from; cross-validation by group."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gaixie.research.fitting import data
from gaixie.research.fitting.data import Config, Rows
from gaixie.udfs.features import FEATURES
from gaixie.udfs.meaning.core_features import Resources
from gaixie.udfs.spscore import OUTPUTS, TIERS, Head, SPScore
from gaixie.udfs.spscore.model import PENALISED, penalty
from gaixie.udfs.spscore.trees import TreeModel
from gaixie.udfs.text.segmenters import Segmenter

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
    constraints = [(monotone or {}).get(name, 0) for name in names]
    if any(constraints):
        options["monotone_constraints"] = constraints
    weight = weight / weight.mean()

    def train(seed: int) -> str:
        settings = {**options, "seed": seed}
        data = lightgbm.Dataset(
            features, target, weight=weight, feature_name=list(names), params=settings
        )
        return lightgbm.train(settings, data).model_to_string(num_iteration=-1)

    with ThreadPoolExecutor(os.cpu_count()) as threads:  # LightGBM works outside the interpreter
        return TreeModel(list(threads.map(train, range(seeds))))


@dataclass
class Material:
    """Everything that a fit reads."""

    rated: pd.DataFrame
    """As data.read_rated gives it."""
    written: np.ndarray
    """Which of the rated pairs were written to vary: bool, shape (rows,)."""
    rows: Rows
    """Of the rated pairs."""
    negatives: Rows
    others: dict[str, Rows]
    """Rows that are learned from; of these, only people's scores are evaluated on."""
    human_lines: dict[str, dict[str, float]]
    """How the human scores of each set were mapped onto ratings."""

    @property
    def all_rows(self) -> Rows:
        return Rows.join(self.rows, self.negatives, *self.others.values())

    def parts(self, outputs: np.ndarray) -> dict[str, np.ndarray]:
        """Cuts outputs of all_rows into those of ``rated``, ``negatives`` and each other kind."""
        sizes = {"rated": self.rows, "negatives": self.negatives, **self.others}
        ends = np.cumsum([len(rows) for rows in sizes.values()])
        return dict(zip(sizes, np.split(outputs, ends[:-1]), strict=True))


def read_material(
    config: Config, rated: pd.DataFrame, folder: Path, segmenter: Segmenter
) -> Material:
    """Reads the sets, makes the negatives, and computes the features of all of them."""
    negatives = data.negatives_of(rated, folder, config.negatives, segmenter)
    others: dict[str, Rows] = {}
    lines: dict[str, dict[str, float]] = {}
    for human in config.human:
        others[human.name], lines[human.name] = data.read_human(human, folder, rated, segmenter)
    if config.known:
        pairs = data.pairs_for_core(folder)
        others["known"] = data.known_rows(pairs, config.known, rated, segmenter)
    return Material(
        rated,
        data.is_written(rated, config.rated),
        data.rated_rows(rated, config.rated, segmenter),
        data.negative_rows(rated, negatives, config.negatives, segmenter),
        others,
        lines,
    )


def fit(
    rows: Rows, tier: str, config: Config, columns: Sequence[str] | None = None, **describe
) -> SPScore:
    """A model of a tier: a head for each output, fitted on the rows that have its target.

    columns: the features that the heads may read; by default all of the tier. describe: segmenter
    and summary of SPScore.
    """
    names = TIERS[tier]
    chosen = tuple(names if columns is None else columns)
    places = [names.index(name) for name in chosen]
    penalties = {name: f for name, f in config.penalties.items() if name in chosen}
    factor = penalty(rows.features, names, penalties)
    heads = {}
    for column, output in enumerate(OUTPUTS):
        known = ~np.isnan(rows.targets[:, column])
        target, weight = rows.targets[known, column], rows.weight[known]
        if output in PENALISED:  # the head learns what the penalties leave to it
            target = np.minimum(target / factor[known], 1)
            weight = weight * factor[known] ** 2
        monotone = dict.fromkeys(config.never_raise.get(output, ()), -1)
        monotone |= dict.fromkeys(config.never_lower.get(output, ()), 1)
        how = config.seeds, config.parameters.get(tier), monotone
        model = fit_model(rows.features[known][:, places], target, weight, chosen, *how)
        heads[output] = Head(model, chosen)
    resources = Resources.load().digests() if tier != "paper" else {}
    return SPScore(tier, heads, resources=resources, penalties=penalties, **describe)


def rows_to_fit(material: Material, config: Config) -> np.ndarray:
    """Which of Material.all_rows a model learns from, bool: a share of the negatives, all else."""
    rng = np.random.default_rng(0)
    drawn = rng.random(len(material.negatives)) < config.negatives.share
    used = np.ones(len(material.all_rows), bool)
    used[len(material.rows) : len(material.rows) + len(drawn)] = drawn
    return used


def weighted(material: Material, tier: str, config: Config) -> Rows:
    """Material.all_rows, where negatives that are fitted have their weight in this tier."""
    rows = material.all_rows
    negative = rows.pairs >= 0
    drawn = rows_to_fit(material, config) & negative
    total = config.negatives.weight.get(tier, 0.3) * len(material.rows)
    weight = np.where(negative, total / max(drawn.sum(), 1), rows.weight)
    return replace(rows, weight=weight)


def predict(model: SPScore, rows: Rows) -> np.ndarray:
    """The outputs: float32, shape (rows, 5)."""
    return model.predict(rows.features[:, : len(model.columns)])


def folds_of(material: Material, folds: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(fitted, held out) for each fold: bool over Material.all_rows, split by group."""
    groups = material.all_rows.groups.tolist()
    distinct = dict.fromkeys(groups)
    order = np.random.default_rng(0).permutation(len(distinct))
    fold_of = dict(zip(distinct, order % folds, strict=True))
    fold = np.array([fold_of[group] for group in groups])
    for number in range(folds):
        yield fold != number, fold == number


def cross_validate(
    material: Material, tier: str, config: Config, columns: Sequence[str] | None = None
) -> np.ndarray:
    """Outputs of Material.all_rows by models that never saw the row's group: shape (rows, 5)."""
    rows, used = weighted(material, tier, config), rows_to_fit(material, config)
    outputs = np.full((len(rows), len(OUTPUTS)), np.nan, np.float32)
    for fitted, held_out in folds_of(material, config.folds):
        outputs[held_out] = predict(fit(rows[fitted & used], tier, config, columns), rows[held_out])
    return outputs
