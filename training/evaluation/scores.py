"""Measures paraphrases for an evaluation, and computes means with their intervals.

Besides the metrics of udfs/metrics there are copies, entities kept and length ratio, which need
only the source. All texts are normalised (gaixie.udfs.text.normalise) before anything is measured.

Intervals are percentiles of a bootstrap over sources (gaixie.udfs.metrics.bootstrap). A resample
draws sources with replacement, with all rows of a source, and is the same for every system and
measure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gaixie.training.modeling.entities_kept import ENTITIES, entities_kept
from gaixie.udfs.metrics import Metric, Pairs, bootstrap, load_metric
from gaixie.udfs.metrics.metric import signature
from gaixie.udfs.metrics.references import Resamples
from gaixie.udfs.text.entities import EntityFinder, load_settings
from gaixie.udfs.text.normalise import NORMALISATION

METRICS = ("spscore", "spscore-meaning", "self-bleu", "bert-ibleu", "parascore")


@dataclass(frozen=True)
class Measure:
    """A metric in the form of a report."""

    name: str
    title: str
    signature: str
    better: str
    """↑ higher, ↓ lower, or empty if neither is better."""
    digits: int
    """Decimals in a report: 1 for measures up to 100, else 3."""
    score: Callable[[Pairs], np.ndarray]
    """Returns float64, shape (rows,); NaN for no score."""


class Estimate(NamedTuple):
    """Statistics of the rows that have a score; NaN if there are none, sd also if there is only
    one."""

    mean: float
    sd: float
    """Standard deviation of the rows' scores, with n − 1."""
    low: float
    """Lower bound of the mean's 95 % interval."""
    high: float
    rows: int


def measures(
    specs: tuple[str, ...] | None = None, encoder: str | None = None
) -> tuple[list[Measure], dict[str, str]]:
    """Returns the metrics of some specs, SPScore-zh first, and the three of this file; and the
    metrics left out, with the reason.

    specs: as load_metric takes them; None means METRICS, of which one is left out if its encoder is
    missing. encoder: for the metrics that have one; None means their own. Raises ValueError or
    OSError, in one line, for an unknown metric, one that needs a reference, and one asked for that
    cannot be loaded.
    """
    usable, left_out = [], {}
    optional = specs is None and encoder is None
    for spec in dict.fromkeys(("spscore", *(specs or METRICS))):
        own = spec.split(":")[0] == "bartscore"  # its model is not an encoder
        metric = load_metric(spec, **({"model": encoder} if encoder and not own else {}))
        if metric.needs_reference:
            raise ValueError(
                f"metric {spec!r} needs a reference; {spec.split(':')[0]}-free reads the source "
                "in its place"
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
    """Returns copies (100 for a copy, else 0), entities kept, and characters per source
    character."""
    finder = EntityFinder(load_settings(ENTITIES))
    kinds = hashlib.sha256(finder.settings.model_dump_json().encode()).hexdigest()[:8]
    norm = ("norm", NORMALISATION)

    def over(score: Callable[[str, str], float]) -> Callable[[Pairs], np.ndarray]:
        return lambda pairs: np.array(
            [score(a, b) for a, b in zip(*_texts(pairs), strict=True)], float
        )

    copies = over(lambda a, b: 100.0 * (a == b))
    kept = over(lambda a, b: entities_kept(a, b, finder))
    length = over(lambda a, b: len(b) / len(a))
    signed = signature("entities", norm, ("kinds", kinds))
    return [
        Measure("copies", "copies %", signature("copies", norm), "↓", 1, copies),
        Measure("entities", "entities kept %", signed, "↑", 1, kept),
        Measure("length-ratio", "length ratio", signature("length-ratio", norm), "", 3, length),
    ]


def _texts(pairs: Pairs) -> tuple[list[str], list[str]]:
    return pairs.source.to_pylist(), pairs.paraphrase.to_pylist()


def estimates(
    scores: Mapping[tuple[str, str], np.ndarray], resamples: Resamples
) -> dict[tuple[str, str], Estimate]:
    """Returns the estimate of each column of scores.

    scores: (system, measure) -> float64, shape (rows,), NaN for no score. resamples: of these rows.
    A column's interval comes from the resamples in which it has a score.
    """
    columns = np.column_stack([*scores.values()])
    there = ~np.isnan(columns)
    sums = resamples.sums(np.hstack([np.where(there, columns, 0.0), there]))
    total, count = np.hsplit(sums[1:], 2)
    with np.errstate(invalid="ignore"):
        means = total / count
    estimate_of = {}
    for index, key in enumerate(scores):
        values = columns[there[:, index], index]
        mean = values.mean() if len(values) else np.nan
        sd = values.std(ddof=1) if len(values) > 1 else np.nan
        interval = bootstrap.interval(means[:, index])
        estimate_of[key] = Estimate(float(mean), float(sd), *interval, len(values))
    return estimate_of
