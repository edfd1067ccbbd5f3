"""Measures how well each metric agrees with people, with intervals, and attributes it.

Correlations are those of sentence scores with human scores, on a sample and on resamples of its
sources (gaixie.udfs.metrics.bootstrap; the paired test is that of Koehn 2004, *Statistical
Significance Tests for Machine Translation Evaluation*).

The attribution of Shen et al. 2022 (ParaScore), section 4, separates meaning from divergence. For
two candidates j and k of one source, the difference of a metric's scores is correlated with the
difference of human scores. Divergence is the normalised edit distance (NED) to the source;
similarity is the cosine of sentence vectors (the paper's footnote 4). The subset S_sim has pairs
(j, k) with similar divergence and different meaning; S_div has pairs with similar meaning and
different divergence. d(j, k) is the smaller of their distances to the source: S_div1 has the pairs
of S_div with d of at most SPLIT, S_div2 the rest. Without the metric ``similarity`` a comparison
has no subsets.

Decided here: each pair of candidates counts in both orders, (j, k) and (k, j), because neither is
first. Pearson's r of the differences a and b is then Σ ab / √(Σ a² · Σ b²), and a metric that
prefers the wrong candidate is penalised. Similarity is stretched so that its first percentile is 0
and its last 1: with an encoder whose cosines all lie between 0.8 and 0.95, no two candidates would
be 0.15 apart.

Every set is scored with every metric, by SPScore-zh without what it was fitted on. A metric that
weighs two parts, ParaScore by ω and iBLEU by α, takes the weight that agrees best with human scores
of a share of the sources (section 5.1 there); figures are reported on the rest.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import stats
from sklearn.metrics import roc_auc_score

from gaixie.research.comparison.datasets import Config, DataSet
from gaixie.research.fitting import data as fit_data
from gaixie.research.fitting.recipe import Material, fit, read_material, rows_to_fit, weighted
from gaixie.research.pair_encoder.sets import JUDGED
from gaixie.research.ratings.resampling import drawn_rows
from gaixie.research.ratings.tables import source_share
from gaixie.udfs.command_line import in_words, say
from gaixie.udfs.metrics import Free, Metric, Pairs, load_metric
from gaixie.udfs.metrics.bleu import IBLEU
from gaixie.udfs.metrics.bootstrap import estimate_of
from gaixie.udfs.metrics.edit_distance import EditDistance
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


class Scored(NamedTuple):
    """A metric and its score of each row, NaN where it has none."""

    metric: Metric
    title: str
    scores: np.ndarray
    learned: bool
    """Whether the metric's encoder learned from (part of) the set."""


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
    metrics: dict[str, Scored] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def score(data_set: DataSet, table: pd.DataFrame, config: Config, data: Path) -> Scores:
    """Scores with every metric of the set's language; leaves out one that cannot score it."""
    reported = source_share(table["source"], "tune") >= config.tune
    scored, pairs, apart = Scores(table, reported), pairs_of(table), table[~reported]
    for spec in config.metrics.get(data_set.language, []):
        metric = load_metric(spec, model=config.encoder, vectors=config.word_vectors)
        name = spec if metric.name in scored.metrics else metric.name
        if metric.needs_reference and not pairs.references:
            scored.left_out[name] = "the set has no reference"
            continue
        started = time.monotonic()
        crossed = False
        try:
            weight = weight_of(metric)
            if weight and f"{weight}=" not in spec:
                metric = tuned(metric, pairs_of(apart), apart["human"].to_numpy())
            if isinstance(metric, SPScoreZh) and data_set.fitted and metric.tier in CROSSED:
                scores, crossed = _cross_fitted(table, metric, data), True
            else:
                scores = metric.sentence_scores(pairs)
        except (ValueError, OSError, ImportError) as error:
            scored.left_out[name] = in_words(error)
            say(f"{data_set.name}, {name}: left out: {in_words(error)}")
            continue
        settings = f" ({', '.join(spec.split(':')[1:])})" if name == spec and ":" in spec else ""
        learned = has_learned(metric, data_set)
        title = metric.title + settings + " ×" * crossed + " †" * learned
        scored.metrics[name] = Scored(metric, title, scores, learned)
        say(f"{data_set.name}, {name}: {time.monotonic() - started:.1f} s")
    return scored


