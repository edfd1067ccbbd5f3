"""What an evaluation measures of a paraphrase, and the mean of it with its interval.

Beside the metrics of udfs/metrics, with the source the only other text: copies, entities kept and
length ratio. All texts are normalised (gaixie.udfs.text.normalise) before anything is measured.

Intervals are percentiles of a bootstrap over sources (gaixie.udfs.metrics.bootstrap): a resample
draws sources with replacement, all rows of a source together, and the same ones for every system
and measure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import NamedTuple

import numpy as np

from gaixie.training.modeling.entities_kept import ENTITIES, entities_kept
from gaixie.udfs.metrics import Metric, Pairs, bootstrap, load_metric
from gaixie.udfs.metrics.metric import signature
from gaixie.udfs.text.entities import EntityFinder, load_settings
from gaixie.udfs.text.normalise import NORMALISATION

METRICS = ("spscore", "spscore-meaning", "self-bleu", "bert-ibleu", "parascore")
SAMPLES = 1_000


@dataclass(frozen=True)
class Measure:
    """A metric as a report has it."""

    name: str
    title: str
    signature: str
    better: str
    """↑ higher, ↓ lower, or nothing where neither is better as such."""
    digits: int
    """Decimals in a report: 1 of what runs to 100, else 3."""
    score: Callable[[Pairs], np.ndarray]
    """float64, shape (rows,); NaN where there is none."""


class Estimate(NamedTuple):
    """Statistics of the rows that have a score. NaN where there are none, or for sd only one."""

    mean: float
    sd: float
    """Standard deviation of the rows' scores, by n − 1."""
    low: float
    """Lower bound of the mean's 95 % interval."""
    high: float
    rows: int


def measures(
    specs: tuple[str, ...] | None = None, encoder: str | None = None
) -> tuple[list[Measure], dict[str, str]]:
    """The metrics of some specs, SPScore-zh first, and the three of this file; what is left out, and why.

    specs: as load_metric takes them; None is METRICS, of which one is left out where its encoder is not
    there. encoder: of the metrics that have one; None is their own. Raises ValueError or OSError, in one
    line, for an unknown metric, one that needs a reference, and one asked for that cannot be loaded.
    """
    usable, left_out = [], {}
    optional = specs is None and encoder is None
    for spec in dict.fromkeys(("spscore", *(specs or METRICS))):
        own = spec.split(":")[0] == "bartscore"  # its model is no encoder
        metric = load_metric(spec, **({"model": encoder} if encoder and not own else {}))
        if metric.needs_reference:
            raise ValueError(
                f"metric {spec!r} needs a reference; {spec.split(':')[0]}-free reads the source in its place"
            )
        try:
            metric.sentence_scores(Pairs.of(["改写"], ["改写"]))
        except FileNotFoundError as error:
            if not optional:
                raise
            left_out[metric.title] = str(error)
        else:
            usable.append(_measure(spec, metric))
    return [*usable, *own_measures()], left_out


def _measure(spec: str, metric: Metric) -> Measure:
    better = "↑" if metric.higher_is_better else "↓"
    digits = 1 if max(metric.range) >= 100 else 3
    return Measure(spec, metric.title, metric.signature(), better, digits, metric.sentence_scores)


def own_measures() -> list[Measure]:
    """Copies (100 for a copy, else 0), entities kept, and characters for one of the source."""
    finder = EntityFinder(load_settings(ENTITIES))
    kinds = hashlib.sha256(finder.settings.model_dump_json().encode()).hexdigest()[:8]
    norm = ("norm", NORMALISATION)

    def measure(
        name: str, title: str, better: str, digits: int, score: Callable, *settings: tuple[str, str]
    ) -> Measure:
        def scores(pairs: Pairs) -> np.ndarray:
            texts = zip(pairs.source.to_pylist(), pairs.paraphrase.to_pylist(), strict=True)
            return np.array(list(starmap(score, texts)), float)

        return Measure(name, title, signature(name, norm, *settings), better, digits, scores)

    def kept(source: str, paraphrase: str) -> float:
        return entities_kept(source, paraphrase, finder)

    return [
        measure("copies", "copies %", "↓", 1, lambda a, b: 100.0 * (a == b)),
        measure("entities", "entities kept %", "↑", 1, kept, ("kinds", kinds)),
        measure("length-ratio", "length ratio", "", 3, lambda a, b: len(b) / len(a)),
    ]


def estimates(
    scores: Mapping[tuple[str, str], np.ndarray],
    sources: np.ndarray,
    samples: int = SAMPLES,
    seed: int = 0,
) -> dict[tuple[str, str], Estimate]:
    """The estimate of each column of scores.

    scores: (system, measure) -> float64, shape (rows,), NaN where there is no score. sources: what the
    rows are grouped by, shape (rows,). A column's interval comes from the resamples in which it has a
    score.
    """
    _, group = np.unique(sources, return_inverse=True)
    groups = int(group.max()) + 1
    columns = np.column_stack(list(scores.values()))
    there = ~np.isnan(columns)
    sums = np.zeros((2, groups, columns.shape[1]))
    np.add.at(sums[0], group, np.where(there, columns, 0.0))
    np.add.at(sums[1], group, there)
    means = np.empty((samples, columns.shape[1]))
    with np.errstate(invalid="ignore"):
        for row, drawn in zip(means, bootstrap.resamples(groups, samples, seed), strict=True):
            total, count = np.bincount(drawn, minlength=groups) @ sums
            row[:] = total / count
    estimate_of = {}
    for index, key in enumerate(scores):
        values = columns[there[:, index], index]
        low, high = bootstrap.interval(means[:, index])
        mean = values.mean() if len(values) else np.nan
        sd = values.std(ddof=1) if len(values) > 1 else np.nan
        estimate_of[key] = Estimate(float(mean), float(sd), low, high, len(values))
    return estimate_of
