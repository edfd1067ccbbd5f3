"""Scores data sets with every metric; SPScore-zh without what it was fitted on.

A metric that weighs two parts, ParaScore by ω and iBLEU by α, takes the weight that agrees best
with human scores of a share of the sources (Shen et al. 2022, *On the Evaluation Metrics for
Paraphrase Generation*, section 5.1); figures are reported on the rest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import stats

from gaixie.research.comparison.datasets import Config, DataSet
from gaixie.research.fitting import data as fit_data
from gaixie.research.fitting.recipe import Material, fit, read_material, rows_to_fit, weighted
from gaixie.research.ratings.tables import source_share
from gaixie.udfs.command_line import in_words, say
from gaixie.udfs.metrics import Free, Metric, Pairs, load_metric
from gaixie.udfs.metrics.bleu import IBLEU
from gaixie.udfs.metrics.metric import free
from gaixie.udfs.metrics.parascore import ParaScore
from gaixie.udfs.metrics.spscore import SPScoreZh
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.settings import load_settings
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

FOLDS = 5
CROSSED = ("paper", "core")
"""Tiers that are fitted again without the sentences they score."""
WEIGHTS: dict[type[Metric], tuple[str, tuple[float, ...]]] = {
    ParaScore: ("omega", (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)),
    IBLEU: ("alpha", tuple(tenth / 10 for tenth in range(11))),
}
"""The setting that weighs the parts of a metric, and the values tried, ascending."""


@dataclass
class Scores:
    """The scores of one data set by metric, and why a metric has none.

    A metric's name is that of ``Metric``. If an earlier metric has the same name, it is the whole
    text of the settings, such as ``parascore:omega=0``.
    """

    table: pd.DataFrame
    """The table that read_data_set returns."""
    reported: np.ndarray
    """Rows that figures are reported on, bool: all except those that chose the weights."""
    metrics: dict[str, Metric] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    scores: dict[str, np.ndarray] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def score(data_set: DataSet, table: pd.DataFrame, config: Config, data: Path) -> Scores:
    """Scores with every metric of the set's language; leaves out one that cannot score it."""
    reported = source_share(table["source"], "tune") >= config.tune
    scored, pairs = Scores(table, reported), pairs_of(table)
    for spec in config.metrics.get(data_set.language, []):
        metric = load_metric(spec, model=config.encoder, vectors=config.word_vectors)
        if metric.needs_reference and not pairs.references:
            continue
        name = spec if metric.name in scored.scores else metric.name
        started = time.monotonic()
        try:
            if f"{weight_of(metric)}=" not in spec:
                metric = tuned(metric, *_apart(pairs, scored))
            if is_cross_fitted(data_set, metric) and isinstance(metric, SPScoreZh):
                scores = _cross_fitted(table, metric, data)
            else:
                scores = metric.sentence_scores(pairs)
        except (ValueError, OSError, ImportError) as error:
            scored.left_out[name] = in_words(error)
            say(f"{data_set.name}, {name}: left out: {in_words(error)}")
            continue
        scored.metrics[name], scored.scores[name] = metric, scores
        scored.signatures[name] = metric.signature()
        settings = f" ({spec.partition(':')[2].replace(':', ', ')})" if name == spec else ""
        scored.titles[name] = metric.title + settings.replace(" ()", "")
        say(f"{data_set.name}, {name}: {time.monotonic() - started:.1f} s")
    return scored


def _apart(pairs: Pairs, scored: Scores) -> tuple[Pairs, np.ndarray]:
    """Returns the pairs that no figure is reported on, and their human scores."""
    rows, human = pa.array(~scored.reported), scored.table["human"].to_numpy()
    references = tuple(column.filter(rows) for column in pairs.references)
    apart = Pairs(pairs.source.filter(rows), pairs.paraphrase.filter(rows), references)
    return apart, human[~scored.reported]


def weight_of(metric: Metric) -> str | None:
    """Returns the name of the setting to tune: ``omega``, ``alpha``, or None."""
    kind = type(metric.metric if isinstance(metric, Free) else metric)
    return WEIGHTS[kind][0] if kind in WEIGHTS else None


def tuned(metric: Metric, pairs: Pairs, human: Sequence[float] | np.ndarray) -> Metric:
    """Returns the metric, or its reference-free form, with the weight that agrees best with people.

    human: a score for each pair; pairs with NaN there, or without a metric score, are ignored. The
    smaller weight wins a tie. A metric without a weight, or without pairs, stays as it is. Raises
    ValueError if no correlation can be computed.
    """
    if isinstance(metric, Free):
        return Free(tuned(metric.metric, free(pairs), human))
    name = weight_of(metric)
    if name is None or not len(pairs):
        return metric
    of: Any = metric
    kept, change = of.parts(pairs)
    ratings = np.asarray(human, np.float64)
    there = np.isfinite(ratings + kept + change)
    found = []
    for weight in WEIGHTS[type(metric)][1]:
        scores = (kept + weight * change)[there]
        if len(scores) > 1 and np.ptp(scores) > 0 and np.ptp(ratings[there]) > 0:
            agreement = stats.spearmanr(scores, ratings[there]).statistic
            found.append((float(agreement), -weight))
    if not found:
        raise ValueError(f"{name} cannot be tuned: all scores are the same")
    return replace(of, **{name: -max(found)[1]})


@cache
def _fitted_on(data: Path) -> tuple[fit_data.Config, Material]:
    """Returns the config and material that the shipped SPScore-zh was fitted on."""
    config = load_settings(fit_data.Config, fit_data.CONFIG)
    rated = fit_data.read_rated(config.rated, data)
    return config, read_material(config, rated, data, load_segmenter(config.segmenter))


def _cross_fitted(table: pd.DataFrame, metric: SPScoreZh, data: Path) -> np.ndarray:
    """Scores each row with a model that saw no group containing either of its sentences."""
    texts = table[["source", "paraphrase"]].map(normalise)
    config, material = _fitted_on(data)
    rated, used = material.rated, rows_to_fit(material, config)
    rows = weighted(material, metric.tier, config)[used]
    features = fit_data.extract(texts["source"], texts["paraphrase"], metric.loaded()[1])
    fold = (source_share(texts["source"], "fold") * FOLDS).astype(int)
    scores = np.empty(len(table))
    for number in range(FOLDS):
        here = fold == number
        hidden = pd.unique(texts[here].to_numpy(object).ravel())
        shared = rated["source"].isin(hidden) | rated["paraphrase"].isin(hidden)
        groups = [*hidden, *rated["group"][shared]]
        model = fit(rows[~np.isin(rows.groups, groups)], metric.tier, config)
        outputs = model.predict(features[here][:, : len(model.columns)])
        scores[here] = outputs[:, OUTPUTS.index(metric.output)]
    return scores


def is_cross_fitted(data_set: DataSet, metric: Metric) -> bool:
    """Says whether the metric was fitted on the set, and so must be refitted without its rows."""
    return data_set.fitted and isinstance(metric, SPScoreZh) and metric.tier in CROSSED


def pairs_of(table: pd.DataFrame) -> Pairs:
    names = [name for name in ("source", "paraphrase", "reference") if name in table]
    return Pairs.of(*[pa.array(table[name], pa.string()) for name in names])