def has_learned(metric: Metric, data_set: DataSet) -> bool:
    """Tells whether the metric is SPScore-zh with an encoder that learned from the set."""
    seen = data_set.fitted or data_set.path in JUDGED
    return isinstance(metric, SPScoreZh) and seen and metric.loaded()[0].tier == "full"


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
    there, weights = np.isfinite(ratings + kept + change), WEIGHTS[type(metric)][1]
    scores = [(kept + weight * change)[there] for weight in weights if there.any()]
    found = [STATISTICS["spearman"](own, ratings[there]) for own in scores]
    if np.isnan(found).all():
        raise ValueError(f"{name} cannot be tuned: all scores are the same")
    return replace(of, **{name: weights[np.nanargmax(found)]})


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
        model.calibration = metric.loaded()[0].calibration
        outputs = model.predict(features[here][:, : len(model.columns)])
        scores[here] = outputs[:, OUTPUTS.index(metric.output)]
    return scores


def pairs_of(table: pd.DataFrame) -> Pairs:
    names = [name for name in ("source", "paraphrase", "reference") if name in table]
    return Pairs.of(*[pa.array(table[name], pa.string()) for name in names])


# Agreement and attribution

SIMILARITY = "similarity"
"""Name of the metric that measures how near in meaning a candidate is to its source."""
S_SIM = {"divergence": 0.05, "similarity": 0.15}
"""Candidates of one source: greatest difference in divergence, least difference in meaning."""
S_DIV = {"similarity": 0.05, "divergence": 0.10}
"""Candidates of one source: greatest difference in meaning, least difference in divergence."""
SPLIT = 0.35
"""S_div1 has the pairs whose nearer candidate is within this distance of the source."""


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Returns Pearson's r; NaN if a side is constant."""
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) and np.ptp(y) else np.nan


STATISTICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "pearson": pearson,
    "spearman": lambda x, y: pearson(stats.rankdata(x), stats.rankdata(y)),
    "auc": lambda x, y: roc_auc_score(y, x),  # for human scores that are labels, 0 or 1
}


def draw(groups: np.ndarray, samples: int = 1_000) -> list[np.ndarray]:
    """Returns all rows, then the rows of each resample of whole groups (a row's source)."""
    return [np.arange(len(groups)), *drawn_rows(groups, samples)]


def statistic_of(
    name: str, scores: np.ndarray, human: np.ndarray, drawn: Sequence[np.ndarray]
) -> np.ndarray:
    """Returns one of STATISTICS on the sample and its resamples, shape (1 + samples,).

    An undefined value is NaN. scores: NaN where the metric has none; such rows are left out. human:
    shape (rows,), without NaN. drawn: from ``draw``.
    """
    there, of = ~np.isnan(scores), STATISTICS[name]
    kept = [rows[there[rows]] for rows in drawn]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sklearn warns if all labels are the same
        return np.array(
            [of(scores[rows], human[rows]) if len(rows) > 2 else np.nan for rows in kept]
        )


def p_value(differences: np.ndarray) -> float:
    """Returns the two-sided p that a difference is 0, from its resampled values; NaN without
    any."""
    differences = differences[np.isfinite(differences)]
    if not len(differences):
        return float("nan")
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (beyond + 1) / (len(differences) + 1)))


def compare(data_set: DataSet, scored: Scores, config: Config) -> list[dict[str, Any]]:
    """Returns the results for a set and, if it has one, for its extension."""
    added = scored.table["added"].to_numpy()
    parts = {data_set.name: (scored.reported & ~added, data_set.published)}
    length = scored.table["source"].str.len().to_numpy()
    for low, high in pairwise([0, *data_set.lengths, np.inf] if data_set.lengths else []):
        rows = scored.reported & ~added & (low < length) & (length <= high)
        span = f"over {low}" if high == np.inf else f"{low + 1} to {high}"
        if rows.any():
            parts[f"{data_set.name}, {span} characters"] = rows, {}
    if data_set.extended:
        parts[f"{data_set.name}-extended"] = scored.reported, data_set.published_extended
    results = []
    for name, (rows, published) in parts.items():
        found = {"name": name, **_compare_rows(data_set, scored, rows, config)}
        values = {row["name"]: row[found["statistic"]] for row in found["metrics"]}
        found["published"] = [
            (scored.metrics[of].title, theirs, values[of])
            for of, theirs in published.items()
            if of in values
        ]
        results.append(found | {"attribution": attribution(data_set, scored, rows, config.samples)})
    return results


