"""The fit of SPScore-zh: which rows a head learns from, and cross-validation by group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from gaixie.research.fitting import data
from gaixie.research.fitting.data import Config, Rows
from gaixie.research.fitting.fit import fit_model, group_folds
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.spscore import OUTPUTS, TIERS, Head, SPScore
from gaixie.udfs.spscore.penalties import PENALISED, penalty
from gaixie.udfs.text.segmenters import Segmenter


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
    """Rows that are learned from, and never evaluated on."""
    human_line: dict[str, float]
    """How human scores were mapped onto ratings."""
    texts: pd.DataFrame
    """Columns source and paraphrase of the rated pairs, then of the negatives."""

    @property
    def all_rows(self) -> Rows:
        return Rows.join(self.rows, self.negatives, *self.others.values())

    def without(self, kind: str) -> Material:
        others = {name: rows for name, rows in self.others.items() if name != kind}
        return replace(self, others=others)


def read_material(
    config: Config, rated: pd.DataFrame, folder: Path, segmenter: Segmenter
) -> Material:
    """Reads the sets, makes the negatives, and computes the features of all of them."""
    negatives = data.negatives_of(rated, folder, config.negatives, segmenter)
    others: dict[str, Rows] = {}
    line: dict[str, float] = {}
    if config.human:
        others["human"], line = data.read_human(config.human, folder, rated, segmenter)
    if config.known:
        pairs = data.pairs_for_core(config.known, folder)
        others["known"] = data.known_rows(pairs, config.known.weight, rated, segmenter)
    return Material(
        rated,
        data.is_written(rated, config.rated),
        data.rated_rows(rated, config.rated, segmenter),
        data.negative_rows(rated, negatives, config.negatives, segmenter),
        others,
        line,
        pd.concat([rated[data.TEXTS], negatives[data.TEXTS]]),
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
        signs = {-1: config.never_raise, 1: config.never_lower}
        monotone = {
            name: sign
            for sign, named in signs.items()
            for name in named.get(output, ())
            if name in chosen
        }
        model = fit_model(
            rows.features[known][:, places],
            target,
            weight,
            chosen,
            config.seeds,
            config.parameters.get(tier),
            monotone,
        )
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
    groups = material.all_rows.groups
    numbers = material.rows.groups.tolist()
    for _, held_out in group_folds(numbers, folds, seed=0):
        hidden = set(material.rows.groups[held_out].tolist())
        mask = np.array([group in hidden for group in groups.tolist()], bool)
        yield ~mask, mask


def cross_validate(
    material: Material, tier: str, config: Config, columns: Sequence[str] | None = None
) -> np.ndarray:
    """Outputs of Material.all_rows by models that never saw the row's group: shape (rows, 5).

    Rows whose group has no rated pair (some human scores) are fitted on in every fold: NaN.
    """
    rows, used = weighted(material, tier, config), rows_to_fit(material, config)
    outputs = np.full((len(rows), len(OUTPUTS)), np.nan, np.float32)
    for fitted, held_out in folds_of(material, config.folds):
        model = fit(rows[fitted & used], tier, config, columns)
        outputs[held_out] = predict(model, rows[held_out])
    return outputs