def _compare_rows(
    data_set: DataSet, scored: Scores, rows: np.ndarray, config: Config
) -> dict[str, Any]:
    table = scored.table[rows]
    human = table["human"].to_numpy(float)
    drawn = draw(table["source"].to_numpy(object), config.samples)
    kinds = ("auc",) if data_set.labels else ("pearson", "spearman")
    samples = {
        name: {kind: statistic_of(kind, own.scores[rows], human, drawn) for kind in kinds}
        for name, own in scored.metrics.items()
    }
    turned = {}  # reversed for a metric whose lower scores are better
    for name, values in samples.items():
        main = values[kinds[-1]]
        worse = 1 - main if data_set.labels else -main
        turned[name] = main if scored.metrics[name].metric.higher_is_better else worse
    # Undefined values come last.
    order = sorted(turned, key=lambda name: np.nan_to_num(turned[name][0], nan=-2), reverse=True)
    best = next((name for name in order if not scored.metrics[name].learned), None)
    metrics: list[dict[str, Any]] = []
    for name in order:
        metric, title, scores, learned = scored.metrics[name]
        tested = best != name and not learned
        row = {
            "name": name,
            "title": title,
            "learned": learned,
            "higher_is_better": metric.higher_is_better,
            **{kind: estimate_of(values) for kind, values in samples[name].items()},
            "p": p_value((turned[best] - turned[name])[1:]) if best and tested else np.nan,
            "rows": int((~np.isnan(scores[rows])).sum()),
        }
        metrics.append(row)
    return {
        "rows": len(table),
        "sources": int(table["source"].nunique()),
        "added": int(table["added"].sum()),
        "statistic": kinds[-1],
        "statistics": kinds,
        "metrics": metrics,
        "left_out": scored.left_out,
        "signatures": {name: own.metric.signature() for name, own in scored.metrics.items()},
    }


def attribution(
    data_set: DataSet, scored: Scores, rows: np.ndarray, samples: int
) -> dict[str, Any] | None:
    """Returns the subsets, or None if the set allows none. rows: those reported, bool."""
    table = scored.table[rows].reset_index(drop=True)
    scores = {name: own.scores[rows] for name, own in scored.metrics.items()}
    if SIMILARITY not in scores or data_set.labels or not table["source"].duplicated().any():
        return None
    low, high = np.nanquantile(scores[SIMILARITY], [0.01, 0.99])
    if high <= low:
        return None
    divergence = EditDistance().sentence_scores(pairs_of(table))
    return subsets(divergence, (scores[SIMILARITY] - low) / (high - low), table, scores, samples)


def subsets(
    divergence: np.ndarray,
    similarity: np.ndarray,
    table: pd.DataFrame,
    scores: dict[str, np.ndarray],
    samples: int = 0,
) -> dict[str, dict[str, Any]]:
    """Returns S_sim and the parts of S_div: the number of pairs, and an Estimate by metric.

    It is Pearson's r between differences of the metric's scores and of human scores; intervals by
    bootstrap over sources.
    """
    groups = table.groupby("source", sort=False).indices
    pairs = [pair for rows in groups.values() for pair in combinations(rows, 2)]
    first, other = np.array(pairs, np.int64).reshape(-1, 2).T
    sim = abs(similarity[first] - similarity[other])
    div = abs(divergence[first] - divergence[other])
    s_sim = (div <= S_SIM["divergence"]) & (sim >= S_SIM["similarity"])
    s_div = (sim <= S_DIV["similarity"]) & (div >= S_DIV["divergence"])
    near = np.minimum(divergence[first], divergence[other]) <= SPLIT
    human, source = table["human"].to_numpy(float), table["source"].to_numpy(object)

    def differences(chosen: np.ndarray) -> dict[str, Any]:
        a, b = np.r_[first[chosen], other[chosen]], np.r_[other[chosen], first[chosen]]
        drawn = draw(source[a].astype(str), samples) if len(a) else [a]
        found = {
            name: estimate_of(statistic_of("pearson", of[a] - of[b], human[a] - human[b], drawn))
            for name, of in scores.items()
        }
        return {"pairs": int(chosen.sum()), "pearson": found}

    return {
        "S_sim": differences(s_sim),
        f"S_div1, d ≤ {SPLIT}": differences(s_div & near),
        f"S_div2, d > {SPLIT}": differences(s_div & ~near),
    }
